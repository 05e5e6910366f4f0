"""What the driver is told."""

from __future__ import annotations

from msgspec import Struct

DRIVER = "gpu.nvidia.com"
"""The driver's name, which is also that of its device class."""


APPLICATION_XIDS = (13, 31, 43, 45, 68, 109)
"""XIDs that a program causes and not its GPU (xidsToSkip of device_health.go in NVIDIA's driver v0.4.1)."""


class DraConfig(Struct, frozen=True):
    """``nodes``: those with a driver; ``poll_s``: how often it looks at its GPUs; ``health``: whether it watches their
    XIDs."""

    nodes: tuple[str, ...] = ()
    poll_s: float = 1.0
    health: bool = False

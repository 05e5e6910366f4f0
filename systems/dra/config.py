"""What the driver is told."""

from __future__ import annotations

from msgspec import Struct

DRIVER = "gpu.nvidia.com"
"""The driver's name, which is also that of its device class."""


class DraConfig(Struct, frozen=True):
    """``nodes``: those with a driver; ``poll_s``: how often it looks at its GPUs."""

    nodes: tuple[str, ...] = ()
    poll_s: float = 1.0

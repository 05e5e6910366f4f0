"""What the driver is told."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.deviceplugin.port import Mount

APPLICATION_XIDS = (13, 31, 43, 45, 68, 109)
"""XIDs that a program causes and not its GPU (xidsToSkip of device_health.go in NVIDIA's driver v0.4.1)."""


class DraConfig(Struct, frozen=True):
    """``nodes``: those with a driver; ``poll_s``: how often it looks at its GPUs; ``health``: whether it watches their
    XIDs. ``nvml``: the library that a driver in a container loads, "" for the machine's; ``envs`` and ``mounts`` are
    what containers with a GPU need besides."""

    nodes: tuple[str, ...] = ()
    poll_s: float = 1.0
    health: bool = False
    nvml: str = ""
    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()

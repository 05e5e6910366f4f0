"""What the parts of GPU Share are told."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.deviceplugin.port import Mount
from mews.systems.gpushare import names

UNITS: Mapping[str, int] = {"MiB": 1, "256MiB": 256, "GiB": 1024}
"""Unit of memory -> MiB, the finest first."""
AUTO = "auto"
REFUSE, EVICT = "refuse", "evict"
HOLDER = "gpushare"
"""The system's name, as which it answers who wants GPUs of its nodes whole (``mews.kube.deviceplugin.release``)."""
APPLICATION_XIDS = (13, 31, 43, 45, 68, 109)
"""XIDs that a program causes and not its GPU: as NVIDIA's device plugin has them (contract host.md section 3)."""


class GpuShareConfig(Struct, frozen=True):
    """``unit``: of gpu-mem, ``auto`` is the finest whose list a kubelet takes. ``match``: how Allocate finds its pod,
    ``seed`` by the design's own rule alone. ``nodes``: those whose GPUs are shared. ``on_shared``: what becomes of pods
    on a GPU that is wanted whole: ``refuse``, they keep it; ``evict``, they are evicted, and ``evict_s`` is how long
    their end may take. ``nvml``: the library that a plugin in a container loads, "" for the machine's; ``envs`` and
    ``mounts`` are what containers with a GPU need besides. ``foreign``: components whose place somebody else's take."""

    unit: str = AUTO
    match: str = "pods"
    replicas: int = 1
    namespace: str = "kube-system"
    memory_resource: str = names.MEMORY_RESOURCE
    count_resource: str = names.COUNT_RESOURCE
    plugin_socket: str = "aliyungpushare.sock"
    poll_s: float = 1.0
    settle_s: float = 0.2
    on_shared: str = REFUSE
    evict_s: float = 90.0
    nodes: tuple[str, ...] = ()
    nvml: str = ""
    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    foreign: tuple[str, ...] = ()

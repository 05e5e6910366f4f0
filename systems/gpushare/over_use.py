"""Nothing keeps a pod from using more of a GPU's memory than it asked for (gpushare-scheduler-extender #51 and #76).
What it uses can be seen, though: NVML knows the memory of each process, and the kernel whose process it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mews.kube.api.objects import Object, is_terminal, key_of, uid_of
from mews.kube.component import Context, record
from mews.kube.events import EventRecorder, reference
from mews.kube.system.cgroups import pod_of_cgroup
from mews.kube.system.files import FileTree
from mews.kube.system.nvml import ListedGpu
from mews.kube.system.ports import NodeAccess
from mews.systems.gpushare.config import UNITS, GpuShareConfig
from mews.systems.gpushare.records import requested

REASON = "GPUMemoryOverUse"


def message(used_mib: int, asked_mib: int) -> str:
    """Return the event's text."""
    return f"uses {used_mib} MiB of GPU memory and asked for {asked_mib} MiB: no limit is enforced"


class MemoryUse:
    """What the pods of one node use, against what they asked for: an event on a pod that uses more, once, and again
    after it has used less."""

    def __init__(self, context: Context, config: GpuShareConfig, events: EventRecorder, node: NodeAccess) -> None:
        self._context = context
        self._config = config
        self._files = node.files
        self._events = events
        self._owners: dict[int, str] = {}
        self._over: set[str] = set()

    async def look(self, gpus: Sequence[ListedGpu], unit: str, pods: Iterable[Object]) -> None:
        """Compare, by the newest reading."""
        used = await self._used(gpus)
        over = set()
        for pod in pods if used else ():
            uid, asked_mib = uid_of(pod), requested(pod, self._config.memory_resource) * UNITS[unit]
            if is_terminal(pod) or used.get(uid, 0) <= asked_mib:
                continue
            over.add(uid)
            if uid not in self._over:
                record(self._context.log, "over-use", pod=key_of(pod), used_mib=used[uid], asked_mib=asked_mib)
                self._events.event(reference(pod, kind="Pod"), "Warning", REASON, message(used[uid], asked_mib))
        self._over = over

    async def _used(self, gpus: Sequence[ListedGpu]) -> Mapping[str, int]:
        """Pod (uid) -> MiB that its processes have, on all GPUs together."""
        found = [process for gpu in gpus for process in gpu.processes]
        if self._files is None or not found:
            return {}
        pids = {process.pid for process in found}
        self._owners = {pid: uid for pid, uid in self._owners.items() if pid in pids}
        used: dict[str, int] = {}
        for process in found:
            if process.pid not in self._owners:
                self._owners[process.pid] = await self._owner(self._files, process.pid)
            used[self._owners[process.pid]] = used.get(self._owners[process.pid], 0) + process.used_mib
        used.pop("", None)
        return used

    async def _owner(self, files: FileTree, pid: int) -> str:
        try:
            return pod_of_cgroup((await files.read(f"proc/{pid}/cgroup")).decode("utf-8", "replace"))
        except OSError:
            return ""  # It has ended.

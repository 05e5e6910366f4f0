"""Which GPUs are broken: by XIDs, until they have left NVML and come back, and by what the node says of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mews.kube.api.objects import Object
from mews.kube.deviceplugin.remedies import mended_gpus, newly_mended, withheld_gpus
from mews.kube.system.nvml import ListedGpu, NvmlReading
from mews.systems.koordinator.devices import NodeDevice
from mews.systems.koordinator.names import GPU

APPLICATION_XIDS = (13, 31, 43, 45, 68, 109)
"""XIDs that a program causes and not its GPU: as NVIDIA's device plugin has them (contract host.md section 3)."""

XID = "node.koordinator.sh/xid"
"""On a device of a Device object: the XID that broke it, so that the next incarnation knows."""


class GpuHealth:
    """A GPU is broken from an XID of its own until its driver was bound anew, or it was mended."""

    def __init__(self, before: Iterable[NodeDevice] = ()) -> None:
        self._xids = {d.id: int(d.labels[XID]) for d in before if d.type == GPU and d.labels.get(XID, "").isdecimal()}
        self._gone: set[str] = set()
        self._mended: dict[str, int] | None = None
        self._withheld: frozenset[str] = frozenset()

    def remedied(self, node: Object | None) -> bool:
        """The node is this now: what it says of broken GPUs, and of those that were mended; whether that is news."""
        was = self._withheld, self._mended
        self._withheld, self._mended = withheld_gpus(node), mended_gpus(node)
        for uuid in newly_mended(was[1], self._mended):
            self._xids.pop(uuid, None)
        return was[1] is not None and was != (self._withheld, self._mended)

    def observe(self, reading: NvmlReading) -> None:
        """Take in a reading."""
        there = {gpu.uuid for gpu in reading.gpus}
        for uuid in self._gone & there:
            self._xids.pop(uuid, None)
        self._gone = {uuid for uuid in self._xids if uuid not in there}
        for each in reading.xids:
            if each.xid not in APPLICATION_XIDS:
                self._xids.setdefault(each.uuid, each.xid)

    def healthy(self, gpu: ListedGpu) -> bool:
        """Return whether it may be given."""
        return gpu.is_usable and gpu.uuid not in self._xids and gpu.uuid not in self._withheld

    def labels(self, uuid: str) -> dict[str, str]:
        """Return what its entry in the Device object says of that."""
        return {XID: str(self._xids[uuid])} if uuid in self._xids else {}

"""Which GPUs of a node are broken: by XIDs, and by the mark that others may set or take away."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.client.port import KubeApi
from mews.kube.deviceplugin.remedies import mended_gpus, newly_mended, withheld_gpus
from mews.kube.system.nvml import ListedGpu, NvmlReading
from mews.systems.gpushare.config import APPLICATION_XIDS
from mews.systems.gpushare.names import UNHEALTHY_PREFIX
from mews.systems.gpushare.records import unhealthy_indices


class NodeHealth:
    """The broken GPUs of a node, by UUID, written into ``unhealthy-gpu-<node>`` by index.

    A GPU is broken from an XID of its own until it has left NVML and come back (its driver was bound anew), until
    somebody takes its index out of the ConfigMap, or until the node says that it was mended; whoever writes an index
    there marks one by hand.
    """

    def __init__(self, kube: KubeApi, namespace: str, node: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = f"{UNHEALTHY_PREFIX}{node}"
        self._broken: set[str] = set()
        self._gone: set[str] = set()
        self._mended: dict[str, int] | None = None
        self._withheld: frozenset[str] = frozenset()
        self._mark: frozenset[int] | None = None
        self._written: frozenset[int] | None = None
        self._there = False

    def marked(self, config_map: Object | None) -> None:
        """The ConfigMap is this now."""
        self._there = config_map is not None
        self._mark = unhealthy_indices(config_map)

    def remedied(self, node: Object | None) -> None:
        """The node is this now: what it says of broken GPUs, and of those that were mended."""
        self._withheld = withheld_gpus(node)
        before, self._mended = self._mended, mended_gpus(node)
        self._broken -= newly_mended(before, self._mended)

    def observe(self, reading: NvmlReading) -> None:
        """Take in a reading, and what others marked since the one before."""
        there = {gpu.uuid: gpu for gpu in reading.gpus}
        mark, self._mark = self._mark, None
        if mark is not None and mark != self._written:
            self._broken = {gpu.uuid for gpu in reading.gpus if gpu.index in mark}
            if self._written is None:  # What an earlier incarnation wrote may have been mended since.
                self._broken -= newly_mended(None, self._mended or {})
            self._written = mark
        came_back = {uuid for uuid in self._gone if uuid in there}
        self._broken -= came_back
        self._gone = (self._gone - came_back) | {uuid for uuid in self._broken if uuid not in there}
        self._broken |= {each.uuid for each in reading.xids if each.xid not in APPLICATION_XIDS}

    def usable(self, gpu: ListedGpu) -> bool:
        """Return whether its memory may be given."""
        return gpu.is_usable and gpu.uuid not in self._broken | self._withheld

    async def write(self, gpus: Sequence[ListedGpu]) -> None:
        """Write the mark if it is another one.

        Raises ApiError, UnavailableError.
        """
        indices = frozenset(gpu.index for gpu in gpus if not self.usable(gpu))
        if indices == (self._written or frozenset()):
            return
        data = {"gpus": ",".join(str(index) for index in sorted(indices))}
        if self._there:
            try:
                await self._kube.patch(CONFIGMAPS, self._name, {"data": data}, namespace=self._namespace)
            except NotFoundError:
                self._there = False
                return
        else:
            body = {"metadata": {"name": self._name, "namespace": self._namespace}, "data": data}
            await self._kube.create(CONFIGMAPS, body, namespace=self._namespace)
        self._written, self._there = indices, True

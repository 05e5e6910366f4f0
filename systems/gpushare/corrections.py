"""Bringing the ledger and the annotations of pods in line with what their containers were given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from mews.kube.api.errors import Conflict, NotFound
from mews.kube.api.objects import Object, name_of, namespace_of, uid_of, version_of
from mews.kube.api.resources import PODS
from mews.kube.component import Context
from mews.systems.gpushare import names
from mews.systems.gpushare.ledger import ATTEMPTS, NodeLedgers
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import LedgerEntry, assumption, decided

DECISION = (
    names.INDEX, names.OLD_INDEX, names.UUID, names.DEVICE_MEMORY, names.POD_MEMORY, names.ASSIGNED, names.ASSUME_TIME
)  # fmt: skip
"""Annotations of a pod that is given part of a GPU."""


@dataclass(slots=True)
class Correction:
    """What is to be written about one pod; no ``gpu``: nothing is decided about it any more."""

    pod: Object
    gpu: SharedGpu | None
    memory: int
    assigned: bool

    @property
    def annotations(self) -> dict[str, str | None]:
        """Those that change."""
        gpu = self.gpu
        if gpu is None:
            return dict.fromkeys(DECISION)
        return {
            names.INDEX: str(gpu.index),
            names.OLD_INDEX: str(gpu.index),
            names.UUID: gpu.uuid,
            names.DEVICE_MEMORY: str(gpu.memory),
            **({names.ASSIGNED: "true"} if self.assigned else {}),
        }


class Corrector:
    """Writes those of one node."""

    def __init__(self, context: Context, ledgers: NodeLedgers, node: str) -> None:
        self._context = context
        self._ledgers = ledgers
        self._node = node

    async def write_all(self, corrections: Mapping[str, Correction]) -> None:
        """Sums per GPU do not change when two are exchanged, or one takes the other's place."""

        async def as_they_are() -> Mapping[str, Correction]:
            return corrections

        await self.write(as_they_are)

    async def write(self, work_out: Callable[[], Awaitable[Mapping[str, Correction]]]) -> bool:
        """The ledger first, in one write, and by what it says then; whether there was anything to write."""
        corrections: Mapping[str, Correction] = {}
        async with self._ledgers.lock(self._node):
            for _ in range(ATTEMPTS):
                try:
                    await self._ledgers.read(self._node)
                    corrections = await work_out()
                    await self._ledgers.move(
                        {uid: self._promised(correction) for uid, correction in corrections.items()}, self._node
                    )
                    break
                except Conflict:
                    continue
            else:
                return False
        for correction in corrections.values():
            pod, annotations = correction.pod, dict(correction.annotations)
            if assumption(pod) is None and correction.gpu is None:
                continue
            if assumption(pod) is None and correction.gpu is not None:
                now_ns = int(self._context.clock.now() * 1e9)
                annotations = {**decided(correction.gpu, correction.memory, now_ns), **annotations}
            try:
                await self._context.kube.patch(
                    PODS, name_of(pod), {"metadata": {"annotations": annotations}}, namespace=namespace_of(pod)
                )
            except NotFound:
                continue
        return bool(corrections)

    def _promised(self, correction: Correction) -> LedgerEntry | None:
        pod, gpu = correction.pod, correction.gpu
        if gpu is None:
            return None
        return LedgerEntry(
            uid_of(pod), namespace_of(pod), name_of(pod), gpu.index, gpu.uuid, correction.memory, version_of(pod)
        )

"""What is to be written about pods, so that their annotations say what their containers were told."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mews.kube.api.errors import ConflictError, NotFoundError
from mews.kube.api.objects import Object, annotations_of, key_of, name_of, namespace_of, uid_of, version_of
from mews.kube.api.resources import PODS
from mews.kube.component import Context, record
from mews.systems.gpushare import names
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import LedgerEntry, assumption, decided

DECISION = (
    names.INDEX, names.OLD_INDEX, names.UUID, names.DEVICE_MEMORY, names.POD_MEMORY, names.ASSIGNED, names.ASSUME_TIME
)  # fmt: skip
"""Annotations of a pod that is given part of a GPU."""


class Correction(Struct, frozen=True):
    """What is to be written about one pod, as it was seen; no ``gpu``: nothing is decided about it any more."""

    pod: Object
    gpu: SharedGpu | None
    memory: int
    assigned: bool

    @property
    def entry(self) -> LedgerEntry | None:
        """The promise."""
        pod, gpu = self.pod, self.gpu
        if gpu is None:
            return None
        return LedgerEntry(
            uid_of(pod), namespace_of(pod), name_of(pod), gpu.index, gpu.uuid, self.memory, version_of(pod)
        )

    def annotations(self, now_ns: int) -> dict[str, str | None]:
        """Return those that change."""
        gpu, there = self.gpu, annotations_of(self.pod)
        wanted: dict[str, str | None]
        if gpu is None:
            wanted = {name: None for name in DECISION if name in there}
        else:
            wanted = {
                names.INDEX: str(gpu.index),
                names.OLD_INDEX: str(gpu.index),
                names.UUID: gpu.uuid,
                names.DEVICE_MEMORY: str(gpu.memory),
                **({names.ASSIGNED: "true"} if self.assigned else {}),
            }
            if assumption(self.pod) is None:
                wanted = {**decided(gpu, self.memory, now_ns), **wanted}
        return {name: text for name, text in wanted.items() if there.get(name) != text}


async def annotate(context: Context, corrections: Iterable[Correction]) -> bool:
    """Write the annotations of all of them; whether none has changed since it was seen, which is then left alone: a
    write that comes late, after its writer's death even, must not undo what is newer.

    Raises ApiError, UnavailableError.
    """
    all_written = True
    for each in corrections:
        pod, changed = each.pod, each.annotations(int(context.clock.now() * 1e9))
        if not changed:
            continue
        metadata = {"resourceVersion": pod["metadata"]["resourceVersion"], "annotations": changed}
        try:
            await context.kube.patch(PODS, name_of(pod), {"metadata": metadata}, namespace=namespace_of(pod))
        except NotFoundError:
            continue
        except ConflictError as conflict:
            record(context.log, "not-annotated", pod=key_of(pod), error=str(conflict))
            all_written = False
    return all_written

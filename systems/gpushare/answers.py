"""Answers to Allocate that the slices themselves do not show, written down before they are given: an incarnation of the
plugin that begins after a crash knows from them what is in a container's environment.

A container's slices show its answer where all of them are of the GPU in its environment. They do not where the kubelet
had too few of that GPU left, or took others than we preferred, and where the answer was that there is no GPU.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from mews.kube.api.errors import ApiError, Conflict, Unavailable
from mews.kube.api.objects import Object, key_of, uid_of
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import PluginError
from mews.systems.gpushare.given import GivenSlices, Held
from mews.systems.gpushare.ledger import ATTEMPTS, NodeLedgers
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import RecordedAnswer, slices_digest
from mews.systems.gpushare.slices import gpu_of_slice


def shows(given: GivenSlices) -> bool:
    """Whether the slices show the answer."""
    return {gpu_of_slice(each) for each in given.ids} == {given.gpu.uuid if given.gpu is not None else ""}


class AnswerRecords:
    """One node's, in its ledger."""

    def __init__(self, context: Context, ledgers: NodeLedgers, node: str, retry_s: float) -> None:
        self._context = context
        self._ledgers = ledgers
        self._node = node
        self._retry_s = retry_s
        self._earlier: dict[str, RecordedAnswer] | None = None

    async def write(
        self, given: GivenSlices, others: Callable[[], Awaitable[Collection[frozenset[str]] | None]]
    ) -> None:
        """Write it down if it must be. ``others``: the slices of all other containers, None where nobody knows them;
        records of none of them go.

        Raises PluginError where the API does not take it: a container whose GPU nobody can know later must not begin.
        """
        digest = slices_digest(given.ids)
        if self._earlier is not None:
            self._earlier.pop(digest, None)
        if shows(given) and digest not in self._ledgers.answers(self._node):
            return
        slice_sets = await others()
        current = None if slice_sets is None else set(map(slices_digest, slice_sets))
        for _ in range(ATTEMPTS):
            try:
                async with self._ledgers.lock(self._node):
                    await self._ledgers.read(self._node)
                    there = self._ledgers.answers(self._node)
                    kept = {each: there[each] for each in there if current is None or each in current}
                    kept.pop(digest, None)
                    if not shows(given):
                        kept[digest] = _recorded(given.gpu)
                    await self._ledgers.record_answers(self._node, kept)
                return
            except Conflict:
                continue
            except (ApiError, Unavailable) as error:
                record(self._context.log, "answer-not-written", node=self._node, error=str(error))
                await rest(self._retry_s)
        raise PluginError("Unavailable", f"the ledger of {self._node} cannot be written")

    async def recall(self, held: Held, pods: Sequence[Object]) -> list[GivenSlices]:
        """What earlier incarnations answered to containers that the kubelet shows; each once.

        Raises ApiError, Unavailable: nothing can be said of such containers until it has worked once.
        """
        if self._earlier is None:
            await self._ledgers.read(self._node)
            self._earlier = self._ledgers.answers(self._node)
        found = []
        for pod in pods if self._earlier else ():
            for container, ids in held.get(key_of(pod), {}).items():
                answer = self._earlier.pop(slices_digest(ids), None) if ids else None
                if answer is not None:
                    gpu = SharedGpu(answer.index, answer.uuid, answer.memory) if answer.uuid else None
                    found.append(GivenSlices(ids, uid_of(pod), container, gpu))
        return found


def _recorded(gpu: SharedGpu | None) -> RecordedAnswer:
    return RecordedAnswer(gpu.index, gpu.uuid, gpu.memory) if gpu is not None else RecordedAnswer(-1, "", 0)

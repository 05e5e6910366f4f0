"""One look at a node, and what follows from it: which pod has which GPU, and for whom an Allocate is. Pure.

The ledger has the last word on what is promised to a pod, and on what a container was told; annotations come after. So
it does not matter between which two writes somebody died: whoever looks next comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from mews.kube.api.objects import Object, is_terminal, key_of, uid_of
from mews.systems.gpushare.corrections import Correction
from mews.systems.gpushare.given import Answers, Held, HeldSlices, admitting, lasting, lasting_requests, served
from mews.systems.gpushare.matching import PodCandidate, candidates, created_ns, match
from mews.systems.gpushare.policy import GpuUse, SharedGpu, best_fit, free_memory, used_memory
from mews.systems.gpushare.records import (
    Assumption,
    LedgerEntry,
    RecordedAnswer,
    assumption,
    container_requests,
    requested,
)


class NoRoomToFollowError(Exception):
    """A pod's containers cannot all have the GPU that the first of them was told."""


class GpuNodeState(Struct, frozen=True):
    """What was seen. ``held``: None while the kubelet does not say. ``entries``: promises that stand, by uid."""

    resource: str
    gpus: Sequence[SharedGpu]
    pods: Sequence[Object]
    held: Held | None
    entries: Mapping[str, LedgerEntry]
    answers: Answers


class AllocateTarget(Struct, frozen=True):
    """For which container an Allocate is, and its GPU, None where there is none for it."""

    pod: Object
    container: str
    gpu: SharedGpu | None


class NodePlan:
    """``corrections`` (by uid) is what is to be written down for it; ``split`` are the pods whose containers were told
    several GPUs, or some of them none: no annotation is true of them."""

    def __init__(self, state: GpuNodeState, *, allocating: bool = False) -> None:
        """``allocating``: the kubelet asks just now, so that answers to which it has given nothing came to nothing."""
        self._state = state
        self._pods = {uid_of(pod): pod for pod in state.pods if not is_terminal(pod)}
        self._decisions = {uid: self._decided(pod) for uid, pod in self._pods.items()}
        self._answers = lasting(state.answers, state.held, state.pods, state.resource) if allocating else state.answers
        self.corrections: dict[str, Correction] = {}
        self.split: dict[str, tuple[str, ...]] = {}

    def _decided(self, pod: Object) -> Assumption | None:
        found, entry = assumption(pod), self._state.entries.get(uid_of(pod))
        if entry is None or (found is not None and found.assigned):
            return found
        assumed_ns = found.assumed_ns if found is not None else created_ns(pod)
        return Assumption(entry.index, entry.uuid, entry.memory, False, assumed_ns)

    # What was told

    def _by(self, pod: Object) -> Mapping[str, HeldSlices]:
        return (self._state.held or {}).get(key_of(pod), {})

    def _env_gpu(self, slices: HeldSlices) -> SharedGpu | None:
        """Return the GPU in the environment of the container that holds them."""
        answer = self._answers.get(slices.digest)
        if answer is not None:
            return answer.gpu
        # Nothing is written down, as before this plugin: slices were preferred of the GPU that was told.
        return next((gpu for gpu in self._state.gpus if gpu.uuid == slices.gpu), None)

    def _env_gpu_of_all(self, pod: Object) -> SharedGpu | None:
        """Return the GPU in the environment of all its containers, once each has its slices; None before."""
        by, wanted = self._by(pod), lasting_requests(pod, self._state.resource)
        if not wanted:
            own = {each.container: each.gpu for each in self._answers.values() if each.pod == uid_of(pod)}
            asked = [name for name, _ in container_requests(pod, self._state.resource)]
            return own[asked[0]] if asked and all(name in own for name in asked) else None
        if any(name not in by for name, _ in wanted):
            return None
        gpus = [self._env_gpu(by[name]) for name, _ in wanted]
        uuids = {gpu.uuid if gpu is not None else "" for gpu in gpus}
        if len(uuids) > 1:
            self.split[uid_of(pod)] = tuple(sorted(uuids))
            return None
        return gpus[0]

    def _taken_for(self, pod: Object) -> list[str]:
        """Return the pods for which we took this one."""
        of = [self._answers[slices.digest].pod for slices in self._by(pod).values() if slices.digest in self._answers]
        return [uid for uid in of if uid not in ("", uid_of(pod))]

    # Putting right

    def exchange(self) -> None:
        """Whoever has all of its own keeps it; where it was served in another's place, that one has its instead."""
        complete: dict[str, SharedGpu] = {}
        crossed: dict[str, str] = {}
        for uid, pod in self._pods.items():
            decision = self._decisions[uid]
            if decision is not None and decision.assigned:
                continue
            gpu = self._env_gpu_of_all(pod)
            if gpu is None:
                continue
            if decision is None and not any(each.digest in self._answers for each in self._by(pod).values()):
                continue  # It was told that there is no GPU for it, before answers were written down.
            complete[uid] = gpu
            if decision is None or self._promised(decision) != gpu.uuid:
                crossed |= {other: uid for other in self._taken_for(pod) if other in self._pods}
        moved = {other: self._given_up(other, crossed) for other in crossed if other not in complete}
        for uid, gpu in complete.items():
            decision = self._decisions[uid]
            memory = decision.memory if decision is not None else self._held_memory(self._pods[uid])
            self._place(uid, gpu, memory, assigned=True)
        self._move({uid: place for uid, place in moved.items() if self._may_move(uid)})

    def _may_move(self, uid: str) -> bool:
        """Return whether nothing of it is in an environment yet."""
        decision = self._decisions[uid]
        return self._begun_on(self._pods[uid]) is None and not (decision is not None and decision.assigned)

    def _given_up(self, uid: str, crossed: Mapping[str, str]) -> str:
        """Return the GPU (UUID) that became free where this one's place was taken: whoever took it may have lost its
        own to a third before."""
        taker, seen = crossed[uid], {uid}
        while taker in crossed and taker not in seen:
            seen.add(taker)
            taker = crossed[taker]
        decision = self._decisions[taker]
        return self._promised(decision) if decision is not None else ""

    def _move(self, places: Mapping[str, str]) -> None:
        """Give pods that have nothing yet these GPUs (UUID), or others where there is no room for them there."""
        free = self._free(places)
        for uid in sorted(places):
            memory = requested(self._pods[uid], self._state.resource)
            wanted = next((gpu for gpu in self._state.gpus if gpu.uuid == places[uid]), None)
            fits = wanted is not None and free[wanted.uuid] >= memory
            place = wanted if fits else best_fit(memory, self._state.gpus, free)
            if place is not None:
                free[place.uuid] -= memory
            self._place(uid, place, memory)

    def refuse(self) -> None:
        """Whatever was written down for pods whose containers were told that there is no GPU for them goes."""
        for uid, pod in self._pods.items():
            by, wanted = self._by(pod), lasting_requests(pod, self._state.resource)
            if uid in self.corrections or not wanted or any(name not in by for name, _ in wanted):
                continue
            decision, there = self._decisions[uid], [self._answers.get(by[name].digest) for name, _ in wanted]
            nothing = not any(answer.gpu for answer in there if answer is not None) if any(there) else decision is None
            if nothing and (decision is None or not decision.assigned):
                self._place(uid, None, 0)

    def align(self) -> None:
        """Annotations that do not say what the ledger says: a writer died between the two."""
        for uid, pod in self._pods.items():
            decision, written = self._decisions[uid], assumption(pod)
            if uid in self.corrections or decision is None or uid not in self._state.entries or decision.assigned:
                continue
            if written is None or (written.uuid, written.index) != (decision.uuid, decision.index):
                gpu = next((gpu for gpu in self._state.gpus if gpu.uuid == decision.uuid), None)
                if gpu is not None:
                    self._place(uid, gpu, decision.memory)

    # Answering

    def serve(
        self, amount: int, *, gpu: str = "", preferred: tuple[str, str] | None = None, seed: bool = False
    ) -> AllocateTarget | None:
        """Return it for whom an Allocate of that many units is, and which GPU it gets; None where it is for nobody.
        ``gpu`` and ``preferred`` as ``match`` has them; ``seed``: by the design's rule alone.

        Raises NoRoomToFollowError.
        """
        if seed:
            found = match(amount, self._candidates(seed=True))
            return None if found is None else AllocateTarget(found[0].pod, found[1], self._usable(found[0].uid))
        for each in self._candidates():
            # Each that may be meant has a GPU of its own: an answer that goes to another pod than we think can then be
            # made good by exchanging decisions.
            if each.decision is None and not each.begun and any(asked == amount for _, asked in each.waiting):
                self._claim(each.uid)
        known = admitting(self._state.held, self._state.pods, self._state.resource)
        found = match(amount, self._candidates(), preferred=preferred, gpu=gpu, admitting=known)
        if found is None:
            return None
        candidate, container = found
        return AllocateTarget(candidate.pod, container, self._gpu_for(candidate))

    def _candidates(self, *, seed: bool = False) -> list[PodCandidate]:
        held, pods = None if seed else self._state.held, list(self._pods.values())
        decide: Callable[[Object], Assumption | None] = lambda pod: self._decisions[uid_of(pod)]  # noqa: E731
        there = served(self._answers, held, pods)
        return candidates(pods, self._state.resource, there, decide=decide, seed=seed)

    def _gpu_for(self, candidate: PodCandidate) -> SharedGpu | None:
        begun = self._begun_on(candidate.pod)
        decision = self._decisions[candidate.uid]
        if begun is None:
            return self._usable(candidate.uid) or self._claim(candidate.uid)
        if decision is None or self._promised(decision) != begun.uuid:
            self._follow(candidate.pod, begun)
        return begun

    def _begun_on(self, pod: Object) -> SharedGpu | None:
        """Return the GPU in the environment of those of its containers that are served; None where none has one."""
        return next((gpu for slices in self._by(pod).values() if (gpu := self._env_gpu(slices))), None)

    def _usable(self, uid: str) -> SharedGpu | None:
        """Return the GPU that was decided on, while it is there and well."""
        decision = self._decisions[uid]
        uuid = self._promised(decision) if decision is not None else ""
        return next((gpu for gpu in self._state.gpus if gpu.uuid == uuid and gpu.usable), None)

    def _claim(self, uid: str) -> SharedGpu | None:
        """Decide here: for a pod that came past the extender, or whose GPU is gone."""
        memory = requested(self._pods[uid], self._state.resource)
        gpu = best_fit(memory, self._state.gpus, self._free({uid}))
        if gpu is not None:
            self._place(uid, gpu, memory)
        return gpu

    def _follow(self, pod: Object, gpu: SharedGpu) -> None:
        """Have all of a pod on the GPU that its first container was told when it was served in another pod's place: the
        others change places with it."""
        uid, memory = uid_of(pod), requested(pod, self._state.resource)
        others = {other for other in self._taken_for(pod) if other in self._pods}
        if self._free({uid, *others}).get(gpu.uuid, 0) < memory:
            raise NoRoomToFollowError(
                f"{key_of(pod)} has begun on {gpu.uuid} in another pod's place, which has no room for all of it"
            )
        before = {other: self._decisions[other] for other in others}
        self._place(uid, gpu, memory)
        self._move({other: self._promised(each) if each is not None else "" for other, each in before.items()})

    def answered(self, digest: str, answer: RecordedAnswer) -> dict[str, RecordedAnswer]:
        """Return the answers to be written down with this one: those that came to something, and those that a kubelet
        that has only just begun may still show."""
        known = self._state.answers.items()
        kept = {each: other for each, other in known if each in self._answers or other.pod in self._pods}
        return {**kept, digest: answer}

    # Books

    def _place(self, uid: str, gpu: SharedGpu | None, memory: int, *, assigned: bool = False) -> None:
        pod, before = self._pods[uid], self._decisions[uid]
        self.corrections[uid] = Correction(pod, gpu, memory, assigned)
        assumed_ns = before.assumed_ns if before is not None else created_ns(pod)
        self._decisions[uid] = (
            Assumption(gpu.index, gpu.uuid, memory, assigned, assumed_ns) if gpu is not None else None
        )

    def _promised(self, decision: Assumption) -> str:
        """Return the UUID of the GPU that was decided on; of one that is named by its index alone, "" where it is
        gone."""
        if decision.uuid:
            return decision.uuid
        return next((gpu.uuid for gpu in self._state.gpus if gpu.index == decision.index), "")

    def _free(self, leaving: Collection[str]) -> dict[str, int]:
        """UUID -> memory that may be given once these pods have left."""
        uses = [
            GpuUse(key_of(self._pods[uid]), decision.index, decision.uuid, decision.memory)
            for uid, decision in self._decisions.items()
            if decision is not None and uid not in leaving
        ]
        known = {uid_of(pod) for pod in self._state.pods}
        uses += [entry.use() for uid, entry in self._state.entries.items() if uid not in known]
        return free_memory(self._state.gpus, used_memory(self._state.gpus, uses))

    def _held_memory(self, pod: Object) -> int:
        return sum(slices.count for slices in self._by(pod).values())

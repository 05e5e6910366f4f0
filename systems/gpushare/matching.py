"""Which container of which pod an Allocate is for: it carries no identity (contract gpushare.md section 3). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from mews.kube.api.objects import Object, is_deleting, is_terminal, key_of, phase_of, seconds, uid_of
from mews.systems.gpushare.records import Assumption, assumption, container_requests


class PodCandidate(Struct, frozen=True):
    """A pod of this node whose containers, or some of them, wait for their memory. ``begun``: others have theirs."""

    pod: Object
    decision: Assumption | None
    waiting: tuple[tuple[str, int], ...]
    begun: bool

    @property
    def uid(self) -> str:
        """The pod's."""
        return uid_of(self.pod)


def candidates(
    pods: Iterable[Object],
    resource: str,
    served: Mapping[str, frozenset[str]],
    *,
    decide: Callable[[Object], Assumption | None] = assumption,
    seed: bool = False,
) -> list[PodCandidate]:
    """Return the pods that may be meant, the likeliest first: one whose other containers were just served, for a
    kubelet admits one pod at a time; then by time of assumption. ``served``: uid -> containers that have theirs.
    ``decide``: what was decided about a pod. ``seed``: by time alone, and only pods that the extender decided on."""
    found = []
    for pod in pods:
        decision = decide(pod)
        if phase_of(pod) not in ("", "Pending") or is_terminal(pod) or is_deleting(pod):
            continue
        if (decision is not None and decision.assigned) or (seed and decision is None):
            continue
        done = served.get(uid_of(pod), frozenset())
        waiting = tuple(each for each in container_requests(pod, resource) if each[0] not in done)
        if waiting:
            found.append(PodCandidate(pod, decision, waiting, bool(done)))
    return sorted(found, key=lambda each: _order(each, seed))


def created_ns(pod: Object) -> int:
    """Return when it was created, in Unix nanoseconds."""
    return int(seconds(str(pod["metadata"]["creationTimestamp"])) * 1e9)


def _order(candidate: PodCandidate, seed: bool) -> tuple[object, ...]:
    decision = candidate.decision
    # One that came past the extender is known to the kubelet from its creation on.
    assumed_ns = decision.assumed_ns if decision is not None else created_ns(candidate.pod)
    return (not candidate.begun and not seed, assumed_ns, key_of(candidate.pod))


def match(
    amount: int,
    found: Sequence[PodCandidate],
    *,
    preferred: tuple[str, str] | None = None,
    gpu: str = "",
    admitting: frozenset[str] = frozenset(),
) -> tuple[PodCandidate, str] | None:
    """Return the pod and container that an Allocate of that many units is for, None where there is none.

    ``preferred``: the pod (uid) and container for which we preferred the very units that the kubelet took: a kubelet
    asks for a preference and for the units in one go. ``admitting``: pods (uid) that the kubelet is known to wait with;
    it is one of these, where one fits. ``gpu``: the UUID of the GPU whose units the kubelet took, where they are all of
    one; not the decided one where that had too few units left. A pod of one container is then served in another's
    place, for their decisions can be exchanged; one of several is not, for all of them must have one GPU.
    """
    for each in found:
        several = each.begun or len(each.waiting) > 1
        if several and preferred is not None and each.uid == preferred[0] and (preferred[1], amount) in each.waiting:
            return each, preferred[1]
    fitting = _fitting(amount, [each for each in found if each.uid in admitting]) or _fitting(amount, found)
    if gpu:
        there = [pair for pair in fitting if pair[0].decision is None or pair[0].decision.uuid in ("", gpu)]
        fitting = there or fitting
    return fitting[0] if fitting else None


def _fitting(amount: int, found: Sequence[PodCandidate]) -> list[tuple[PodCandidate, str]]:
    """A kubelet serves containers in their order; a later one only where our books of the earlier ones are lost."""
    next_in_turn = [(each, each.waiting[0][0]) for each in found if each.waiting[0][1] == amount]
    return next_in_turn or [(each, name) for each in found if (name := _container(each, amount))]


def _container(candidate: PodCandidate, amount: int) -> str:
    """Return the first container that asks for that much, else ""."""
    return next((name for name, asked in candidate.waiting if asked == amount), "")

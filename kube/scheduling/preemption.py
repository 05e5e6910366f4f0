"""Whom to preempt: the choice alone (upstream pkg/scheduler/framework/preemption and plugins/defaultpreemption)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from mews.kube.api.objects import condition_of
from mews.kube.scheduling.podinfo import PodInfo

REASON = "PreemptionByScheduler"
MIN_CANDIDATES = 100
MIN_CANDIDATES_PERCENT = 10


class Candidate(Struct, frozen=True):
    """A node on which the pod would fit without the victims, the most important of which comes first."""

    node: str
    victims: tuple[PodInfo, ...]


def importance(pod: PodInfo) -> tuple[int, str, str]:
    """Sorts the more important first: higher priority, then started earlier."""
    return -pod.priority, pod.start_time, pod.key


def candidates_wanted(nodes: int) -> int:
    """Return it after how many candidates the search ends: a tenth of the nodes, at least 100."""
    return min(nodes, max(nodes * MIN_CANDIDATES_PERCENT // 100, MIN_CANDIDATES))


def spare(victims: Iterable[PodInfo], fits_with: Callable[[PodInfo], bool]) -> tuple[PodInfo, ...]:
    """Return which victims must go: the others are let back in, the most important first, as long as the pod still
    fits.

    ``fits_with`` puts one back and says whether the pod still fits; where not it has taken it off again.
    """
    return tuple(victim for victim in sorted(victims, key=importance) if not fits_with(victim))


def pick(candidates: Sequence[Candidate]) -> Candidate:
    """Return the node where preemption hurts least: lowest highest priority, smallest sum of priorities, fewest
    victims, whose most important ones started latest; then the first.

    The sum is over priorities shifted to be positive, as upstream does, so that fewer negative ones do not win.
    """
    shift = 2**31

    def hurt(candidate: Candidate) -> tuple[int, int, int]:
        priorities = [victim.priority for victim in candidate.victims]
        return max(priorities), sum(priority + shift for priority in priorities), len(priorities)

    least = min(hurt(candidate) for candidate in candidates)
    best = [candidate for candidate in candidates if hurt(candidate) == least]
    latest = max(_earliest_start(candidate) for candidate in best)
    return next(candidate for candidate in best if _earliest_start(candidate) == latest)


def _earliest_start(candidate: Candidate) -> str:
    highest = max(victim.priority for victim in candidate.victims)
    return min(victim.start_time for victim in candidate.victims if victim.priority == highest)


def going_by_preemption(pod: PodInfo) -> bool:
    """Return whether the pod is terminating because a scheduler preempted it."""
    if not pod.deleting:
        return False
    condition = condition_of(pod.pod, "DisruptionTarget")
    return condition is not None and condition.get("status") == "True" and condition.get("reason") == REASON

"""One pod's decision: which nodes fit, which is best, what to say when none does. No I/O, nothing awaited.

HTTP extenders come between ``find`` and ``best``: their answers narrow ``Found.feasible`` (``extenders.narrow``); the
scheduler is where waiting for them belongs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from mews.kube.scheduling import messages
from mews.kube.scheduling.cache import Cache
from mews.kube.scheduling.config import TieBreak
from mews.kube.scheduling.framework import SUCCESS, Code, CycleState, Status
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.points import ExtensionPoints, FilterCall
from mews.kube.scheduling.verdict import failed

MIN_FEASIBLE = 100
"""Below this many nodes all are looked at."""

Nominated = Callable[[str], Sequence[PodInfo]]
"""Node -> pods that wait for room there."""


def nodes_to_find(nodes: int, percentage: int) -> int:
    """Return it after how many feasible nodes the search ends (contract apiserver.md section 8); 0 percent is
    adaptive."""
    if nodes < MIN_FEASIBLE or percentage >= 100:
        return nodes
    share = percentage or max(5, 50 - nodes // 125)
    return max(MIN_FEASIBLE, nodes * share // 100)


class Found(Struct):
    """What filtering found. ``refused_by`` are the plugins whose hints may wake the pod."""

    feasible: list[NodeInfo] = field(default_factory=list)
    refusals: dict[str, Status] = field(default_factory=dict)
    refused_by: set[str] = field(default_factory=set)
    pre_filter: str = ""
    error: Status | None = None
    looked_at: int = 0


def check(filters: Sequence[tuple[str, FilterCall]], state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
    """Return the first refusal of one node, or SUCCESS."""
    for name, call in filters:
        status = call(state, pod, node)
        if status is not SUCCESS and not status.ok:
            return failed(f'running "{name}" filter plugin', name, status)
    return SUCCESS


def check_beside_nominated(
    points: ExtensionPoints, state: CycleState, pod: PodInfo, node: NodeInfo, nominated: Nominated
) -> Status:
    """Return it as ``check``, but the pod must fit with and without the pods nominated here that are no less
    important."""
    filters = points.filters(state)
    others = [o for o in nominated(node.name) if o.priority >= pod.priority and o.uid not in (pod.uid, *node.pods)]
    if others:
        imagined, copy = state.clone(), node.copy()
        for other in others:
            points.suppose(imagined, pod, other, copy, there=True)
        status = check(filters, imagined, pod, copy)
        if not status.ok:
            return status
    return check(filters, state, pod, node)


class Decider:
    """The filter and score phases over one cache; remembers where the last sample of nodes ended."""

    def __init__(self, cache: Cache, nominated: Nominated, any_nominated: Callable[[], bool]) -> None:
        self._cache = cache
        self._nominated = nominated
        self._any_nominated = any_nominated
        self._next = 0

    def find(self, points: ExtensionPoints, state: CycleState, pod: PodInfo, *, hoped_for: str = "") -> Found:
        """Nodes that fit; a nominated node that fits is taken alone."""
        found = Found()
        looked, narrowed_by = points.look_at(state, pod)
        if not looked.ok:
            return self._refused_outright(found, looked)
        nodes = self._cache.order
        if looked.nodes is not None:
            nodes = self._narrow(found, looked.nodes, narrowed_by)
        hoped = self._cache.nodes.get(hoped_for)
        if hoped is not None and hoped in nodes:
            self._look(found, points, state, pod, [hoped])
            if found.feasible or found.error:
                return found
            found.refusals.pop(hoped.name)
            found.looked_at = 0
        self._look(found, points, state, pod, nodes)
        return found

    def _refused_outright(self, found: Found, status: Status) -> Found:
        if not status.rejected:
            found.error = status
            return found
        found.pre_filter = status.message
        found.refused_by.add(status.plugin)
        found.refusals = dict.fromkeys(self._cache.nodes, status)
        return found

    def _narrow(self, found: Found, names: frozenset[str], by: list[str]) -> list[NodeInfo]:
        left_out = Status(Code.UNRESOLVABLE, (messages.narrowed(by),))
        found.refusals = {node.name: left_out for node in self._cache.order if node.name not in names}
        if found.refusals:
            found.refused_by.update(by)
        return [node for node in self._cache.order if node.name in names]

    def _look(
        self, found: Found, points: ExtensionPoints, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]
    ) -> None:
        total = len(nodes)
        if not total:
            return
        whole = nodes is self._cache.order
        wanted = nodes_to_find(total, points.profile.percentage_of_nodes_to_score) if points.score else 1
        start = self._next % total if whole else 0
        nominated = self._any_nominated()
        known, first, others = points.verdicts(state, pod)
        feasible = found.feasible
        place, end = start, start + total
        while place < end and len(feasible) < wanted:
            # As many as are wanted still: however many of them fit, none is looked at in vain.
            several = [nodes[n % total] for n in range(place, min(place + wanted - len(feasible), end))]
            verdicts = known.each(several) if known is not None and not nominated else [None] * len(several)
            for node, verdict in zip(several, verdicts, strict=True):
                place += 1
                if nominated:
                    status = check_beside_nominated(points, state, pod, node, self._nominated)
                else:
                    status = verdict if verdict is not None else check(first, state, pod, node)
                    if verdict is None and known is not None:
                        known.put(node, status)
                    if others and status.ok:
                        status = check(others, state, pod, node)
                if status is SUCCESS or status.ok:
                    feasible.append(node)
                elif status.rejected:
                    found.refusals[node.name] = status
                    found.refused_by.add(status.plugin)
                else:
                    found.looked_at += place - start
                    found.error = status
                    return
        found.looked_at += place - start
        if whole:
            self._next = place % total


def best(
    points: ExtensionPoints, state: CycleState, pod: PodInfo, feasible: Sequence[NodeInfo], rng: random.Random
) -> str:
    """Return the node to take: the only one, or the best scored; ties as the profile says."""
    if len(feasible) == 1:
        return feasible[0].name
    return choose(points.scores(state, pod, feasible), points.profile.ties, rng)


def choose(scores: Mapping[str, int], ties: TieBreak, rng: random.Random) -> str:
    """Return one of the nodes with the highest score."""
    highest = max(scores.values())
    equals = [node for node, score in scores.items() if score == highest]
    if len(equals) == 1:
        return equals[0]
    return min(equals) if ties is TieBreak.BY_NAME else rng.choice(equals)

"""Pods that want to be together or apart (upstream interpodaffinity)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resources import NAMESPACES, NODES, PODS
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    Status,
    Wake,
    unresolvable,
    unschedulable,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.pod_terms import selects
from mews.kube.scheduling.podinfo import PodInfo, PodTerm, pod_info
from mews.kube.scheduling.scores import stretched

NOT_TOGETHER = unresolvable("node(s) didn't match pod affinity rules")
NOT_APART = unschedulable("node(s) didn't match pod anti-affinity rules")
OTHERS_OBJECT = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
HARD_POD_AFFINITY_WEIGHT = 1
"""What a required affinity of a running pod counts when scoring (upstream default hardPodAffinityWeight)."""

Domain = tuple[str, str]
"""(topology key, a node's value of it)."""


class _Counts(Struct):
    """Matching pods per domain: of the pod's affinity, of its anti-affinity, and terms of others against it."""

    together: Counter[Domain] = field(default_factory=Counter)
    apart: Counter[Domain] = field(default_factory=Counter)
    objections: Counter[Domain] = field(default_factory=Counter)

    def clone(self) -> _Counts:
        return _Counts(Counter(self.together), Counter(self.apart), Counter(self.objections))


class InterPodAffinity:
    """Required affinity and anti-affinity of the pod and, against it, of pods already there; preferred ones score."""

    name = "InterPodAffinity"
    weight = 2

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._namespaces = handle.informer(NAMESPACES)

    def _labels(self, namespace: str) -> Mapping[str, str]:
        return labels_of(self._namespaces.get(namespace) or {})

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Counts per domain; nothing to do when no term is involved."""
        counts = _Counts()
        own = bool(pod.affinity or pod.anti_affinity)
        for node in (self._handle.nodes if own else self._handle.with_anti_affinity).values():
            for other in (node.pods if own else node.with_anti_affinity).values():
                self._count(counts, pod, other, node, 1)
        if not own and not counts.objections:
            return SKIP
        state.data[self.name] = counts
        return SUCCESS

    def _count(self, counts: _Counts, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        for term in other.anti_affinity:
            if selects(term, pod, self._labels):
                _bump(counts.objections, term, node, sign)
        if pod.affinity and all(selects(term, other, self._labels) for term in pod.affinity):
            for term in pod.affinity:
                _bump(counts.together, term, node, sign)
        for term in pod.anti_affinity:
            if selects(term, other, self._labels):
                _bump(counts.apart, term, node, sign)

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Count a pod in, for "what if it were on this node"."""
        if self.name in state.data:
            self._count(state.data[self.name], pod, other, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Count a pod out, for "what if it were gone from this node"."""
        if self.name in state.data:
            self._count(state.data[self.name], pod, other, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Affinity first (unresolvable), then the pod's own anti-affinity, then that of others."""
        counts: _Counts = state.data[self.name]
        if not self._together(counts, pod, node):
            return NOT_TOGETHER
        if any(counts.apart[_domain(term, node)] > 0 for term in pod.anti_affinity if term.topology_key in node.labels):
            return NOT_APART
        if any(n > 0 and node.labels.get(key) == value for (key, value), n in counts.objections.items()):
            return OTHERS_OBJECT
        return SUCCESS

    def _together(self, counts: _Counts, pod: PodInfo, node: NodeInfo) -> bool:
        if any(term.topology_key not in node.labels for term in pod.affinity):
            return False
        if all(counts.together[_domain(term, node)] > 0 for term in pod.affinity):
            return True
        # The first of a group that only wants its own kind may start anywhere.
        return not any(n > 0 for n in counts.together.values()) and all(
            selects(term, pod, self._labels) for term in pod.affinity
        )

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Sums the weights per domain; nothing to do where no preference is involved."""
        own = bool(pod.preferred or pod.preferred_against)
        weights: Counter[Domain] = Counter()
        for node in (self._handle.nodes if own else self._handle.with_affinity).values():
            for other in (node.pods if own else node.with_affinity).values():
                self._weigh(weights, pod, other, node)
        if not weights:
            return SKIP
        state.data[f"{self.name}/score"] = weights
        return SUCCESS

    def _weigh(self, weights: Counter[Domain], pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        def add(terms: Iterable[PodTerm], whom: PodInfo, sign: int) -> None:
            for term in terms:
                if selects(term, whom, self._labels):
                    _bump(weights, term, node, sign * (term.weight or HARD_POD_AFFINITY_WEIGHT))

        add(pod.preferred, other, 1)
        add(pod.preferred_against, other, -1)
        add(other.affinity, pod, 1)
        add(other.preferred, pod, 1)
        add(other.preferred_against, pod, -1)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the sum of the weights of the node's domains."""
        weights: Counter[Domain] = state.data[f"{self.name}/score"]
        return sum(weight for (key, value), weight in weights.items() if node.labels.get(key) == value)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Stretch the scores so that the smallest becomes 0 and the largest 100."""
        return stretched(scores)

    def wakes_on(self) -> Sequence[Wake]:
        """Return a pod that affinity looks for has come or changed, one that stood against has gone, a node has new
        labels."""
        return (
            Wake(PODS, Action.ANY, self._pod_matters),
            Wake(NODES, Action.ADD | Action.UPDATE, _domains_changed),
        )

    def _pod_matters(self, pod: PodInfo, old: Object | None, new: Object | None) -> bool:
        if old is not None and new is not None and labels_of(old) == labels_of(new):
            return False
        if new is not None and any(selects(term, pod_info(new), self._labels) for term in pod.affinity):
            return True
        if old is None:
            return False
        gone = pod_info(old)
        return any(selects(term, gone, self._labels) for term in pod.anti_affinity) or any(
            selects(term, pod, self._labels) for term in gone.anti_affinity
        )


def _domain(term: PodTerm, node: NodeInfo) -> Domain:
    return term.topology_key, node.labels[term.topology_key]


def _bump(counts: Counter[Domain], term: PodTerm, node: NodeInfo, by: int) -> None:
    if term.topology_key in node.labels:
        counts[_domain(term, node)] += by


def _domains_changed(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if new is None:
        return False
    before = labels_of(old or {})
    keys = [term.topology_key for term in (*pod.affinity, *pod.anti_affinity)]
    return old is None or any(before.get(key) != labels_of(new).get(key) for key in keys)

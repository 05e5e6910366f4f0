"""Pods spread evenly over domains (upstream podtopologyspread)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, labels_of, namespace_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.api.selectors import match_expressions
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
from mews.kube.scheduling.plugins.node_affinity import matches
from mews.kube.scheduling.plugins.taints import untolerated
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.scores import MAX_SCORE

UNEVEN = unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


class Constraint(Struct, frozen=True):
    """One topologySpreadConstraint of a pod, with matchLabelKeys resolved to the pod's own labels."""

    key: str
    max_skew: int
    min_domains: int
    selector: Mapping[str, Any] | None
    same: Mapping[str, str]
    honor_affinity: bool
    honor_taints: bool

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return whether pods with these labels are counted."""
        if self.selector is None or any(labels.get(k) != v for k, v in self.same.items()):
            return False
        return match_expressions(self.selector, labels)

    def counts_node(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Return whether the node belongs to the domains looked at."""
        if self.honor_affinity and not matches(pod, node.labels, node.name):
            return False
        return not (self.honor_taints and untolerated(node.taints, pod.tolerations))


def constraints_of(pod: PodInfo, when_unsatisfiable: str) -> tuple[Constraint, ...]:
    """Return the pod's constraints of one kind, DoNotSchedule or ScheduleAnyway."""
    return tuple(
        Constraint(
            key=raw["topologyKey"],
            max_skew=int(raw["maxSkew"]),
            min_domains=int(raw.get("minDomains") or 1),
            selector=raw.get("labelSelector"),
            same={k: pod.labels[k] for k in raw.get("matchLabelKeys") or () if k in pod.labels},
            honor_affinity=raw.get("nodeAffinityPolicy", "Honor") == "Honor",
            honor_taints=raw.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )
        for raw in pod.spread
        if raw.get("whenUnsatisfiable", "DoNotSchedule") == when_unsatisfiable
    )


class _Tally:
    """Matching pods per domain, for each constraint."""

    __slots__ = ("constraints", "counts")

    def __init__(self, constraints: tuple[Constraint, ...], counts: list[Counter[str]]) -> None:
        self.constraints = constraints
        self.counts = counts

    def clone(self) -> _Tally:
        return _Tally(self.constraints, [Counter(count) for count in self.counts])

    def count(self, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        if other.namespace != pod.namespace or other.deleting:
            return
        for constraint, count in zip(self.constraints, self.counts, strict=True):
            value = node.labels.get(constraint.key)
            if value is not None and value in count and constraint.selects(other.labels):
                count[value] += sign


def tally(pod: PodInfo, nodes: Mapping[str, NodeInfo], constraints: tuple[Constraint, ...]) -> _Tally:
    """Count over the nodes that have all the keys."""
    result = _Tally(constraints, [Counter() for _ in constraints])
    keyed = [node for node in nodes.values() if all(c.key in node.labels for c in constraints)]
    for constraint, count in zip(constraints, result.counts, strict=True):
        for node in keyed:
            if constraint.counts_node(pod, node):
                count[node.labels[constraint.key]] += sum(
                    other.namespace == pod.namespace and not other.deleting and constraint.selects(other.labels)
                    for other in node.pods.values()
                )
    return result


class PodTopologySpread:
    """DoNotSchedule constraints filter; ScheduleAnyway ones score by how few matching pods the domain has."""

    name = "PodTopologySpread"
    weight = 2

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Counts; nothing to do without constraints."""
        constraints = constraints_of(pod, "DoNotSchedule") if pod.spread else ()
        if not constraints:
            return SKIP
        state.data[self.name] = tally(pod, self._handle.nodes, constraints)
        return SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Count a pod in, for "what if it were on this node"."""
        if self.name in state.data:
            state.data[self.name].count(pod, other, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Count a pod out, for "what if it were gone from this node"."""
        if self.name in state.data:
            state.data[self.name].count(pod, other, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Unresolvable without the key; unschedulable when the domain would be fuller than the emptiest by too much."""
        counted: _Tally = state.data[self.name]
        for constraint, count in zip(counted.constraints, counted.counts, strict=True):
            value = node.labels.get(constraint.key)
            if value is None:
                return NO_LABEL
            fewest = min(count.values(), default=0) if len(count) >= constraint.min_domains else 0
            if count[value] + constraint.selects(pod.labels) - fewest > constraint.max_skew:
                return UNEVEN
        return SUCCESS

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Skip pods without ScheduleAnyway constraints."""
        constraints = constraints_of(pod, "ScheduleAnyway") if pod.spread else ()
        if not constraints:
            return SKIP
        state.data[f"{self.name}/score"] = tally(pod, self._handle.nodes, constraints)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return how full the node's domains are, weighted by how many domains there are; -1 without a key."""
        counted: _Tally = state.data[f"{self.name}/score"]
        total = 0.0
        for constraint, count in zip(counted.constraints, counted.counts, strict=True):
            value = node.labels.get(constraint.key)
            if value is None:
                return -1
            total += count[value] * log(len(count) + 2) + constraint.max_skew - 1
        return round(total)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Return the emptier the better; 0 for nodes without a key."""
        valid = [score for score in scores.values() if score >= 0]
        low, high = min(valid, default=0), max(valid, default=0)

        def part(score: int) -> int:
            if score < 0:
                return 0
            return MAX_SCORE * (high + low - score) // high if high else MAX_SCORE

        return {node: part(score) for node, score in scores.items()}

    def wakes_on(self) -> Sequence[Wake]:
        """A counted pod has come, gone or changed its labels; a node has come, gone or changed its labels."""
        return Wake(PODS, Action.ANY, _pod_counts), Wake(NODES, Action.ANY, _domains_changed)


def _pod_counts(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if old is not None and new is not None and labels_of(old) == labels_of(new):
        return False
    constraints = constraints_of(pod, "DoNotSchedule")
    return any(
        other is not None and namespace_of(other) == pod.namespace and constraint.selects(labels_of(other))
        for constraint in constraints
        for other in (old, new)
    )


def _domains_changed(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    before, after = labels_of(old or {}), labels_of(new or {})
    keys = [constraint.key for constraint in constraints_of(pod, "DoNotSchedule")]
    return any(before.get(key) != after.get(key) for key in keys)

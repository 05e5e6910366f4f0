"""Node selectors and node affinity (upstream nodeaffinity)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, labels_of, name_of
from mews.kube.api.resources import NODES
from mews.kube.api.selectors import expression_holds
from mews.kube.scheduling.framework import SKIP, SUCCESS, Action, CycleState, Handle, Status, Wake, unresolvable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.scores import spread_out

NO_MATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
CONFLICT = unresolvable("pod affinity terms conflict")
Term = Mapping[str, Any]


def term_holds(term: Term, labels: Mapping[str, str], name: str) -> bool:
    """Return one nodeSelectorTerm; an empty one selects nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(expression_holds(e, labels) for e in expressions) and all(
        expression_holds(f, {"metadata.name": name}) for f in fields
    )


def required_terms(pod: PodInfo) -> Sequence[Term] | None:
    """Return the terms of required node affinity, one of which must hold; None when the pod has none."""
    required = pod.node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or ()


def matches(pod: PodInfo, labels: Mapping[str, str], name: str) -> bool:
    """Return whether a node with these labels and name satisfies the pod's selector and required affinity."""
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    terms = required_terms(pod)
    return terms is None or any(term_holds(term, labels, name) for term in terms)


def named_nodes(pod: PodInfo) -> frozenset[str] | None:
    """Return the nodes that required affinity names by metadata.name in every term; None when it does not narrow so."""
    terms = required_terms(pod)
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        fields = [f for f in term.get("matchFields") or () if f["key"] == "metadata.name" and f["operator"] == "In"]
        if not fields:
            return None
        names |= set.intersection(*(set(f["values"]) for f in fields))
    return frozenset(names)


class NodeAffinity:
    """Refuses nodes that selector and required affinity exclude; prefers by the weights of preferred affinity."""

    name = "NodeAffinity"
    weight = 2

    def __init__(self, handle: Handle) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Narrows to nodes named outright; nothing to do for a pod without selector and affinity."""
        if not pod.node_selector and required_terms(pod) is None:
            return SKIP
        names = named_nodes(pod)
        if names is None:
            return SUCCESS
        return Status(nodes=names) if names else CONFLICT

    def sign(self, pod: PodInfo) -> Hashable:
        """Return its selector and its affinity, in the order and words of the pod."""
        return repr((pod.node_selector, pod.node_affinity))

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Unresolvable when it does not match."""
        return SUCCESS if matches(pod, node.labels, node.name) else NO_MATCH

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Skip pods without preferences."""
        return SUCCESS if _preferences(pod) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the sum of the weights of the terms that hold."""
        return sum(
            int(preference["weight"])
            for preference in _preferences(pod)
            if term_holds(preference["preference"], node.labels, node.name)
        )

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Return them in proportion to the best."""
        return spread_out(scores)

    def wakes_on(self) -> Sequence[Wake]:
        """Return a node that matches now and did not before."""
        return (Wake(NODES, Action.ADD | Action.UPDATE, _now_matches),)


def _preferences(pod: PodInfo) -> Sequence[Mapping[str, Any]]:
    return pod.node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()


def _now_matches(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    def fits(node: Object) -> bool:
        return matches(pod, labels_of(node), name_of(node))

    return new is not None and fits(new) and (old is None or not fits(old))

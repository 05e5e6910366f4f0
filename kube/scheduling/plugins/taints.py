"""Taints and tolerations (upstream tainttoleration; k8s.io/component-helpers/scheduling/corev1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES
from mews.kube.scheduling.framework import SKIP, SUCCESS, Action, CycleState, Handle, Status, Wake, unresolvable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.scores import spread_out

Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]

UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")
_HARD = ("NoSchedule", "NoExecute")
_SOFT = "PreferNoSchedule"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether this toleration covers this taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether any toleration covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Return whether a taint of effect NoSchedule or NoExecute is left uncovered."""
    return any(taint.get("effect") in _HARD and not tolerated(taint, tolerations) for taint in taints)


class TaintToleration:
    """Refuses nodes with untolerated taints; prefers nodes with fewer untolerated PreferNoSchedule ones."""

    name = "TaintToleration"
    weight = 3

    def __init__(self, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        """Return its tolerations, in the order and words of the pod."""
        return repr(pod.tolerations)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Unresolvable when a hard taint is not tolerated."""
        if not node.taints or not untolerated(node.taints, pod.tolerations):
            return SUCCESS
        return UNTOLERATED

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Return it without soft taints all nodes are alike."""
        soft = any(taint.get("effect") == _SOFT for node in nodes for taint in node.taints)
        return SUCCESS if soft else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the number of soft taints not tolerated."""
        soft = [t for t in pod.tolerations if t.get("effect") in (None, "", _SOFT)]
        return sum(taint.get("effect") == _SOFT and not tolerated(taint, soft) for taint in node.taints)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Turn counts of taints into scores: the fewer taints are not tolerated, the better."""
        return spread_out(scores, reverse=True)

    def wakes_on(self) -> Sequence[Wake]:
        """Return a node that the pod now tolerates and did not before."""
        return (Wake(NODES, Action.ADD | Action.UPDATE, _now_tolerated),)


def _now_tolerated(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    def closed(node: Object) -> bool:
        return untolerated((node.get("spec") or {}).get("taints") or (), pod.tolerations)

    return new is not None and not closed(new) and (old is None or closed(old))

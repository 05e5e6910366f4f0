"""Filters that look at the node alone: its name and whether it is cordoned (upstream nodename, nodeunschedulable)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES
from mews.kube.scheduling.framework import SKIP, SUCCESS, Action, CycleState, Handle, Status, Wake, unresolvable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.taints import tolerated
from mews.kube.scheduling.podinfo import PodInfo

CORDONED = unresolvable("node(s) were unschedulable")
OTHER_NAME = unresolvable("node(s) didn't match the requested node name")
_CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class NodeUnschedulable:
    """Refuses cordoned nodes, unless the pod tolerates their taint."""

    name = "NodeUnschedulable"

    def __init__(self, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        """Return its tolerations, in the order and words of the pod."""
        return repr(pod.tolerations)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Refuse cordoned nodes; removing other pods does not help there."""
        if not node.unschedulable or tolerated(_CORDON_TAINT, pod.tolerations):
            return SUCCESS
        return CORDONED

    def wakes_on(self) -> Sequence[Wake]:
        """Return a new node, or one that is uncordoned."""
        return (Wake(NODES, Action.ADD | Action.UPDATE, _uncordoned),)


def _uncordoned(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    def closed(node: Object) -> bool:
        return bool((node.get("spec") or {}).get("unschedulable")) and not tolerated(_CORDON_TAINT, pod.tolerations)

    return new is not None and not closed(new) and (old is None or closed(old))


class NodeName:
    """Refuses all nodes but the one the pod names (before binding: only pods that were made so)."""

    name = "NodeName"

    def __init__(self, handle: Handle) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Nothing to do for pods that name none."""
        return SUCCESS if pod.node_name else SKIP

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the node that it names."""
        return pod.node_name

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Unresolvable for any other node."""
        return SUCCESS if pod.node_name in ("", node.name) else OTHER_NAME

    def wakes_on(self) -> Sequence[Wake]:
        """Return a new node."""
        return (Wake(NODES, Action.ADD),)

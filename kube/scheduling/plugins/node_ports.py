"""Host ports (upstream nodeports)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES, PODS
from mews.kube.scheduling.framework import SKIP, SUCCESS, Action, CycleState, Handle, Status, Wake, unschedulable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo, pod_info

TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    """Refuses nodes on which a host port of the pod is in use."""

    name = "NodePorts"

    def __init__(self, handle: Handle) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Nothing to do for pods without host ports."""
        return SUCCESS if pod.ports else SKIP

    def sign(self, pod: PodInfo) -> Hashable:
        """Return its host ports."""
        return pod.ports

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Unschedulable when a port clashes."""
        return TAKEN if any(node.port_taken(port) for port in pod.ports) else SUCCESS

    def wakes_on(self) -> Sequence[Wake]:
        """Return a pod gone that held a host port of the same number; a new node."""
        return Wake(PODS, Action.DELETE, _port_freed), Wake(NODES, Action.ADD)


def _port_freed(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    wanted = {port[1:] for port in pod.ports}
    return old is not None and any(port[1:] in wanted for port in pod_info(old).ports)

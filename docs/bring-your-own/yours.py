"""A scheduler plugin and a policy of one's own, as Mews loads them by ``module:callable``."""

from __future__ import annotations

from mews.kube.scheduling.framework import SUCCESS, CycleState, Handle, Status, unschedulable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo


class Favourite:
    """Every pod goes to one node."""

    name = "Favourite"

    def __init__(self, handle: Handle, *, node: str) -> None:
        self._node = node

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Refuses all but the favourite."""
        return SUCCESS if node.name == self._node else unschedulable("node(s) were not the favourite")


def most_left(requested: int, available: int) -> int:
    """Worst fit, where KubeComp's equation 1 takes the tightest one."""
    return available - requested

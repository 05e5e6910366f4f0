"""Even use of cpu and memory (upstream noderesources: balanced allocation)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import sqrt

from mews.kube.scheduling.framework import SKIP, SUCCESS, CycleState, Handle, Status
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.scores import MAX_SCORE


def deviation(shares: Sequence[float]) -> float:
    """Return the standard deviation; 0 for fewer than two."""
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        return abs(shares[0] - shares[1]) / 2
    mean = sum(shares) / len(shares)
    return sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))


class NodeResourcesBalancedAllocation:
    """Prefers nodes on which the used shares of the resources would be alike."""

    name = "NodeResourcesBalancedAllocation"
    weight = 1

    def __init__(self, handle: Handle, *, resources: Sequence[str] = ("cpu", "memory")) -> None:
        self._resources = tuple(resources)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Pods that ask for none of the resources change no balance."""
        return SUCCESS if any(pod.requests.get(resource) for resource in self._resources) else SKIP

    def sign(self, pod: PodInfo) -> Hashable:
        """Return what it asks of the resources."""
        return tuple(pod.requests.get(resource, 0) for resource in self._resources)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """100 less the standard deviation of the shares, in percent."""
        shares = [
            min(1.0, (node.requested.get(resource, 0) + pod.requests.get(resource, 0)) / capacity)
            for resource in self._resources
            if (capacity := node.allocatable.get(resource, 0))
        ]
        return int((1 - deviation(shares)) * MAX_SCORE)

"""A profile that takes any of the nodes that fit, all alike."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.framework import CycleState, Handle, PluginFactory
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo


class AnyNode:
    """Scores all nodes alike. A profile that scores nothing at all would not do: its cycle ends with the first node
    that fits, one after the other in turn, and chance has no part in it."""

    name = "AnyNode"

    def __init__(self, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the same for every node."""
        return 0


def any_node_profile(scheduler_name: str, plugins: Sequence[PluginFactory]) -> SchedulerProfile:
    """These plugins decide what fits; which of the nodes that do is left to the scheduler's stream of chance."""
    return SchedulerProfile(scheduler_name, (*plugins, AnyNode), score_weights={AnyNode.name: 1})

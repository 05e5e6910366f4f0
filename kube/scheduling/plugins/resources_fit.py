"""Do the pod's requests fit, and how well (upstream noderesources: fit, least and most allocated)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType

from mews.kube.api.objects import Object, is_terminal, node_name_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.framework import SUCCESS, Action, Code, CycleState, Handle, Status, Wake
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.extended_resources import ExtendedResources
from mews.kube.scheduling.podinfo import Amounts, PodInfo, amounts, pod_info
from mews.kube.scheduling.scores import MAX_SCORE

CPU_AND_MEMORY: Mapping[str, int] = MappingProxyType({"cpu": 1, "memory": 1})
_TOO_MANY_PODS = "Too many pods"


class Strategy(Enum):
    """Which nodes are better: empty ones or full ones."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"


def least(requested: int, capacity: int) -> int:
    """Return the free share in percent; 0 when over capacity."""
    return 0 if requested > capacity else (capacity - requested) * MAX_SCORE // capacity


def most(requested: int, capacity: int) -> int:
    """Return the used share in percent, at most 100."""
    return min(requested, capacity) * MAX_SCORE // capacity


_SCORERS: dict[Strategy, Callable[[int, int], int]] = {
    Strategy.LEAST_ALLOCATED: least,
    Strategy.MOST_ALLOCATED: most,
}


def shortages(requests: Amounts, node: NodeInfo) -> Status:
    """SUCCESS, or every resource that is short; unresolvable when even the empty node has too little."""
    reasons: list[str] = []
    code = Code.UNSCHEDULABLE
    if len(node.pods) + 1 > node.pod_limit:
        reasons.append(_TOO_MANY_PODS)
    allocatable, requested = node.allocatable, node.requested
    for resource, wanted in requests.items():
        there = allocatable.get(resource, 0)
        if wanted > there - requested.get(resource, 0):
            reasons.append(f"Insufficient {resource}")
            if wanted > there:
                code = Code.UNRESOLVABLE
    return Status(code, tuple(reasons)) if reasons else SUCCESS


class NodeResourcesFit:
    """Refuses nodes without room; scores by what would be allocated.

    Extended resources that a node has no device plugin for, and a device class stands behind, are DynamicResources'
    business where ``devices`` has them.

    ``ignored_resource_groups``: extended resources of these groups (``falcon.com``) are another plugin's business.
    ``resources`` are the scored ones with their weights; extended ones count only for pods that ask for them.
    """

    name = "NodeResourcesFit"
    weight = 1

    def __init__(
        self,
        handle: Handle,
        *,
        ignored_resource_groups: Sequence[str] = (),
        strategy: Strategy = Strategy.LEAST_ALLOCATED,
        resources: Mapping[str, int] = CPU_AND_MEMORY,
        devices: DeviceFeatures = DEFAULT_FEATURES,
    ) -> None:
        self._ignored = frozenset(ignored_resource_groups)
        self._strategy = _SCORERS[strategy]
        self._resources = tuple(resources.items())
        self._extended = ExtendedResources(handle, devices)
        self._is_extended = devices.extended_resource

    def _counted(self, pod: PodInfo) -> Amounts:
        if not self._ignored:
            return pod.requests
        return {r: n for r, n in pod.requests.items() if r.partition("/")[0] not in self._ignored}

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Sums up once what is asked."""
        state.data[self.name] = self._counted(pod)
        return SUCCESS

    def sign(self, pod: PodInfo) -> Hashable:
        """Return what it asks, what scoring takes it to ask, and behind what of it stands a device class now."""
        classes = tuple(self._extended.class_of(name) for name in pod.requests) if self._is_extended else ()
        return (tuple(pod.requests.items()), pod.scoring_cpu, pod.scoring_memory, classes)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Unschedulable with all that is short."""
        return shortages(self._of_node(state.data[self.name], node.allocatable), node)

    def _of_node(self, requests: Amounts, allocatable: Amounts) -> Amounts:
        """Return what of it a node must have by itself."""
        left = self._extended.left_to_devices(requests, allocatable)
        return {r: n for r, n in requests.items() if r not in left} if left else requests

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the weighted mean over the scored resources the node has, be it as devices of a class."""
        total = weights = 0
        for resource, weight in self._resources:
            capacity = node.allocatable.get(resource, 0)
            if not capacity and resource in ("cpu", "memory"):
                continue
            if resource == "cpu":
                requested = node.scoring_cpu + pod.scoring_cpu
            elif resource == "memory":
                requested = node.scoring_memory + pod.scoring_memory
            else:
                asked = pod.requests.get(resource, 0)
                if not asked:
                    continue
                requested = node.requested.get(resource, 0) + asked
                if not capacity:
                    capacity, taken = self._extended.devices(state, resource, node)
                    requested = taken + asked
                if not capacity:
                    continue
            total += weight * self._strategy(requested, capacity)
            weights += weight
        return total // weights if weights else 0

    def wakes_on(self) -> Sequence[Wake]:
        """Return a bound pod gone or shrunk; a node that has enough now and had not, or has more of what is asked."""
        return (
            Wake(PODS, Action.DELETE),
            Wake(PODS, Action.UPDATE, _shrunk),
            Wake(NODES, Action.ADD | Action.UPDATE, self._more_room),
            *self._extended.wakes_on(),
        )

    def _more_room(self, pod: PodInfo, old: Object | None, new: Object | None) -> bool:
        after = _allocatable(new)
        wanted = self._of_node(self._counted(pod), after)
        if any(value > after.get(resource, 0) for resource, value in wanted.items()) or after.get("pods", 0) < 1:
            return False
        before = _allocatable(old)
        if old is None or len(wanted) < len(self._counted(pod)):
            return True
        return any(after.get(r, 0) > before.get(r, 0) for r in (*wanted, "pods"))


def _allocatable(node: Object | None) -> Amounts:
    return amounts(((node or {}).get("status") or {}).get("allocatable") or {})


def _shrunk(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if old is None or new is None or not node_name_of(new) or is_terminal(new):
        return False
    if old["spec"].get("containers") == new["spec"].get("containers"):
        return False
    before, after = pod_info(old).requests, pod_info(new).requests
    return any(after.get(resource, 0) < before.get(resource, 0) for resource in pod.requests)

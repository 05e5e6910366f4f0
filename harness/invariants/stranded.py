"""Law 19: a pod that fits the healthy devices of a node is not kept waiting for what pods hold of broken ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal

from msgspec import Struct

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.observed_hardware import DeviceList
from mews.harness.invariants.scheduled import (
    amounts_of,
    awaited,
    fits_but_for,
    free_amounts,
    holdings_of,
    is_waiting,
)
from mews.harness.journal import Line
from mews.kube.api.objects import Object, key_of, uid_of
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant

COUNTED = (
    "the kubelet's device manager takes a broken device off the node's allocatable, and the scheduler counts the pods "
    "that hold it against what is left (kubelet: pkg/kubelet/cm/devicemanager/manager.go, GetCapacity)"
)
STRANDED_S = 30.0
"""A pod waits for as long, at least, before it is said to: nodes follow their devices within a few ticks."""


class _Broken(Struct, frozen=True):
    """A device that is broken and held: how much of the resource, by which pods."""

    node: str
    resource: str
    device: str
    amount: int
    pods: tuple[str, ...]
    line: Line


class Stranded(Invariant[ObservedState]):
    """Capacity is per device: on a node with one broken device, the other devices are as good as before. Where pods
    hold the broken device, an equal amount of healthy capacity is not available to anybody. The law reports each such
    device once a pod waits that would fit the healthy devices that nobody holds. Pods that ask for a pool's devices get
    them from elsewhere."""

    number = 19
    name = "healthy devices are not stranded behind a broken one"
    of_time = True

    def __init__(self, schedulers: Collection[str]) -> None:
        self._schedulers = schedulers
        self._since: dict[tuple[str, str, str], float] = {}

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """Judge the pods that wait, if there is a broken device that is held."""
        broken = list(_broken(state))
        if not broken:
            self._since = {}
            return
        waiting = [pod for pod in objects.pods.values() if is_waiting(pod, self._schedulers)]
        kept = _kept_waiting(waiting, broken, objects, state) if waiting else {}
        self._since = {key: self._since.get(key, t) for key in kept}
        for each in broken:
            pods = [pod for pod in kept if pod[:2] == (each.node, each.resource) and self._is_due(pod, t)]
            if pods:
                names = ", ".join(sorted(kept[pod] for pod in pods))
                held = f"{each.amount} {each.resource} of {each.device} on {each.node}, which is broken"
                what = f"{', '.join(each.pods)} hold {held}; as much that is healthy is stranded, and {names} would fit"
                yield Breach((each.node, each.resource, each.device), what, each.line, known=COUNTED)

    def _is_due(self, key: tuple[str, str, str], t: float) -> bool:
        return t - self._since[key] >= STRANDED_S


def _broken(state: ObservedState) -> Iterator[_Broken]:
    for node, lists in state.world.lists.items():
        for resource, shown in lists.items():
            if shown.unhealthy:
                yield from _held_of(node, resource, shown, state)


def _held_of(node: str, resource: str, shown: DeviceList, state: ObservedState) -> Iterator[_Broken]:
    unhealthy, amounts, pods = set(shown.unhealthy), Counter[str](), dict[str, set[str]]()
    for holding in holdings_of(node, resource, state):
        for device in unhealthy.intersection(holding.devices):
            amounts[_whole(device, state)] += 1
            pods.setdefault(_whole(device, state), set()).add(holding.pod)
    for device in sorted(amounts):
        yield _Broken(node, resource, device, amounts[device], tuple(sorted(pods[device])), shown.line)


def _whole(device: str, state: ObservedState) -> str:
    """Return the device of which it is a part; itself where it is none."""
    return next((whole for rule in state.systems.part_of if (whole := rule(device))), device)


def _kept_waiting(
    waiting: Collection[Object], broken: Collection[_Broken], objects: ClusterObjects, state: ObservedState
) -> Mapping[tuple[str, str, str], str]:
    """Node, resource and uid of the pods that only the count of what is broken keeps from a node -> their names."""
    free, found = free_amounts(objects, state), {}
    for node, resource in sorted({(each.node, each.resource) for each in broken if each.node in objects.nodes}):
        counted = free[node].get(resource, Decimal(0))
        stranded = sum(each.amount for each in broken if (each.node, each.resource) == (node, resource))
        there = _largest(node, resource, objects, state)
        for pod in waiting:
            amount = amounts_of(pod).get(resource, Decimal(0))
            kept = counted < amount <= min(counted + stranded, Decimal(there))
            if kept and fits_but_for(resource, pod, objects.nodes[node], free[node], state, objects):
                found[node, resource, uid_of(pod)] = key_of(pod)
    return found


def _largest(node: str, resource: str, objects: ClusterObjects, state: ObservedState) -> int:
    """Return what a pod can have of the healthy devices that nobody holds, and no bound pod is yet to get: of parts,
    those of one device."""
    held = {device for each in holdings_of(node, resource, state) for device in each.devices}
    free = [device for device in state.world.lists[node][resource].healthy if device not in held]
    wholes = Counter(_whole(device, state) for device in free)
    is_parted = any(whole not in free for whole in wholes)
    return (max(wholes.values(), default=0) if is_parted else len(free)) - awaited(node, resource, objects, state)

"""How much of a node's devices is in use, and by whom: values that are never changed in place, so that "what if" is
one of them more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mews.systems.koordinator.allocations import Allocations, DeviceAllocation
from mews.systems.koordinator.devices import Amounts, NodeDevice, NodeDeviceReport
from mews.systems.koordinator.hints import Exclusive
from mews.systems.koordinator.names import CORE, GPU, MEMORY, RATIO, WHOLE

Slot = tuple[str, int]
"""A device of a node: type, minor."""


@dataclass(frozen=True, slots=True)
class PodUse:
    """What one pod has, and of which types alone. ``uid`` is the pod's, or names a container whose devices were found
    held."""

    uid: str
    key: str
    allocations: Allocations
    exclusive: Mapping[str, Exclusive] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, eq=False)
class NodeUse:
    """A node's devices with what is used of them. What pods have of a device stays counted whether the device is
    healthy, unhealthy, or not listed at all for the moment. ``memo`` keeps answers about this very value."""

    report: NodeDeviceReport
    pods: Mapping[str, PodUse] = field(default_factory=dict)
    used: Mapping[Slot, Amounts] = field(default_factory=dict)
    users: Mapping[Slot, tuple[str, ...]] = field(default_factory=dict)
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, report: NodeDeviceReport) -> NodeUse:
        """Return a node whose devices nobody uses."""
        return cls(report)

    def reported(self, report: NodeDeviceReport) -> NodeUse:
        """Return the same pods on other devices: numbers change with the cards, ids never do."""
        use = NodeUse(report)
        for pod in self.pods.values():
            use = use.plus(pod)
        return use

    def slot_of(self, allocation: DeviceAllocation) -> Slot:
        """Return the device that an allocation is of: by its id where that is listed, else by its minor, unless that is
        another device's by now."""
        if allocation.id:
            for device in self.report.devices:
                if device.type == allocation.type and device.id == allocation.id:
                    return device.type, device.minor
            if any((d.type, d.minor) == (allocation.type, allocation.minor) and d.id for d in self.report.devices):
                return f"{allocation.type} {allocation.id}", -1
        return allocation.type, allocation.minor

    def offers(self, allocations: Allocations) -> bool:
        """Return whether each of these is of a device that is listed and healthy."""
        well = {(device.type, device.minor) for device in self.report.devices if device.health}
        return all(self.slot_of(each) in well for each in allocations)

    def plus(self, pod: PodUse) -> NodeUse:
        """Return it with one more pod; one of the same uid is replaced."""
        base = self.minus(pod.uid)
        used, users = dict(base.used), dict(base.users)
        for each in pod.allocations:
            slot = self.slot_of(each)
            used[slot] = _sum(used.get(slot, {}), each.resources, 1)
            if pod.uid not in users.get(slot, ()):
                users[slot] = (*users.get(slot, ()), pod.uid)
        return NodeUse(self.report, {**base.pods, pod.uid: pod}, used, users)

    def minus(self, uid: str) -> NodeUse:
        """Return it without a pod; one that is not there changes nothing."""
        pod = self.pods.get(uid)
        if pod is None:
            return self
        used, users = dict(self.used), dict(self.users)
        for each in pod.allocations:
            slot = self.slot_of(each)
            used[slot] = _sum(used.get(slot, {}), each.resources, -1)
            users[slot] = tuple(user for user in users.get(slot, ()) if user != uid)
            if not users[slot]:
                del users[slot], used[slot]
        return NodeUse(self.report, {key: value for key, value in self.pods.items() if key != uid}, used, users)

    def free(self, device: NodeDevice) -> Amounts:
        """Return what may still be given of a device: nothing of one that is not healthy."""
        used = self.used.get((device.type, device.minor), {})
        if not device.health:
            return dict.fromkeys(device.resources, 0)
        return {name: max(total - used.get(name, 0), 0) for name, total in device.resources.items()}

    def exclusive(self, device: NodeDevice) -> frozenset[Exclusive]:
        """Return how the pods that have some of a device have it for themselves."""
        users = self.users.get((device.type, device.minor), ())
        return frozenset(self.pods[uid].exclusive.get(device.type, "") for uid in users) - {""}

    def functions(self, device: NodeDevice) -> frozenset[str | int]:
        """Virtual functions of a device that pods have: by bus address, by minor where an annotation says none."""
        return frozenset(
            function.bus or function.minor
            for uid in self.users.get((device.type, device.minor), ())
            for each in self.pods[uid].allocations
            if self.slot_of(each) == (device.type, device.minor)
            for function in each.functions
        )


def _sum(one: Amounts, other: Amounts, sign: int) -> dict[str, int]:
    return {name: one.get(name, 0) + sign * other.get(name, 0) for name in (*one, *(n for n in other if n not in one))}


def node_sums(devices: Iterable[NodeDevice]) -> dict[str, int]:
    """Return what a node offers in all: the resources of its healthy devices, and of GPUs ``koordinator.sh/gpu`` as
    well."""
    sums: dict[str, int] = {}
    for device in devices:
        for name, value in device.resources.items():
            sums[name] = sums.get(name, 0) + (value if device.health else 0)
        if device.type == GPU:
            sums[WHOLE] = sums.get(WHOLE, 0) + (100 if device.health else 0)
    return sums


def whole_of(device: NodeDevice) -> DeviceAllocation:
    """Return all of a device."""
    return DeviceAllocation(device.type, device.minor, dict(device.resources), device.id)


def gpu_resources(memory: int) -> dict[str, int]:
    """Return all that a GPU with so many bytes has."""
    return {CORE: 100, MEMORY: memory, RATIO: 100}


def found_uses(report: NodeDeviceReport, ours: Iterable[str], ended: Iterable[str]) -> tuple[list[PodUse], list[str]]:
    """Return what containers hold that our scheduler did not place, and the ids among it that the report does not list.

    ``ours``: uids of pods whose annotation says what they have: theirs is not what their kubelet thinks. ``ended``:
    uids of pods that hold nothing any more. A replica of a shared device (``GPU-…::2``) is taken for the device. What
    several containers of a pod hold it has once: kubelets pass on to the others what an init container had.
    """
    skipped = frozenset((*ours, *ended))
    by_id = {device.id: device for device in report.devices if device.id}
    uses: dict[str, PodUse] = {}
    unknown: list[str] = []
    held: set[tuple[str, str, int]] = set()
    for entry in (*report.held, *report.found):
        if entry.pod_uid in skipped:
            continue
        ids = dict.fromkeys(each.partition("::")[0] for each in entry.ids)
        unknown += [each for each in ids if each not in by_id]
        known = tuple(_not_yet(held, entry.pod_uid, [by_id[each] for each in ids if each in by_id]))
        if known:
            uid = f"held:{entry.pod_uid}:{entry.container}:{entry.resource}"
            before = uses.get(uid)
            given = {(a.type, a.minor): a for a in (*(before.allocations if before else ()), *known)}
            uses[uid] = PodUse(uid, f"{entry.pod_uid}/{entry.container}", tuple(given.values()))
    return list(uses.values()), list(dict.fromkeys(unknown))


def _not_yet(held: set[tuple[str, str, int]], pod: str, devices: Iterable[NodeDevice]) -> Iterable[DeviceAllocation]:
    for device in devices:
        if (pod, device.type, device.minor) not in held:
            held.add((pod, device.type, device.minor))
            yield whole_of(device)

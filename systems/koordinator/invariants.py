"""Of no device more than there is, and to nobody what the Device does not show (invariant 3, by the annotations)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, node_name_of
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.koordinator.allocations import DeviceAllocation, parse_allocations
from mews.systems.koordinator.devices import NodeDeviceReport, parse
from mews.systems.koordinator.errors import BadDeviceObject
from mews.systems.koordinator.names import ALLOCATED, MEMORY

DEVICE_EVENTS = ("device-published", "device-withdrawn")
"""Journal lines of Device objects (``System.watched``)."""


@dataclass(frozen=True, slots=True)
class _Given:
    pod: str
    allocation: DeviceAllocation


class DevicesGiven(Invariant[RunState]):
    """By the annotations of live pods on nodes, which say what each has; and by the Device objects of the run."""

    number = 12
    name = "of no device is more given than there is, and pods have devices that their node's Device lists"

    def __init__(self) -> None:
        self._reports: dict[str, NodeDeviceReport] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """A Device came, changed or went."""
        if line.event == DEVICE_EVENTS[0]:
            device = {"metadata": {"name": line.fields["node"]}, "spec": {"devices": line.fields["devices"]}}
            try:
                self._reports[line.fields["node"]] = parse(device)
            except BadDeviceObject as bad:
                yield Breach((line.fields["node"], "unreadable"), str(bad), line)
        elif line.event == DEVICE_EVENTS[1]:
            self._reports.pop(line.fields["node"], None)

    def on_objects(self, t: float, objects: ClusterObjects, state: RunState) -> Iterator[Breach]:
        """Pods as they are now."""
        by_device: dict[tuple[str, str, str], list[_Given]] = {}
        for pod in objects.pods.values():
            for allocation in _allocations(pod):
                name = allocation.id or str(allocation.minor)
                by_device.setdefault((node_name_of(pod), allocation.type, name), []).append(
                    _Given(key_of(pod), allocation)
                )
        for (node, kind, name), given in sorted(by_device.items()):
            yield from self._over(node, kind, name, given)

    def _over(self, node: str, kind: str, name: str, given: list[_Given]) -> Iterator[Breach]:
        total = self._total(node, kind, given[0].allocation)
        if total is None:
            return
        sums: dict[str, int] = {}
        for each in given:
            for resource, value in each.allocation.resources.items():
                sums[resource] = sums.get(resource, 0) + value
        for resource, value in sorted(sums.items()):
            if value > total.get(resource, 0):
                pods = ", ".join(sorted({each.pod for each in given}))
                there = f"{kind} {name} of {node} has {total.get(resource, 0)} of {resource}"
                yield Breach(
                    (node, kind, name, resource, str(value)), f"{there} and was given for {value}: to {pods}", None
                )

    def _total(self, node: str, kind: str, allocation: DeviceAllocation) -> Mapping[str, int] | None:
        """What the device has by its Device; where that is not known, 100 of all but memory."""
        report = self._reports.get(node)
        for device in report.devices if report is not None else ():
            same = device.id == allocation.id if allocation.id else device.minor == allocation.minor
            if device.type == kind and same:
                return device.resources
        known = {name: 100 for name in allocation.resources if name != MEMORY}
        return {**known, MEMORY: 1 << 62}


def _allocations(pod: Object) -> tuple[DeviceAllocation, ...]:
    if is_terminal(pod) or not node_name_of(pod) or ALLOCATED not in annotations_of(pod):
        return ()
    try:
        return parse_allocations(annotations_of(pod)[ALLOCATED])
    except BadDeviceObject:
        return ()

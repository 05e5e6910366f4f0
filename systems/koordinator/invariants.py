"""Of no device more than there is, and to nobody what the Device does not show (invariant 3, by the annotations)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, node_name_of, uid_of
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.koordinator.allocations import DeviceAllocation, parse_allocations
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport, parse
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.holdings import held_by_annotation
from mews.systems.koordinator.journal import DEVICE_PUBLISHED, DEVICE_WITHDRAWN
from mews.systems.koordinator.names import ALLOCATED, DOMAIN, MEMORY

UNLISTED_BOUND = "unlisted_s"
"""How long a Device may not list what a pod has (``System.bounds``): it takes koordlet a report to put it right."""

KEPT_BY_POD = 3
"""The law whose windows stay open while a pod keeps a device that a fault took away."""


class _Missing(Struct, frozen=True):
    """``names``: of all devices of that type that the pod has, as the system declares them."""

    uid: str
    pod: str
    node: str
    kind: str
    name: str
    names: tuple[str, ...]


class _Given(Struct, frozen=True):
    pod: str
    allocation: DeviceAllocation


class DevicesGiven(Invariant[RunState]):
    """The annotations of live pods on a node show which devices each pod has, and the Device objects of the run show
    which devices exist.

    A device that a pod has must be listed, healthy or not, while its node has a Device. Otherwise, it must be listed
    again within a bound (``unlisted_s``). A fault that takes a device away from its pod excuses this for as long as the
    pod keeps the device. Such a fault also excuses that two pods hold the device (law 3)."""

    number = 12
    name = "of no device is more given than there is, and pods have devices that their node's Device lists"

    def __init__(self) -> None:
        self._reports: dict[str, NodeDeviceReport] = {}
        self._pods: tuple[Object, ...] = ()
        self._unlisted: dict[_Missing, float] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Yield a Device came, changed or went."""
        if line.event == DEVICE_PUBLISHED:
            device = {"metadata": {"name": line.fields["node"]}, "spec": {"devices": line.fields["devices"]}}
            try:
                self._reports[line.fields["node"]] = parse(device)
            except BadDeviceError as bad:
                yield Breach((line.fields["node"], "unreadable"), str(bad), line)
        elif line.event == DEVICE_WITHDRAWN:
            self._reports.pop(line.fields["node"], None)
        else:
            return
        self._look(line.t)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Yield what has not been listed for too long."""
        bound_s = state.bound_s(UNLISTED_BOUND)
        if bound_s is None or not self._unlisted:
            return
        held = {pod: each for each in state.live_holdings() for pod in [(each.uid, each.resource)]}
        for missing, since in self._unlisted.items():
            if t - since <= bound_s:
                continue
            holding = held.get((missing.uid, DOMAIN + missing.kind))
            named = dict(zip(missing.names, (*holding.devices, *holding.parts_of), strict=False)) if holding else {}
            gone = named.get(missing.name)
            if t - state.clock_from(self.number, since, gone) > bound_s and not state.excused(KEPT_BY_POD, t, gone):
                there = f"{missing.kind} {missing.name}, which the Device of {missing.node} has not listed"
                what = f"pod {missing.pod} has {there} for {bound_s:g} s"
                yield Breach((missing.uid, missing.kind, missing.name, "unlisted"), what, None, gone)

    def _look(self, t: float) -> None:
        """Which pods have what their node's Device does not list, and since when."""
        found: dict[_Missing, float] = {}
        for pod in self._pods:
            report = self._reports.get(node_name_of(pod))
            for each in _allocations(pod) if report is not None else ():
                assert report is not None
                if _device(report, each) is None:
                    names = tuple(
                        h
                        for held in held_by_annotation(pod)
                        if held.resource == DOMAIN + each.type
                        for h in (*held.devices, *held.parts_of)
                    )
                    missing = _Missing(
                        uid_of(pod), key_of(pod), report.node, each.type, each.id or str(each.minor), names
                    )
                    found[missing] = self._unlisted.get(missing, t)
        self._unlisted = found

    def on_objects(self, t: float, objects: ClusterObjects, state: RunState) -> Iterator[Breach]:
        """Pods as they are now."""
        self._pods = tuple(pod for pod in objects.pods.values() if _allocations(pod))
        self._look(t)
        by_device: dict[tuple[str, str, str], list[_Given]] = {}
        for pod in self._pods:
            for allocation in _allocations(pod):
                name = self._name(node_name_of(pod), allocation)
                by_device.setdefault((node_name_of(pod), allocation.type, name), []).append(
                    _Given(key_of(pod), allocation)
                )
        for (node, kind, name), given in sorted(by_device.items()):
            yield from self._over(node, kind, name, given)

    def _name(self, node: str, allocation: DeviceAllocation) -> str:
        """Return it by what a device goes: its id, also where a pod has it by its minor alone."""
        report = self._reports.get(node)
        device = _device(report, allocation) if report is not None else None
        return allocation.id or (device.id if device is not None else "") or str(allocation.minor)

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
        """Return what the device has by its Device; where that is not known, 100 of all but memory."""
        report = self._reports.get(node)
        device = _device(report, allocation) if report is not None else None
        if device is not None:
            return device.resources
        known = {name: 100 for name in allocation.resources if name != MEMORY}
        return {**known, MEMORY: 1 << 62}


def _device(report: NodeDeviceReport, allocation: DeviceAllocation) -> NodeDevice | None:
    """Return the device that is meant: by its id, else by its minor."""
    for device in report.of_type(allocation.type):
        if device.id == allocation.id if allocation.id else device.minor == allocation.minor:
            return device
    return None


def _allocations(pod: Object) -> tuple[DeviceAllocation, ...]:
    if is_terminal(pod) or not node_name_of(pod) or ALLOCATED not in annotations_of(pod):
        return ()
    try:
        return parse_allocations(annotations_of(pod)[ALLOCATED])
    except BadDeviceError:
        return ()

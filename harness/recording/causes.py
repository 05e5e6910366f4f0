"""Why devices moved: which moves pods had asked for, and which faults of chassis and hosts are evident."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct, field

from mews.harness.recording.cabling import LAG_S, Cabling
from mews.harness.recording.histories import NodeHistory, PodHistory
from mews.harness.recording.observations import DeviceTrouble, LostReading, SeenOperation
from mews.harness.recording.tables import ChassisHistory, ListingChange

STUCK_S = 20.0
"""A device that is on no port for that long, while a pod waits for it, is not merely on its way."""
_FOLLOWED_S = 60.0
"""An effect of an operation shows in the listing within that time."""


class RecordedStep(Struct, frozen=True):
    """A step of the scenario at a time of the recording; ``why``: its comment."""

    at: float
    step: Mapping[str, Any]
    why: tuple[str, ...] = ()
    wrong: bool = False
    """Whether it shows that something went wrong there."""


class RecordedView(Struct, frozen=True):
    """All histories of one recording."""

    pods: Sequence[PodHistory]
    nodes: Sequence[NodeHistory]
    chassis: Sequence[ChassisHistory]
    cabling: Cabling
    resource: str
    began: float
    ended: float
    events: Mapping[str, str] = field(default_factory=dict)
    """Pod -> what the latest event about it reports."""
    is_made_up: bool = False
    """Whether no chassis was recorded, and the one here follows from what nodes offered."""

    def held_on(self, host: str, t: float) -> int:
        """Return how many devices the pods of a host hold."""
        return sum(pod.asks_for(self.resource) for pod in self.pods if pod.node == host and pod.holds_at(t))

    def count_on(self, host: str, t: float) -> int:
        """Return how many devices the chassis have on a host's ports."""
        return len(self.devices_on(host, t))

    def devices_on(self, host: str, t: float) -> list[str]:
        """Return the devices that the chassis have on a host's ports, in their order."""
        places = self.cabling.ports_of(host)
        return [
            device
            for box in self.chassis
            for name, port in places
            if name == box.name
            for device in box.on_port(port, t)
        ]

    def waiting(self, t: float) -> list[PodHistory]:
        """Pods that wait for devices."""
        return [pod for pod in self.pods if pod.asks_for(self.resource) and pod.waits_at(t)]


def unasked_moves(view: RecordedView) -> Iterator[RecordedStep]:
    """Moves that no pod had asked for, and those that took a device from a running pod, as edits of the table."""
    for box in view.chassis:
        for change in box.changes:
            if change.kind != "moved":
                continue
            why = _unasked(view, box, change)
            if why:
                edit = {"chassis": change.chassis, "device": change.device, "port": change.port}
                yield RecordedStep(change.at, {"chassis": {"edit": edit}}, (why,), wrong=True)


def disturbed_hosts(view: RecordedView) -> set[str]:
    """Return the hosts from which such a move took a device."""
    changes = ((box, change) for box in view.chassis for change in box.changes if change.kind == "moved")
    found = (view.cabling.host(box.name, each.old_port) for box, each in changes if _unasked(view, box, each))
    return {host for host in found if host is not None}


def _unasked(view: RecordedView, box: ChassisHistory, change: ListingChange) -> str:
    """Return why it is no move of the cluster's own; "" where a pod had asked for it."""
    moved = f"device {change.device} went from {_place(view, change.chassis, change.old_port)} to "
    moved += _place(view, change.chassis, change.port)
    host = view.cabling.host(change.chassis, change.old_port)
    if host is not None:
        left, held = view.count_on(host, change.at), view.held_on(host, change.at)
        if held > left:
            holders = ", ".join(pod.key for pod in view.pods if pod.node == host and pod.holds_at(change.at))
            return f"{moved} while pods on {host} held {held} of its {left + 1} devices: {holders}"
    if view.waiting(change.at) or _came_back(view, box, change):
        return ""
    return f"{moved}; no pod waited for devices then, so nobody in the cluster had asked for it"


def _came_back(view: RecordedView, box: ChassisHistory, change: ListingChange) -> bool:
    """Return whether it ends a move that a pod had asked for: the device was taken off its port, and is attached."""
    taken = [each for each in box.changes if each.device == change.device and each.kind == "moved"]
    earlier = [each for each in taken if each.port is None and each.at < change.at]
    return change.old_port is None and bool(earlier) and not _unasked(view, box, earlier[-1])


def _place(view: RecordedView, chassis: str, port: str | None) -> str:
    if port is None:
        return "no port"
    host = view.cabling.host(chassis, port)
    return f"port {port}" if host is None else f"port {port} ({host})"


def chassis_faults(view: RecordedView, operations: Sequence[SeenOperation]) -> Iterator[RecordedStep]:
    """Operations that were refused, lost or answered wrongly; of a chassis without a log, devices that no attach
    brought back to a port."""
    logged = {(each.chassis, each.device) for each in operations}
    yield from _answered_wrongly(view, operations)
    for box in view.chassis:
        for device in box.devices:
            if (box.name, device) not in logged:
                yield from _never_attached(view, box, device)
        yield from _listing_faults(box)


def _answered_wrongly(view: RecordedView, operations: Sequence[SeenOperation]) -> Iterator[RecordedStep]:
    boxes = {box.name: box for box in view.chassis}
    found: dict[tuple[str, str, str], list[tuple[SeenOperation, dict[str, Any]]]] = {}
    succeeded: dict[tuple[str, str, str], float] = {}
    for each in sorted(operations, key=lambda operation: operation.at):
        key = (each.chassis, each.device, each.kind)
        spec = _fault_of(each, _effective(boxes.get(each.chassis), each))
        if spec is None:
            succeeded[key] = each.at
        else:
            found.setdefault(key, []).append((each, spec))
    for (chassis, device, kind), failures in found.items():
        first, spec = failures[0]
        alike = sum(other == spec for _, other in failures)
        earlier = [t for t in (succeeded.get((chassis, device, kind)),) if t is not None and t < first.at]
        add = {**spec, "device": device, "count": alike}
        why = f"{kind} of device {device} at {first.at - view.began:.1f} s: {_reply(first)}; {alike} time(s) in the log"
        # Before the pod that causes it: a replay comes to the operation at a slightly different time.
        yield RecordedStep(max([view.began, *earlier]), {"fault": {"chassis": chassis, "add": add}}, (why,), wrong=True)


def _reply(operation: SeenOperation) -> str:
    if operation.answer == "error":
        return f"HTTP {operation.status}"
    return {"failed": "the chassis reported failure", "lost": "no answer", "done": "the chassis reported success"}[
        operation.answer
    ]


def _effective(box: ChassisHistory | None, operation: SeenOperation) -> bool | None:
    """Return whether the listing shows the effect; None where there is no later listing."""
    if box is None or not box.dated:
        return None
    wanted = operation.port if operation.kind == "attach" else None
    if box.port_at(operation.device, operation.at) == wanted:
        return True
    return any(
        change.kind == "moved" and change.device == operation.device and change.port == wanted
        for change in box.changes
        if operation.at <= change.at <= operation.at + _FOLLOWED_S
    )


def _fault_of(operation: SeenOperation, effective: bool | None) -> dict[str, Any] | None:
    when = "after" if effective else "before"
    if operation.answer == "error":
        status = operation.status if operation.status in (500, 501, 502, 503, 504) else 500
        return {"kind": "http-error", "operation": operation.kind, "status": status, "when": when}
    if operation.answer == "lost":
        return {"kind": "dropped-connection", "operation": operation.kind, "when": when}
    if operation.answer == "failed" and effective:
        return {"kind": "lying-result", "operation": operation.kind, "says": False}
    if operation.answer == "failed" and operation.kind == "attach":
        return {"kind": "never-trains", "operation": "attach"}
    if operation.answer == "failed":
        return {"kind": "http-error", "operation": "detach", "status": 503, "when": "before"}
    if operation.kind == "attach" and effective is False:
        return {"kind": "half-applied-attach", "operation": "attach", "says": True}
    return None


def _never_attached(view: RecordedView, box: ChassisHistory, device: str) -> Iterator[RecordedStep]:
    moves = [change for change in box.changes if change.device == device and change.kind == "moved"]
    if not moves or moves[-1].port is not None or view.ended - moves[-1].at < STUCK_S:
        return
    waiting = [pod for pod in view.waiting(moves[-1].at) if pod.waits_at(view.ended)]
    if not waiting or _unasked(view, box, moves[-1]):
        return
    add = {"kind": "never-trains", "device": device}
    why = (
        f"device {device} was taken off port {moves[-1].old_port} at {moves[-1].at - view.began:.1f} s for pod "
        f"{waiting[0].key} and was on no port until the end",
        "the replies of the chassis were not recorded: an attach whose link never comes up is assumed",
    )
    at = max([view.began, *(change.at for change in moves if change.port is not None)])
    yield RecordedStep(at, {"fault": {"chassis": box.name, "add": add}}, why, wrong=True)


def _listing_faults(box: ChassisHistory) -> Iterator[RecordedStep]:
    back = {(change.device, change.at) for change in box.changes if change.kind == "back"}
    for change in box.changes:
        kinds = {"missing": "link-down", "uuid-lost": "lost-uuid"}
        if change.kind not in kinds:
            continue
        later = [at for device, at in back if device == change.device and at > change.at]
        why = f"the listing showed device {change.device} " + (
            "no more" if change.kind == "missing" else "without a UUID"
        )
        until = f"until {min(later):.0f} (Unix seconds); the replay does not bring it back" if later else ""
        add = {"kind": kinds[change.kind], "device": change.device}
        notes = tuple(each for each in (why, until) if each)
        yield RecordedStep(change.at, {"fault": {"chassis": box.name, "add": add}}, notes, wrong=True)


def silences(lost: Iterable[LostReading], readings: Mapping[str, Sequence[float]]) -> Iterator[RecordedStep]:
    """Spans in which a chassis answered no reading, as restarts of its management CPU."""
    by_chassis: dict[str, list[LostReading]] = {}
    for each in sorted(lost, key=lambda reading: reading.at):
        by_chassis.setdefault(each.chassis, []).append(each)
    for chassis, failures in by_chassis.items():
        answered = sorted(readings.get(chassis, ()))
        until = 0.0
        for each in failures:
            if each.at < until:
                continue
            until = next((t for t in answered if t > each.at), failures[-1].at)
            span = max(1.0, round(until - each.at, 1))
            silent = f"no listing of chassis {chassis} for {span:g} s: {each.why}"
            why = (silent, "what its management CPU did is assumed")
            add = {"kind": "management-reboot", "down_s": span}
            yield RecordedStep(each.at, {"fault": {"chassis": chassis, "add": add}}, why, wrong=True)


def node_troubles(view: RecordedView) -> Iterator[RecordedStep]:
    """Kubelets that went silent and came back; devices that a node stopped offering though its chassis had them."""
    for node in view.nodes:
        was = True
        for at, ready in node.ready:
            if at > view.began and ready is not was:
                verb, state = ("start", "Ready again") if ready else ("kill", "not Ready")
                yield RecordedStep(at, {verb: f"kubelet/{node.name}"}, (f"node {node.name} was {state}",))
                was = ready
        yield from _lost_devices(view, node)


def _lost_devices(view: RecordedView, node: NodeHistory) -> Iterator[RecordedStep]:
    changes = node.offered.get(view.resource, ())
    for (_, before), (at, after) in pairwise(changes):
        there = view.count_on(node.name, at)
        until = next((t for t, count in changes if t > at and count >= there), view.ended)
        if after >= before or not there or after >= there or until - at < LAG_S or view.waiting(at):
            continue
        device = view.devices_on(node.name, at)[0]
        why = (
            f"node {node.name} offered {after} instead of {before} devices, while its chassis had {there} on its ports",
            f"which device failed, and how, is not known: {device} and a fall off the bus are assumed",
        )
        add = {"kind": "fallen-off-bus", "device": device}
        yield RecordedStep(at, {"fault": {"host": node.name, "add": add}}, why, wrong=True)
        return


def host_faults(view: RecordedView, troubles: Iterable[DeviceTrouble]) -> Iterator[RecordedStep]:
    """XIDs of hosts' logs. Which device has a PCI address no log says, so a host's devices are taken in order."""
    known: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str, int]] = set()
    hosts = {node.name for node in view.nodes}
    for each in sorted(troubles, key=lambda trouble: trouble.at):
        if each.host not in hosts or (each.host, each.address, each.xid) in seen:
            continue
        seen.add((each.host, each.address, each.xid))
        there = view.devices_on(each.host, each.at)
        spare = [device for device in there if device not in known.values()]
        if not there:
            continue
        device = known.setdefault((each.host, each.address), (spare or there)[0])
        why = (
            f"XID {each.xid} in a log of {each.host}",
            f"which device is at PCI address {each.address or 'unknown'} is not known: {device} is assumed",
        )
        add = {"kind": "xid", "device": device, "xid": each.xid}
        yield RecordedStep(each.at, {"fault": {"host": each.host, "add": add}}, why, wrong=True)

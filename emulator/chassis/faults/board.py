"""The faults that sit in one chassis."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mews.emulator.chassis.errors import RefusalError
from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.chassis.faults.bench import (
    ChassisFault,
    Delays,
    OperationFault,
    TimedChassisFault,
    UndoableChassisFault,
)
from mews.emulator.chassis.faults.placed import FaultPlacer, chosen, declared, described, ending, fires, parameters
from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.chassis.faults.spec import FaultTrigger, admits
from mews.emulator.chassis.operation import Operation
from mews.emulator.chassis.table import DeviceRow

if TYPE_CHECKING:
    from mews.emulator.chassis.emulated_chassis import EmulatedChassis


@dataclass(slots=True, eq=False)
class ArmedChassisFault:
    """A fault in place: also the bench at which it works on its chassis."""

    id: str
    fault: ChassisFault
    when: FaultTrigger
    built_in: bool
    box: EmulatedChassis
    rng: random.Random
    spec: Mapping[str, Any]
    until_s: float
    planted: bool = False
    striker: OperationFault | None = field(init=False)
    """The fault where it strikes operations: found once, as a look at a Protocol is dear and operations are many."""
    delayer: Delays | None = field(init=False)
    """The fault where it delays events."""

    def __post_init__(self) -> None:
        fault: object = self.fault
        waits = isinstance(fault, TimedChassisFault) and self.when.operation is None
        self.striker = fault if isinstance(fault, OperationFault) and not waits else None
        self.delayer = fault if isinstance(fault, Delays) else None

    @property
    def now_s(self) -> float:
        """The time now, in emulated seconds."""
        return self.box.now_s

    def fire(self, after_s: float) -> None:
        """Have the fault happen after that time."""
        self.box.agenda.at(self.now_s + after_s, lambda t: self.box.faults.happen(self), self)

    def edit(self, device: str, port: str | None) -> None:
        """Edit the table as another editor would; a refusal is that editor's."""
        try:
            self.box.edits.edit(device, port, self.now_s, cause=self.fault.kind)
        except RefusalError:
            return

    def set_link(self, device: str, up: bool) -> None:
        """Take a device's link down or up."""
        if device in self.box.table.devices():
            self.box.edits.set_link(device, up)

    def set_uuid(self, device: str, uuid: str | None) -> None:
        """Let a device show another UUID."""
        self.box.edits.set_uuid(device, uuid)

    def reboot(self, after_s: float, down_s: float) -> None:
        """Restart the management CPU after a time."""
        self.box.agenda.at(self.now_s + after_s, lambda t: self.box.management.reboot(down_s), self)

    def come_back(self) -> None:
        """End a restart of the management CPU before its time."""
        self.box.management.come_back()

    def rewound(self, age_s: float) -> tuple[DeviceRow, ...]:
        """Return the listing of that long ago."""
        return self.box.table.rewound(self.now_s - age_s)

    def devices(self) -> tuple[str, ...]:
        """Return the IDs of all devices in the chassis."""
        return self.box.table.devices()

    def add_at(self, at_s: float, spec: Mapping[str, Any]) -> None:
        """Add another fault at an emulated time."""
        self.box.agenda.at(at_s, lambda t: self.box.faults.plant(spec, t), self)


class FaultBoard:
    """Adds, lists, fires and clears faults. Specs and what is allowed: ``mews.emulator.chassis.faults.spec``."""

    def __init__(self, box: EmulatedChassis) -> None:
        self._box = box

    def begin_anew(self, rng: random.Random) -> None:
        """Forget all faults: from now on they are numbered from one and strike by the chances of ``rng``."""
        self._placer = FaultPlacer("f", CHASSIS_FAULTS, rng)
        self._armed: list[ArmedChassisFault] = []

    def add(self, spec: Mapping[str, Any], now_s: float, *, built_in: bool = False) -> str:
        """Put a fault in place and return its ID.

        Raises ValueError naming what is allowed.
        """
        if not built_in:
            self._box.settle(now_s)
        armed = self._place(spec, now_s, built_in=built_in)
        if not built_in:
            self._box.events.emit("fault-added", **declared(armed))
            self._box.settle(now_s)
        return armed.id

    def plant(self, spec: Mapping[str, Any], now_s: float) -> None:
        """Put a fault in place that another one brought about, and forget those of that sort that are over."""
        self._armed = [a for a in self._armed if not a.planted or not (a.when.spent or a.until_s < now_s)]
        self._place(spec, now_s, built_in=False).planted = True

    def _place(self, spec: Mapping[str, Any], now_s: float, *, built_in: bool) -> ArmedChassisFault:
        parts = self._placer.parts(spec, now_s, self._check_devices)
        armed = ArmedChassisFault(
            parts.id, parts.fault, parts.when, built_in, self._box, parts.rng, parts.spec, until_s=parts.until_s
        )
        if isinstance(parts.fault, TimedChassisFault) and parts.when.operation is None:
            parts.fault.arm(armed)
        self._armed.append(armed)
        return armed

    def _check_devices(self, fault: ChassisFault, when: FaultTrigger) -> None:
        known = self._box.table.devices()
        for name in ("device", "edit"):
            device = getattr(fault, name, None) or (when.device if name == "device" else None)
            if device is not None and device not in known:
                shown = ", ".join(known[:12])
                raise ValueError(f"fault {fault.kind}: {name} {device!r}: chassis {self._box.spec.name} has {shown}")

    def listed(self) -> list[dict[str, Any]]:
        """Return what is in place: id, kind, spec, fired, left, may_break, grace_s (null = as long as it lasts),
        built_in, and how it ends (``placed.ending``)."""
        return [{**_described(armed), **ending(armed, self._box.now_s)} for armed in self._armed]

    def clear(self, now_s: float, fault_id: str | None = None) -> None:
        """Undo one fault, or all; what a chassis has by nature stays.

        Raises ValueError for an unknown ID.
        """
        self._box.settle(now_s)
        for armed in chosen([armed for armed in self._armed if not armed.built_in], fault_id):
            self._armed.remove(armed)
            self._box.agenda.forget(armed)
            if isinstance(armed.fault, UndoableChassisFault):
                armed.fault.undo(armed)
            self._box.events.emit("fault-cleared", fault=armed.id, kind=armed.fault.kind)

    def strike(self, operation: Operation) -> None:
        """Let every fault that looks at this operation have its go, in the order of adding."""
        for armed in list(self._armed) if self._armed else ():
            if armed.striker is None or not admits(armed.when, operation, armed.fault.on):
                continue
            if self._fires(armed) and armed.striker.strike(operation, armed):
                self._count(armed, operation)

    def happen(self, armed: ArmedChassisFault) -> None:
        """The time of a fault has come."""
        if isinstance(armed.fault, TimedChassisFault):
            self._count(armed, None)
            armed.fault.happen(armed)

    def delay(self, event: ChassisEvent) -> float | None:
        """Return for how long a fault holds the event back that is to be emitted, None where none does. What faults
        emit of themselves is never held: from then on everybody knows what the fault excuses."""
        if event.event.startswith("fault-"):
            return None
        for armed in self._armed:
            if armed.delayer is None:
                continue
            delay_s = armed.delayer.delay(event)
            if delay_s is not None and self._fires(armed):
                self._count(armed, None)
                return delay_s
        return None

    def _fires(self, armed: ArmedChassisFault) -> bool:
        return fires(armed, self._box.now_s)

    def _count(self, armed: ArmedChassisFault, operation: Operation | None) -> None:
        armed.when.fired += 1
        shown = {key: _described(armed)[key] for key in _FIRED}
        number = None
        if operation is not None:
            number = operation.number
            if shown["may_break"] and shown["grace_s"] is not None:
                ends_s = max(operation.due_s, operation.answer_s)
                shown["grace_s"] = round(shown["grace_s"] + ends_s - self._box.now_s, 6)
        device = _struck(armed.fault, operation) if shown["may_break"] else None
        named = {} if device is None else {"device": device}
        self._box.events.emit("fault-fired", **shown, **named, operation=number)


def _struck(fault: ChassisFault, operation: Operation | None) -> str | None:
    """Return the device that a fault is about, None where it is about the whole chassis."""
    for name in ("edit", "device"):
        device = getattr(fault, name, None)
        if device is not None:
            return str(device)
    return None if operation is None else operation.device or None


_FIRED = ("fault", "kind", "fired", "left", "may_break", "grace_s", "built_in")


def _described(armed: ArmedChassisFault) -> dict[str, Any]:
    common = described(armed)
    head = {key: common[key] for key in ("fault", "kind")}
    return {**head, "spec": parameters(armed), **common, "built_in": armed.built_in}

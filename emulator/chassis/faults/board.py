"""The faults that sit in one chassis."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mews.emulator.chassis.errors import Refusal
from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.chassis.faults.bench import Arms, Delays, Fault, Strikes, Undoes
from mews.emulator.chassis.faults.registry import FAULTS
from mews.emulator.chassis.faults.spec import When, admits, parse_fault
from mews.emulator.chassis.operation import Operation
from mews.emulator.chassis.table import Row

if TYPE_CHECKING:
    from mews.emulator.chassis.box import Box


@dataclass(slots=True, eq=False)
class Armed:
    """A fault in place: also the bench at which it works on its chassis."""

    id: str
    fault: Fault
    when: When
    built_in: bool
    box: Box
    rng: random.Random
    spec: Mapping[str, Any]
    until_s: float
    planted: bool = False

    @property
    def now_s(self) -> float:
        """The time now, in emulated seconds."""
        return self.box.now_s

    def fire(self, after_s: float) -> None:
        """Have the fault happen after that time."""
        self.box.at(self.now_s + after_s, lambda t: self.box.faults.happen(self), self)

    def edit(self, device: str, port: str | None) -> None:
        """Edit the table as another editor would; a refusal is that editor's."""
        try:
            self.box.edit(device, port, self.now_s, cause=self.fault.kind)
        except Refusal:
            return

    def set_link(self, device: str, up: bool) -> None:
        """Take a device's link down or up."""
        if device in self.box.devices():
            self.box.set_link(device, up)

    def set_uuid(self, device: str, uuid: str | None) -> None:
        """Let a device show another UUID."""
        self.box.set_uuid(device, uuid)

    def reboot(self, after_s: float, down_s: float) -> None:
        """Restart the management CPU after a time."""
        self.box.at(self.now_s + after_s, lambda t: self.box.reboot(down_s), self)

    def come_back(self) -> None:
        """End a restart of the management CPU before its time."""
        self.box.come_back()

    def rewound(self, age_s: float) -> tuple[Row, ...]:
        """The listing of that long ago."""
        return self.box.rewound(self.now_s - age_s)

    def devices(self) -> tuple[str, ...]:
        """Return the IDs of all devices in the chassis."""
        return self.box.devices()

    def add_at(self, at_s: float, spec: Mapping[str, Any]) -> None:
        """Add another fault at an emulated time."""
        self.box.at(at_s, lambda t: self.box.faults.plant(spec, t), self)


class FaultBoard:
    """Adds, lists, fires and clears faults. Specs and what is allowed: ``mews.emulator.chassis.faults.spec``."""

    def __init__(self, box: Box, rng: random.Random) -> None:
        self._box = box
        self._rng = rng
        self._armed: list[Armed] = []
        self._numbers = 0

    def add(self, spec: Mapping[str, Any], now_s: float, *, built_in: bool = False) -> str:
        """Put a fault in place and return its ID.

        Raises ValueError naming what is allowed.
        """
        if not built_in:
            self._box.settle(now_s)
        armed = self._place(spec, now_s, built_in=built_in)
        if not built_in:
            self._box.tell("fault-added", fault=armed.id, kind=armed.fault.kind)
            self._box.settle(now_s)
        return armed.id

    def plant(self, spec: Mapping[str, Any], now_s: float) -> None:
        """Put a fault in place that another one brought about, and forget those of that sort that are over."""
        self._armed = [a for a in self._armed if not a.planted or not (a.when.spent or a.until_s < now_s)]
        self._place(spec, now_s, built_in=False).planted = True

    def _place(self, spec: Mapping[str, Any], now_s: float, *, built_in: bool) -> Armed:
        fault, when = parse_fault(spec, FAULTS)
        self._check_devices(fault, when)
        self._numbers += 1
        until_s = float("inf") if when.expires_s is None else now_s + when.expires_s
        rng = random.Random(self._rng.getrandbits(64))
        armed = Armed(f"f{self._numbers}", fault, when, built_in, self._box, rng, dict(spec), until_s)
        if isinstance(fault, Arms) and when.operation is None:
            fault.arm(armed)
        self._armed.append(armed)
        return armed

    def _check_devices(self, fault: Fault, when: When) -> None:
        known = self._box.devices()
        for name in ("device", "edit"):
            device = getattr(fault, name, None) or (when.device if name == "device" else None)
            if device is not None and device not in known:
                shown = ", ".join(known[:12])
                raise ValueError(f"fault {fault.kind}: {name} {device!r}: chassis {self._box.spec.name} has {shown}")

    def listed(self) -> list[dict[str, Any]]:
        """What is in place: id, kind, spec, fired, left, may_break, grace_s (null = as long as it lasts), built_in."""
        return [_described(armed) for armed in self._armed]

    def clear(self, now_s: float, fault_id: str | None = None) -> None:
        """Undo one fault, or all; what a chassis has by nature stays.

        Raises ValueError for an unknown ID.
        """
        self._box.settle(now_s)
        chosen = [a for a in self._armed if not a.built_in and fault_id in (None, a.id)]
        if fault_id is not None and not chosen:
            names = ", ".join(a.id for a in self._armed if not a.built_in) or "none"
            raise ValueError(f"fault {fault_id!r}: in place are {names}")
        for armed in chosen:
            self._armed.remove(armed)
            self._box.forget(armed)
            if isinstance(armed.fault, Undoes):
                armed.fault.undo(armed)
            self._box.tell("fault-cleared", fault=armed.id, kind=armed.fault.kind)

    def strike(self, operation: Operation) -> None:
        """Let every fault that looks at this operation have its go, in the order of adding."""
        for armed in list(self._armed):
            fault, when = armed.fault, armed.when
            if not isinstance(fault, Strikes) or (isinstance(fault, Arms) and when.operation is None):
                continue
            if admits(when, operation, fault.on) and self._fires(armed) and fault.strike(operation, armed):
                self._count(armed, operation)

    def happen(self, armed: Armed) -> None:
        """The time of a fault has come."""
        if isinstance(armed.fault, Arms):
            self._count(armed, None)
            armed.fault.happen(armed)

    def holds(self, event: ChassisEvent) -> bool:
        """Whether a fault holds the event back; it is then delivered later."""
        for armed in self._armed:
            if not isinstance(armed.fault, Delays):
                continue
            delay_s = armed.fault.delay(event)
            if delay_s is not None and self._fires(armed):
                self._count(armed, None)
                self._box.hold(event, delay_s)
                return True
        return False

    def _fires(self, armed: Armed) -> bool:
        when = armed.when
        if when.spent or self._box.now_s > armed.until_s:
            return False
        if when.skip > 0:
            when.skip -= 1
            return False
        return when.probability >= 1 or armed.rng.random() < when.probability

    def _count(self, armed: Armed, operation: Operation | None) -> None:
        armed.when.fired += 1
        number = None if operation is None else operation.number
        described = _described(armed)
        self._box.tell(
            "fault-fired",
            **{key: described[key] for key in ("fault", "kind", "fired", "may_break", "grace_s", "built_in")},
            operation=number,
        )


def _described(armed: Armed) -> dict[str, Any]:
    fault, when = armed.fault, armed.when
    spec = {key: _plain(value) for key, value in armed.spec.items() if key != "kind"}
    return {
        "fault": armed.id,
        "kind": fault.kind,
        "spec": spec,
        "fired": when.fired,
        "left": None if when.count is None else when.count - when.fired,
        "may_break": list(fault.may_break),
        "grace_s": None if fault.grace_s == float("inf") else fault.grace_s,
        "built_in": armed.built_in,
    }


def _plain(value: Any) -> Any:
    if not hasattr(value, "draw"):
        return value
    return {type(value).__name__.lower(): asdict(value)}

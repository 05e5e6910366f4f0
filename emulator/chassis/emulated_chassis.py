"""One chassis: its table, its one management CPU, its faults. Pure: the time is an argument, chance is injected.

An operation is begun, gets a due time, and takes effect when the box is next looked at after it (``settle``). Writes
queue for the management CPU (contract chassis.md 2: operations on one chassis are serialised). Everything that is due
happens in order of its time, whenever it is settled.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.agenda import Action, Agenda
from mews.emulator.chassis.errors import (
    AlreadyAttachedError,
    LinkDownError,
    MissingPortError,
    MoveCancelledError,
    RefusalError,
    UncabledPortError,
    UnknownPortError,
)
from mews.emulator.chassis.events import ChassisEvent, Listener, ignore
from mews.emulator.chassis.faults.board import FaultBoard
from mews.emulator.chassis.operation import Answer, Operation, OperationKind, OperationOutcome
from mews.emulator.chassis.store import MemoryStore, TableStore
from mews.emulator.chassis.table import DeviceRow, DeviceTable
from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec
from mews.emulator.hardware.latency import Fixed, Latency
from mews.emulator.telemetry.chassis import ChassisTelemetry, InstalledBoard

READING = object()
"""Owner of the ends of reads."""
REBOOT = object()
"""Owner of the pending end of a management reboot."""
HELD = object()
"""Owner of events that are held back."""
_BOARD_CHANGES = ("table-changed", "device-inserted", "device-removed", "link-down", "link-up")


class EmulatedChassis:
    """One emulated chassis. All methods take ``now_s``, emulated seconds that never go back. ``events_emitted`` is the
    number of its last event."""

    def __init__(
        self,
        spec: ChassisSpec,
        rng: random.Random,
        *,
        listener: Listener = ignore,
        store: TableStore | None = None,
        telemetry: ChassisTelemetry | None = None,
        events_emitted: int = 0,
    ) -> None:
        self.spec = spec
        self.profile = spec.profile
        self._latencies: Mapping[OperationKind, Latency] = {
            OperationKind.ATTACH: self.profile.attach,
            OperationKind.DETACH: self.profile.detach,
            OperationKind.READ: self.profile.read,
        }
        self.telemetry = ChassisTelemetry() if telemetry is None else telemetry
        self._listener = listener
        self._listeners: list[Listener] = []
        self._seed = rng.getrandbits(64)
        self.events_emitted = events_emitted
        self._table = DeviceTable(spec.devices, spec.slots, MemoryStore() if store is None else store)
        self._begin_anew(0.0)
        self.telemetry.begin(map(self._board, self._table.rows()), self._now_s)

    def _begin_anew(self, now_s: float) -> None:
        self._now_s = now_s
        self._free_s = now_s
        self._down_until_s = now_s
        self._numbers = 0
        self._agenda = Agenda()
        self._in_flight: dict[int, Operation] = {}
        self._writes: dict[int, Operation] = {}
        self._rng = random.Random(self._seed)
        self.faults = FaultBoard(self, random.Random(self._seed + 1))
        for quirk in self.profile.quirks:
            self.faults.add(quirk, now_s, built_in=True)

    # Looking

    def rows(self, now_s: float) -> tuple[DeviceRow, ...]:
        """Return the whole table, also devices that clients are not shown."""
        self.settle(now_s)
        return self._table.rows()

    def shown(self) -> tuple[DeviceRow, ...]:
        """Return the rows that a client is shown: the same tuple as long as no row of the table changes."""
        return self._table.listing()

    def row(self, device: str, now_s: float) -> DeviceRow:
        """Return one row of the table.

        Raises UnknownDeviceError.
        """
        self.settle(now_s)
        return self._table.row(device)

    def device(self, device: str) -> DeviceSpec:
        """Return the inventory record of the device with that ID.

        Raises UnknownDeviceError.
        """
        return self._table.spec(device)

    def down(self, now_s: float) -> bool:
        """Return whether the management CPU is away and answers nobody."""
        self.settle(now_s)
        return self._now_s < self._down_until_s

    def devices(self) -> tuple[str, ...]:
        """Return the IDs of all devices."""
        return tuple(row.device for row in self._table.rows())

    def pending(self) -> dict[str, OperationKind]:
        """Device -> the write on it that is begun and not settled."""
        return {op.device: op.kind for op in self._writes.values()}

    def writes(self) -> tuple[Operation, ...]:
        """Return the writes that are begun and not settled, in their order."""
        return tuple(self._writes.values())

    def next_due(self) -> float | None:
        """Return when something will happen next; None if nothing is due. May be asked while another thread settles."""
        return self._agenda.next_s()

    def read_at_once(self) -> None:
        """From now on a read takes no time, for a chassis whose time stands still."""
        self._latencies = {**self._latencies, OperationKind.READ: Fixed(0.0)}

    def only_reads(self) -> bool:
        """Return whether nothing is going on but reads, which change nothing."""
        return not self._writes and self._agenda.only(READING)

    # Operations

    def begin_attach(self, device: str, port: str, now_s: float) -> Operation:
        """Ask for a free device to be put on a host port."""
        return self._begin(OperationKind.ATTACH, device, port, now_s)

    def begin_detach(self, device: str, now_s: float) -> Operation:
        """Ask for a device to be taken off its host port; one that is free already stays so, and that is well."""
        return self._begin(OperationKind.DETACH, device, None, now_s)

    def begin_read(self, now_s: float) -> Operation:
        """Ask for the listing as it will be when the read is due."""
        return self._begin(OperationKind.READ, "", None, now_s)

    def finish(self, operation: Operation, now_s: float) -> Answer:
        """Return the answer to an operation whose ``answer_s`` has come."""
        self.settle(max(now_s, operation.answer_s))
        return operation.answer()

    def cancel(self, operation: Operation, now_s: float) -> bool:
        """Give up an operation that has not taken effect; its answer is a refusal. False if it is too late."""
        self.settle(now_s)
        if operation.settled:
            return False
        operation.refusal, operation.settled = MoveCancelledError(f"operation {operation.number}: cancelled"), True
        operation.due_s = operation.answer_s = self._now_s
        self._landed(operation)
        self._emit_finished(operation)
        return True

    def settle(self, now_s: float) -> None:
        """Let everything happen that was due by now, each at its own time."""
        next_s = self._agenda.next_s()
        if next_s is not None and next_s <= now_s:
            for at_s, action in self._agenda.due(now_s):
                self._now_s = max(self._now_s, at_s)
                action(self._now_s)
        if now_s > self._now_s:
            self._now_s = now_s

    def _begin(self, kind: OperationKind, device: str, port: str | None, now_s: float) -> Operation:
        self.settle(now_s)
        now_s = self._now_s
        self._numbers += 1
        queues = kind is not OperationKind.READ or self.profile.reads_queue
        start_s = max(now_s, self._free_s) if queues else now_s
        operation = Operation(self._numbers, kind, device, port, now_s, start_s, start_s, start_s)
        if now_s < self._down_until_s:
            operation.start_s = operation.due_s = operation.answer_s = now_s
            return self._lose(operation)
        self._plan(operation)
        if queues:
            self._free_s = operation.due_s
        operation.answer_s = max(operation.answer_s, operation.due_s)
        self._in_flight[operation.number] = operation
        if kind is OperationKind.READ:
            self._agenda.at(operation.due_s, lambda t: self._complete(operation), READING)
            return operation
        self._writes[operation.number] = operation
        self._agenda.at(operation.due_s, lambda t: self._complete(operation))
        self.emit("operation-begun", **_named(operation), due_s=round(operation.due_s, 6))
        return operation

    def _plan(self, operation: Operation) -> None:
        """How long it takes and what faults make of it. What cannot be done even now is refused without delay."""
        if operation.kind is not OperationKind.READ and operation.start_s <= operation.begun_s:
            operation.refusal = self._refusal(operation)
        if operation.refusal is None:
            operation.last(self._latencies[operation.kind].draw(self._rng))
        self.faults.strike(operation)

    def _refusal(self, operation: Operation) -> RefusalError | None:
        try:
            row = self._table.row(operation.device)
            if operation.kind is OperationKind.ATTACH:
                if row.port is not None:
                    raise AlreadyAttachedError(f"device {row.device!r}: is on port {row.port}")
                self._check_port(operation.port)
                if not row.link:
                    raise LinkDownError(f"device {row.device!r}: its link is down")
        except RefusalError as refusal:
            return refusal
        return None

    def _check_port(self, port: str | None) -> None:
        if not port:
            raise MissingPortError("no host port is given")
        if port not in self.spec.ports:
            raise UnknownPortError(f"port {port!r}: chassis {self.spec.name} has {', '.join(self.spec.ports)}")
        if self.spec.ports[port] is None:
            raise UncabledPortError(f"port {port!r}: no host is cabled to it")

    def _complete(self, operation: Operation) -> None:
        if operation.settled:
            return
        operation.settled = True
        self._landed(operation)
        for action in operation.before:
            action()
        if operation.kind is OperationKind.READ:
            rows = self._table.listing()
            for view in operation.views:
                rows = view(rows)
            operation.rows = rows
        elif operation.refusal is None:
            operation.refusal = self._refusal(operation)
            if operation.refusal is None and operation.applies:
                try:
                    self._move(operation.device, operation.port, operation.kind.value)
                except RefusalError as refusal:
                    operation.refusal = refusal
        self._emit_finished(operation)
        for action in operation.after:
            action()

    def _move(self, device: str, port: str | None, cause: str) -> None:
        old = self._table.row(device).port
        if old == port:
            return
        self._table.move(device, port, self._now_s)
        self.emit("table-changed", device=device, old_port=old, new_port=port, cause=cause)

    def _landed(self, operation: Operation) -> None:
        self._in_flight.pop(operation.number, None)
        self._writes.pop(operation.number, None)

    def _lose(self, operation: Operation) -> Operation:
        """Return an operation without answer or effect: the management server is not there."""
        operation.settled, operation.applies, operation.outcome = True, False, OperationOutcome.DROPPED
        self._landed(operation)
        self._emit_finished(operation)
        return operation

    # Out of band

    def edit(self, device: str, port: str | None, now_s: float, *, cause: str = "edit") -> None:
        """Change the table at once, behind every client's back; straight from port to port if need be.

        Raises UnknownDeviceError, UnknownPortError, UncabledPortError, NotStoredError.
        """
        self.settle(now_s)
        self._table.row(device)
        if port is not None:
            self._check_port(port)
        self._move(device, port, cause)

    def insert(self, spec: DeviceSpec, now_s: float) -> None:
        """Put one more device into a slot.

        Raises SlotsFullError, DuplicateDeviceError, UnknownPortError, UncabledPortError, NotStoredError.
        """
        self.settle(now_s)
        if spec.port is not None:
            self._check_port(spec.port)
        self._table.insert(spec)
        self.emit(
            "device-inserted",
            device=spec.id,
            uuid=spec.uuid,
            kind=spec.kind,
            model=spec.model,
            serial=spec.serial,
            new_port=spec.port,
        )

    def remove(self, device: str, now_s: float) -> None:
        """Pull a device out of its slot.

        Raises UnknownDeviceError, NotStoredError.
        """
        self.settle(now_s)
        old = self._table.remove(device)
        self.emit("device-removed", device=device, old_port=old)

    def reset(self, now_s: float) -> None:
        """Table, faults, operations and chance as they were at the start; running operations get no answer.

        Raises NotStoredError.
        """
        self.settle(now_s)
        for operation in list(self._in_flight.values()):
            operation.answer_s = self._now_s
            self._lose(operation)
        self._table.reset()
        self._release()
        self._begin_anew(self._now_s)
        self.telemetry.begin(map(self._board, self._table.rows()), self._now_s)
        self.emit("reset")

    def power_off(self, now_s: float) -> None:
        """Kill -9: what runs is lost, nothing happens any more. ``Fleet.build`` makes its successor from the store."""
        self.settle(now_s)
        self._release()
        self._agenda.clear()
        for operation in list(self._in_flight.values()):
            operation.answer_s = self._now_s
            self._lose(operation)

    # What faults use

    def at(self, at_s: float, action: Action, owner: object = None) -> None:
        """Let an action happen at a time; ``owner`` is for ``forget``."""
        self._agenda.at(at_s, action, owner)

    def forget(self, owner: object) -> None:
        """Cancel all actions of an owner that are still to happen."""
        self._agenda.forget(owner)

    @property
    def now_s(self) -> float:
        """The time up to which everything has happened."""
        return self._now_s

    def set_link(self, device: str, up: bool) -> None:
        """Take a device's link down or up, the table staying as it is."""
        row = self._table.row(device)
        if row.link is up:
            return
        self._table.show(device, link=up)
        self.emit("link-up" if up else "link-down", device=device, port=row.port)

    def set_uuid(self, device: str, uuid: str | None) -> None:
        """Show another UUID than the device has; None shows its own again."""
        own = self._table.spec(device).uuid
        self._table.show(device, uuid=own if uuid is None else uuid)
        self.emit("uuid-changed", device=device, uuid=own if uuid is None else uuid)

    def rewound(self, t: float) -> tuple[DeviceRow, ...]:
        """Return the listing as it was at ``t``."""
        return self._table.rewound(t)

    def reboot(self, down_s: float) -> None:
        """The management CPU restarts: what runs is lost without an answer, the table is kept."""
        self._down_until_s = self._free_s = self._now_s + down_s
        self.emit("management-down", until_s=round(self._down_until_s, 6))
        for operation in list(self._in_flight.values()):
            operation.due_s = operation.answer_s = self._now_s
            self._lose(operation)
        self.at(self._down_until_s, self._back, REBOOT)

    def come_back(self) -> None:
        """End a reboot of the management CPU before its time."""
        if self._now_s < self._down_until_s:
            self._down_until_s = self._free_s = self._now_s
            self._back(self._now_s)

    def _back(self, t: float) -> None:
        if t >= self._down_until_s:
            self.forget(REBOOT)
            self.emit("management-up")

    # Telling

    def emit(self, event: str, **fields: Any) -> None:
        """Tell the listener, unless a fault holds the event back: that fault's own event comes first, at once."""
        if event in _BOARD_CHANGES:
            self._reinstall(event, fields["device"])
        delay_s = self.faults.delay(ChassisEvent(self.events_emitted + 1, self._now_s, self.spec.name, event, fields))
        self.events_emitted += 1
        emitted = ChassisEvent(self.events_emitted, self._now_s, self.spec.name, event, fields)
        if delay_s is None:
            self._deliver(emitted)
        else:
            self.at(emitted.t + delay_s, lambda t: self._deliver(emitted), HELD)

    def _board(self, row: DeviceRow) -> InstalledBoard:
        spec = self._table.spec(row.device)
        return InstalledBoard(row.device, spec.uuid, spec.model, row.link and row.port is not None)

    def _reinstall(self, event: str, device: str) -> None:
        if event == "device-removed":
            self.telemetry.remove(device)
            return
        self.telemetry.install(self._board(self._table.row(device)), self._now_s)
        if event == "link-up":
            self.telemetry.retrained(device, self._now_s)

    def listen(self, listener: Listener) -> None:
        """One more who hears every event; it must not change the chassis."""
        self._listeners.append(listener)

    def _deliver(self, event: ChassisEvent) -> None:
        self._listener(event)
        for listener in self._listeners:
            listener(event)

    def _release(self) -> None:
        """Tell now what is held back: no event is lost."""
        for action in self._agenda.take(HELD):
            action(self._now_s)

    def _emit_finished(self, operation: Operation) -> None:
        if operation.kind is OperationKind.READ:
            return
        answer = operation.answer()
        shown = operation.outcome.value if operation.outcome is not OperationOutcome.REPLY else str(answer.ok).lower()
        reason = operation.refusal.code if operation.refusal else ""
        self.emit("operation-finished", **_named(operation), answer=shown, truth=answer.truth, reason=reason)


def _named(operation: Operation) -> Mapping[str, Any]:
    return {
        "operation": operation.number,
        "kind": operation.kind.value,
        "device": operation.device,
        "port": operation.port,
    }

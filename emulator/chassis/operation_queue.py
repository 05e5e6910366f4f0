"""The operations of one chassis, from their beginning to the answer.

An operation is begun, gets a due time, and takes effect when the box is next looked at after it. Writes queue for the
management CPU (contract chassis.md 2: operations on one chassis are serialised).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.agenda import SettledAgenda
from mews.emulator.chassis.errors import AlreadyAttachedError, LinkDownError, MoveCancelledError, RefusalError
from mews.emulator.chassis.event_outlet import EventOutlet
from mews.emulator.chassis.faults.board import FaultBoard
from mews.emulator.chassis.operation import Operation, OperationKind, OperationOutcome
from mews.emulator.chassis.table import DeviceTable
from mews.emulator.chassis.table_edits import TableEdits
from mews.emulator.hardware.chassis_profiles import ChassisProfile
from mews.emulator.hardware.latency import Fixed, Latency

READING = object()
"""Owner of the ends of reads."""


class OperationQueue:
    """Begins operations, lets them queue, and ends each at its time."""

    def __init__(
        self,
        profile: ChassisProfile,
        table: DeviceTable,
        edits: TableEdits,
        *,
        agenda: SettledAgenda,
        events: EventOutlet,
        faults: FaultBoard,
    ) -> None:
        self._latencies: Mapping[OperationKind, Latency] = {
            OperationKind.ATTACH: profile.attach,
            OperationKind.DETACH: profile.detach,
            OperationKind.READ: profile.read,
        }
        self._reads_queue = profile.reads_queue
        self._table = table
        self._edits = edits
        self._agenda = agenda
        self._events = events
        self._faults = faults

    def begin_anew(self, rng: random.Random) -> None:
        """Forget all operations: from now on they are numbered from one and take their times from ``rng``."""
        self._rng = rng
        self._numbers = 0
        self._in_flight: dict[int, Operation] = {}
        self._writes: dict[int, Operation] = {}
        self.serve_from(self._agenda.now_s)

    def serve_from(self, at_s: float) -> None:
        """Answer nothing that is begun before that time."""
        self._free_s = self.away_until_s = at_s

    # Looking

    def pending(self) -> dict[str, OperationKind]:
        """Device -> the write on it that is begun and not settled."""
        return {op.device: op.kind for op in self._writes.values()}

    def writes(self) -> tuple[Operation, ...]:
        """Return the writes that are begun and not settled, in their order."""
        return tuple(self._writes.values())

    def only_reads(self) -> bool:
        """Return whether nothing is going on in the chassis but reads, which change nothing."""
        return not self._writes and self._agenda.only(READING)

    def read_at_once(self) -> None:
        """From now on a read takes no time, for a chassis whose time stands still."""
        self._latencies = {**self._latencies, OperationKind.READ: Fixed(0.0)}

    # Beginning

    def begin(self, kind: OperationKind, device: str, port: str | None, now_s: float) -> Operation:
        """Return a new operation; it ends when the time is settled up to its ``due_s``."""
        self._agenda.settle(now_s)
        now_s = self._agenda.now_s
        self._numbers += 1
        queues = kind is not OperationKind.READ or self._reads_queue
        start_s = max(now_s, self._free_s) if queues else now_s
        operation = Operation(self._numbers, kind, device, port, now_s, start_s, start_s, start_s)
        if now_s < self.away_until_s:
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
        self._events.emit("operation-begun", **_named(operation), due_s=round(operation.due_s, 6))
        return operation

    def _plan(self, operation: Operation) -> None:
        """How long it takes and what faults make of it. What cannot be done even now is refused without delay."""
        if operation.kind is not OperationKind.READ and operation.start_s <= operation.begun_s:
            operation.refusal = self._refusal(operation)
        if operation.refusal is None:
            operation.last(self._latencies[operation.kind].draw(self._rng))
        self._faults.strike(operation)

    def _refusal(self, operation: Operation) -> RefusalError | None:
        try:
            row = self._table.row(operation.device)
            if operation.kind is OperationKind.ATTACH:
                if row.port is not None:
                    raise AlreadyAttachedError(f"device {row.device!r}: is on port {row.port}")
                self._edits.check_port(operation.port)
                if not row.link:
                    raise LinkDownError(f"device {row.device!r}: its link is down")
        except RefusalError as refusal:
            return refusal
        return None

    # Ending

    def cancel(self, operation: Operation, now_s: float) -> bool:
        """Give up an operation that has not taken effect; its answer is a refusal. False if it is too late."""
        self._agenda.settle(now_s)
        if operation.settled:
            return False
        operation.refusal, operation.settled = MoveCancelledError(f"operation {operation.number}: cancelled"), True
        operation.due_s = operation.answer_s = self._agenda.now_s
        self._landed(operation)
        self._emit_finished(operation)
        return True

    def lose_all(self, *, cut_short: bool = False) -> None:
        """End what runs without an answer or an effect; ``cut_short``: its work on the management CPU ends now too."""
        for operation in list(self._in_flight.values()):
            operation.answer_s = self._agenda.now_s
            if cut_short:
                operation.due_s = self._agenda.now_s
            self._lose(operation)

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
                    self._edits.move(operation.device, operation.port, operation.kind.value)
                except RefusalError as refusal:
                    operation.refusal = refusal
        self._emit_finished(operation)
        for action in operation.after:
            action()

    def _landed(self, operation: Operation) -> None:
        self._in_flight.pop(operation.number, None)
        self._writes.pop(operation.number, None)

    def _lose(self, operation: Operation) -> Operation:
        """Return an operation without answer or effect: the management server is not there."""
        operation.settled, operation.applies, operation.outcome = True, False, OperationOutcome.DROPPED
        self._landed(operation)
        self._emit_finished(operation)
        return operation

    def _emit_finished(self, operation: Operation) -> None:
        if operation.kind is OperationKind.READ:
            return
        answer = operation.answer()
        shown = operation.outcome.value if operation.outcome is not OperationOutcome.REPLY else str(answer.ok).lower()
        reason = operation.refusal.code if operation.refusal else ""
        self._events.emit("operation-finished", **_named(operation), answer=shown, truth=answer.truth, reason=reason)


def _named(operation: Operation) -> Mapping[str, Any]:
    return {
        "operation": operation.number,
        "kind": operation.kind.value,
        "device": operation.device,
        "port": operation.port,
    }

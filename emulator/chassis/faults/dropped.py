"""A connection that ends without an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation, OperationOutcome


@dataclass(frozen=True, slots=True)
class DroppedConnection:
    """The client sees EOF; the change took effect (``when: after``) or did not (``before``).

    Measured on Falcon 4005: EOF on four GETs, and on one POST after which the device was attached nowhere.
    """

    when: Literal["before", "after"] = "after"

    kind: ClassVar[str] = "dropped-connection"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach", "read")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Drop the connection in place of answering the operation."""
        operation.outcome = OperationOutcome.DROPPED
        if self.when == "before":
            operation.applies = False
        return True

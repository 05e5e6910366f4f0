"""No answer for a long time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation, OperationOutcome


@dataclass(frozen=True, slots=True)
class Timeout:
    """The connection stays open without an answer for ``hold_s`` and is then dropped; ``when`` as for a drop."""

    hold_s: float = 600.0
    when: Literal["before", "after"] = "after"

    kind: ClassVar[str] = "timeout"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach", "read")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Hold the answer back; the management CPU is not held."""
        operation.outcome = OperationOutcome.DROPPED
        operation.answer_s = operation.due_s + self.hold_s
        if self.when == "before":
            operation.applies = False
        return True

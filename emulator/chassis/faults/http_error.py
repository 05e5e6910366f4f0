"""The management server answers with an error of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation, OperationOutcome


@dataclass(frozen=True, slots=True)
class HttpError:
    """HTTP 5xx; the change took effect (``when: after``) or did not (``before``)."""

    status: Literal[500, 501, 502, 503, 504] = 503
    when: Literal["before", "after"] = "before"

    kind: ClassVar[str] = "http-error"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach", "read")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Let the operation be answered with the fault's HTTP status."""
        operation.outcome, operation.status = OperationOutcome.ERROR, self.status
        if self.when == "before":
            operation.applies = False
        return True

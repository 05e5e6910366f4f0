"""What a reconfiguration does to later reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation


@dataclass(frozen=True, slots=True)
class ReadAftermath:
    """Within ``within_s`` after the attach one read ends in EOF; the next is then partial with chance ``partial``.

    Measured on Falcon 4005 (contract chassis.md 2): EOF on GET within the minute after a reconfiguration, four times,
    two of them followed by a list of 2 of 4 or 5 devices.
    """

    within_s: float = 60.0
    partial: float = 0.5

    kind: ClassVar[str] = "read-aftermath"
    on: ClassVar[tuple[str, ...]] = ("attach",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Plant the faults that spoil later reads."""
        wait_s = bench.rng.uniform(0.0, self.within_s)
        at_s, left_s = operation.due_s + wait_s, self.within_s - wait_s
        if bench.rng.random() < self.partial:
            bench.add_at(at_s, {"kind": "partial-list", "skip": 1, "expires_s": left_s + self.within_s})
        bench.add_at(at_s, {"kind": "dropped-connection", "operation": "read", "expires_s": left_s})
        return True

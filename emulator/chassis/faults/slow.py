"""A slow operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation


@dataclass(frozen=True, slots=True)
class SlowOperation:
    """The operation takes ``factor`` times as long, and ``extra_s`` more."""

    factor: float = 1.0
    extra_s: float = 30.0

    kind: ClassVar[str] = "slow-operation"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach", "read")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Let the operation take longer."""
        operation.last((operation.due_s - operation.start_s) * self.factor + self.extra_s)
        return True

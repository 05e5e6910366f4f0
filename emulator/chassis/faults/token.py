"""A client's token that ends while the chassis works for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation, OperationOutcome


@dataclass(frozen=True, slots=True)
class TokenEnds:
    """All tokens end amid the operation: its client is answered 401, though it took effect (``when: after``), or
    without it (``before``), and must log in again. For dialects with a token service (cohdi.md 2.1)."""

    when: Literal["before", "after"] = "after"

    kind: ClassVar[str] = "token-ends"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach", "read")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """End the tokens when the operation is answered."""
        operation.outcome, operation.status, operation.ends_login = OperationOutcome.ERROR, 401, True
        if self.when == "before":
            operation.applies = False
        return True

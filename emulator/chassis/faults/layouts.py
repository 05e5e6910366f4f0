"""What befalls the layouts of a manager that applies one at a time (contract cohdi.md 2.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.emulator.chassis.errors import ChassisBusyError
from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation


@dataclass(frozen=True, slots=True)
class LayoutBusy:
    """A layout of another client is being applied: the move is refused with HTTP 409 and has no effect."""

    kind: ClassVar[str] = "layout-busy"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Refuse the operation without delay."""
        if operation.refusal is not None:
            return False
        operation.refuse(ChassisBusyError("another layout is being applied"))
        operation.last(0.0)
        return True


@dataclass(frozen=True, slots=True)
class LayoutHalfDone:
    """A layout ends amid its procedures: ``ends`` says how. The move after which it ends took effect (``when: after``)
    or did not (``before``); those behind it are skipped. A suspended layout blocks all others until it is canceled or
    resumed."""

    ends: Literal["FAILED", "SUSPENDED"] = "FAILED"
    when: Literal["before", "after"] = "after"

    kind: ClassVar[str] = "layout-half-done"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Let the layout end with the operation."""
        operation.layout_ends = self.ends
        if self.when == "before":
            operation.applies = False
        return True

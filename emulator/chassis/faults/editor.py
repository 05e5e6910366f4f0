"""Someone else changes the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation


@dataclass(frozen=True, slots=True)
class ConcurrentEditor:
    """Puts device ``edit`` (default: the operation's own) on ``port`` (null: on none) behind the client's back.

    It comes ``after_s`` after it was added, or, where the spec names an ``operation``, just ``before`` that takes
    effect or just ``after``. What the chassis refuses (an unknown port) does not happen.
    """

    edit: str | None = None
    port: str | None = None
    after_s: float = 0.0
    when: Literal["before", "after"] = "before"

    kind: ClassVar[str] = "concurrent-editor"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach", "read")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (2, 3, 4, 5, 6)
    grace_s: ClassVar[float] = 0.0

    def arm(self, bench: ChassisHandle) -> None:
        """Ask for the time of the edit."""
        if self.edit is None:
            raise ValueError("fault concurrent-editor: edit is required if no operation is given")
        bench.fire(self.after_s)

    def happen(self, bench: ChassisHandle) -> None:
        """Edit the table as another client of the chassis would."""
        if self.edit is not None:
            bench.edit(self.edit, self.port)

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Edit around the operation's effect."""
        device = self.edit or operation.device
        moments = operation.before if self.when == "before" else operation.after
        moments.append(lambda: bench.edit(device, self.port))
        return True

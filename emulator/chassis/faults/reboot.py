"""The management CPU restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation


@dataclass(frozen=True, slots=True)
class ManagementReboot:
    """All connections are dropped for ``down_s``, running operations are lost, the table is kept.

    It comes ``after_s`` after it was added, or, where the spec names an ``operation``, in the middle of that.
    """

    down_s: float = 60.0
    after_s: float = 0.0

    kind: ClassVar[str] = "management-reboot"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach", "read")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)

    @property
    def grace_s(self) -> float:
        """While it is away."""
        return self.down_s

    def arm(self, bench: ChassisHandle) -> None:
        """Ask for the time of the restart."""
        bench.fire(self.after_s)

    def happen(self, bench: ChassisHandle) -> None:
        """Restart the management CPU."""
        bench.reboot(0.0, self.down_s)

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Restart the management CPU while the operation is half done."""
        middle = (operation.start_s + operation.due_s) / 2
        bench.reboot(middle - bench.now_s, self.down_s)
        return True

    def undo(self, bench: ChassisHandle) -> None:
        """Let the management CPU answer again."""
        bench.come_back()

"""A device that stays where it is and loses its UUID."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle


@dataclass(frozen=True, slots=True)
class LostUuidFault:
    """After ``after_s`` the listing shows device ``device`` on its port without a UUID, as of a GPU that hangs.

    Clearing the fault shows its own again.
    """

    device: str
    after_s: float = 0.0

    kind: ClassVar[str] = "lost-uuid"
    on: ClassVar[tuple[str, ...]] = ()
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (2, 6, 8, 10)
    grace_s: ClassVar[float] = float("inf")

    def arm(self, bench: ChassisHandle) -> None:
        """Ask for the time at which the UUID is lost."""
        bench.fire(self.after_s)

    def happen(self, bench: ChassisHandle) -> None:
        """Let the device show no UUID."""
        bench.set_uuid(self.device, "")

    def undo(self, bench: ChassisHandle) -> None:
        """Let the device show its own UUID again."""
        bench.set_uuid(self.device, None)

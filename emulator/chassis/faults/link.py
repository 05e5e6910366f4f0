"""A device's link goes down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle


@dataclass(frozen=True, slots=True)
class LinkDownFault:
    """Surprise removal of device ``device`` after ``after_s``; the table keeps its row, listings leave it out.

    Clearing the fault brings the link up again.
    """

    device: str
    after_s: float = 0.0

    kind: ClassVar[str] = "link-down"
    on: ClassVar[tuple[str, ...]] = ()
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (2, 4, 5, 6, 8)
    grace_s: ClassVar[float] = float("inf")

    def arm(self, bench: ChassisHandle) -> None:
        """Ask for the time at which the link goes down."""
        bench.fire(self.after_s)

    def happen(self, bench: ChassisHandle) -> None:
        """Take the link down."""
        bench.set_link(self.device, False)

    def undo(self, bench: ChassisHandle) -> None:
        """Bring the link up again."""
        bench.set_link(self.device, True)

"""Events that arrive late, after others that happened later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.events import ChassisEvent

HARDWARE = ("table-changed", "link-down", "link-up", "device-inserted", "device-removed")


@dataclass(frozen=True, slots=True)
class EventsOutOfOrder:
    """A change of the table is reported ``delay_s`` late, after later changes. For example, a host reports the loss
    of a device before the edit that took the device."""

    delay_s: float = 5.0

    kind: ClassVar[str] = "events-out-of-order"
    on: ClassVar[tuple[str, ...]] = ()
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (2, 4, 5, 6, 8, 10)

    @property
    def grace_s(self) -> float:
        """Until the late event is there: so long the hosts, and whoever listens, know less than the table."""
        return self.delay_s

    def delay(self, event: ChassisEvent) -> float | None:
        """Hold back what a host would act on."""
        return self.delay_s if event.event in HARDWARE else None

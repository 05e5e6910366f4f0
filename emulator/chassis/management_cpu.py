"""The management CPU of a chassis: away while it restarts."""

from __future__ import annotations

from mews.emulator.chassis.agenda import SettledAgenda
from mews.emulator.chassis.event_outlet import EventOutlet
from mews.emulator.chassis.operation_queue import OperationQueue

REBOOT = object()
"""Owner of the pending end of a management reboot."""


class ManagementCpu:
    """Restarts the processor that serves a chassis' operations; meanwhile the table stays as it is."""

    def __init__(self, agenda: SettledAgenda, events: EventOutlet, operations: OperationQueue) -> None:
        self._agenda = agenda
        self._events = events
        self._operations = operations

    def down(self, now_s: float) -> bool:
        """Return whether the management CPU is away and answers nobody."""
        self._agenda.settle(now_s)
        return self._agenda.now_s < self._operations.away_until_s

    def reboot(self, down_s: float) -> None:
        """The management CPU restarts: what runs is lost without an answer, the table is kept."""
        back_s = self._agenda.now_s + down_s
        self._operations.serve_from(back_s)
        self._events.emit("management-down", until_s=round(back_s, 6))
        self._operations.lose_all(cut_short=True)
        self._agenda.at(back_s, self._back, REBOOT)

    def come_back(self) -> None:
        """End a reboot of the management CPU before its time."""
        if self._agenda.now_s < self._operations.away_until_s:
            self._operations.serve_from(self._agenda.now_s)
            self._back(self._agenda.now_s)

    def _back(self, t: float) -> None:
        if t >= self._operations.away_until_s:
            self._agenda.forget(REBOOT)
            self._events.emit("management-up")

"""The events of a chassis: each reaches its listeners immediately, or when a fault releases it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.emulator.chassis.agenda import SettledAgenda
from mews.emulator.chassis.events import ChassisEvent, Listener

HELD = object()
"""Owner of events that are held back."""


class EventOutlet:
    """Numbers the events of one chassis and delivers them. ``emitted`` is the number of its last event.

    ``hold`` says for how long a fault holds an event back, None where none does; ``heed`` sees each before anybody
    else, to follow it.
    """

    def __init__(
        self,
        chassis: str,
        agenda: SettledAgenda,
        listener: Listener,
        *,
        emitted: int,
        hold: Callable[[ChassisEvent], float | None],
        heed: Callable[[ChassisEvent], None],
    ) -> None:
        self.emitted = emitted
        self._chassis = chassis
        self._agenda = agenda
        self._listeners = [listener]
        self._hold = hold
        self._heed = heed

    def emit(self, event: str, **fields: Any) -> None:
        """Notify the listeners, unless a fault holds the event back: that fault's own event comes first."""
        announced = ChassisEvent(self.emitted + 1, self._agenda.now_s, self._chassis, event, fields)
        self._heed(announced)
        delay_s = self._hold(announced)
        self.emitted += 1
        emitted = ChassisEvent(self.emitted, self._agenda.now_s, self._chassis, event, fields)
        if delay_s is None:
            self._deliver(emitted)
        else:
            self._agenda.at(emitted.t + delay_s, lambda t: self._deliver(emitted), HELD)

    def listen(self, listener: Listener) -> None:
        """Add one who hears every event; it must not change the chassis."""
        self._listeners.append(listener)

    def release(self) -> None:
        """Tell now what is held back: no event is lost."""
        for action in self._agenda.take(HELD):
            action(self._agenda.now_s)

    def _deliver(self, event: ChassisEvent) -> None:
        for listener in self._listeners:
            listener(event)

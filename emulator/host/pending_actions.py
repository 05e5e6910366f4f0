"""What is going to happen on a host, each at its time, and what waits until it can."""

from __future__ import annotations

import random

from mews.emulator.chassis.agenda import Agenda
from mews.emulator.hardware.latency import Latency
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.state_versions import StateVersions


class PendingActions:
    """Lets the actions of one host happen. ``now_s`` is the time up to which everything has happened."""

    def __init__(self, rng: random.Random, versions: StateVersions) -> None:
        self.now_s = 0.0
        self.agenda = Agenda()
        self._rng = rng
        self._versions = versions
        self._pending: list[PendingAction] = []
        self._settling = False

    def waiting(self) -> list[str]:
        """Return what waits, in words."""
        return [pending.what for pending in self._pending if not pending.done]

    def do(self, pending: PendingAction) -> PendingAction:
        """Let it happen now, or as soon as it can."""
        self._pending.append(pending)
        pending.advance()
        self._versions.changed()
        return pending

    def slowly(self, pending: PendingAction, latency: Latency) -> PendingAction:
        """Let it happen once a call of that latency is through; at once without one."""
        delay_s = latency.draw(self._rng)
        if delay_s > 0:
            due_s, ready = self.now_s + delay_s, pending.ready
            pending.ready = lambda: self.now_s >= due_s and ready()
            self.agenda.at(due_s, lambda t: None, pending)
        return self.do(pending)

    def settle(self, now_s: float) -> None:
        """Let everything happen that was due by now, each at its own time, and then what waited for it."""
        if self._settling:
            return
        self._settling = True
        try:
            while True:
                for at_s, action in self.agenda.due(max(now_s, self.now_s)):
                    self.now_s = max(self.now_s, at_s)
                    action(self.now_s)
                    self._versions.changed()
                self.now_s = max(self.now_s, now_s)
                if not [pending for pending in list(self._pending) if not pending.done and pending.advance()]:
                    break
                self._versions.changed()
            self._pending = [pending for pending in self._pending if not pending.done]
        finally:
            self._settling = False

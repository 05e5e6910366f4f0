"""What is going to happen in a chassis, in order of its time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

Action = Callable[[float], None]
"""Called with the time at which it happens."""


class Agenda:
    """Actions by their time, ties in the order of their making."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, object, Action]] = []
        self._made = 0
        self._counts: dict[int, int] = {}
        """How many entries each owner has, by its identity."""

    def at(self, at_s: float, action: Action, owner: object = None) -> None:
        """Let an action happen at a time; ``owner`` is for ``forget`` and ``take``."""
        self._made += 1
        self._counts[id(owner)] = self._counts.get(id(owner), 0) + 1
        heapq.heappush(self._entries, (at_s, self._made, owner, action))

    def due(self, now_s: float) -> Iterator[tuple[float, Action]]:
        """Take out what is due by now, also what that adds: its time and the action."""
        while self._entries and self._entries[0][0] <= now_s:
            at_s, _, owner, action = heapq.heappop(self._entries)
            if self._counts[id(owner)] == 1:
                del self._counts[id(owner)]
            else:
                self._counts[id(owner)] -= 1
            yield at_s, action

    def next_s(self) -> float | None:
        """Return when something will happen next. May be asked while another thread takes things out."""
        try:
            return self._entries[0][0]
        except IndexError:
            return None

    def only(self, owner: object) -> bool:
        """Return whether nothing but that owner's actions is going to happen."""
        return len(self._entries) == self._counts.get(id(owner), 0)

    def has(self, owner: object) -> bool:
        """Return whether an action of that owner is going to happen."""
        return id(owner) in self._counts

    def forget(self, owner: object) -> None:
        """Cancel all actions of an owner."""
        self.take(owner)

    def take(self, owner: object) -> list[Action]:
        """Take out all actions of an owner, in order."""
        if not self._counts.pop(id(owner), 0):
            return []
        taken = sorted(entry for entry in self._entries if entry[2] is owner)
        self._entries = [entry for entry in self._entries if entry[2] is not owner]
        heapq.heapify(self._entries)
        return [entry[3] for entry in taken]

    def clear(self) -> None:
        """Cancel every action that has not happened yet."""
        self._entries, self._counts = [], {}


class SettledAgenda(Agenda):
    """An agenda with the time up to which everything on it has happened. That time never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def settle(self, now_s: float) -> None:
        """Let everything happen that was due by now, each at its own time."""
        next_s = self.next_s()
        if next_s is not None and next_s <= now_s:
            for at_s, action in self.due(now_s):
                self.now_s = max(self.now_s, at_s)
                action(self.now_s)
        if now_s > self.now_s:
            self.now_s = now_s

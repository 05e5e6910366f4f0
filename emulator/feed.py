"""The events of all chassis, or of all hosts, in one sequence, for any number of readers on other threads."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Protocol

KEPT = 20_000
"""How many of the latest events can be read again."""


class FeedEvent(Protocol):
    """An event of a chassis or of a host."""

    def as_dict(self) -> dict[str, Any]:
        """Return the event for the wire."""
        ...


class EventFeed:
    """Each event gets a ``seq`` from 1 on, in the order in which it was told."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._seq = 0
        self._closed = False

    def emit(self, event: FeedEvent) -> None:
        """Append one event and wake the readers."""
        with self._changed:
            self._seq += 1
            self._events.append({"seq": self._seq, **event.as_dict()})
            self._changed.notify_all()

    def since(self, seq: int) -> list[dict[str, Any]]:
        """Return the kept events after that one."""
        with self._changed:
            return self._since(seq)

    def _since(self, seq: int) -> list[dict[str, Any]]:
        fresh = self._seq - seq
        if fresh <= 0:
            return []
        return [self._events[place] for place in range(-min(fresh, len(self._events)), 0)]

    @property
    def seq(self) -> int:
        """The number of the latest event."""
        with self._changed:
            return self._seq

    def wait(self, seq: int, timeout_s: float) -> list[dict[str, Any]] | None:
        """Return the events after ``seq``, waiting for one up to ``timeout_s`` real seconds; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._seq > seq, timeout_s)
            return None if self._closed else self._since(seq)

    def close(self) -> None:
        """End all readers."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

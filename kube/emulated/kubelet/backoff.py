"""Back-off of restarts and image pulls: 10 s, doubled each time, at most 5 min (client-go/util/flowcontrol)."""

from __future__ import annotations

from msgspec import Struct


class _Entry(Struct, frozen=True):
    delay_s: float
    updated_s: float


class BackOff:
    """Per key; all times are seconds of one clock."""

    def __init__(self, first_s: float, last_s: float) -> None:
        self._first_s = first_s
        self._last_s = last_s
        self._entries: dict[str, _Entry] = {}

    def holds(self, key: str, since_s: float, now_s: float) -> float | None:
        """Return the delay that is still in force since an event, or None."""
        entry = self._entries.get(key)
        if entry is None or self._expired(entry, since_s) or now_s - since_s >= entry.delay_s:
            return None
        return entry.delay_s

    def next(self, key: str, since_s: float, now_s: float) -> None:
        """The event was acted on: the next delay is the first, or twice the last one."""
        entry = self._entries.get(key)
        if entry is None or self._expired(entry, since_s):
            self._entries[key] = _Entry(self._first_s, now_s)
        else:
            self._entries[key] = _Entry(min(2 * entry.delay_s, self._last_s), now_s)

    def _expired(self, entry: _Entry, since_s: float) -> bool:
        return since_s - entry.updated_s > 2 * self._last_s


def go_duration(seconds: float) -> str:
    """Whole seconds as Go prints them: ``10s``, ``1m20s``, ``5m0s``."""
    minutes, rest_s = divmod(int(seconds), 60)
    return f"{minutes}m{rest_s}s" if minutes else f"{rest_s}s"

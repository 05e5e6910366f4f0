"""The order in which a chassis' events happened, for machines that hear some of them late."""

from __future__ import annotations

_ASPECTS = {
    "table-changed": "port",
    "device-inserted": "port",
    "device-removed": "port",
    "link-down": "link",
    "link-up": "link",
}


class EventOrder:
    """What was heard of one chassis since its table was read. Whoever loses its stream reads the table and begins anew:
    a chassis that starts again counts from 1 again."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], int] = {}
        self._reset = 0

    def is_news(self, number: int, event: str, device: str | None) -> bool:
        """Take the event's number; whether nothing later is known of what it changes of its device."""
        if event == "reset":
            self._reset = number
        if event not in _ASPECTS or device is None:
            return True
        changed = (device, _ASPECTS[event])
        if number < max(self._reset, self._latest.get(changed, 0)):
            return False
        self._latest[changed] = number
        return True

"""Watch events as lines of JSON, encoded once however many watch, and written together when there are many."""

from __future__ import annotations

import asyncio

from mews.kube.api.objects import Object
from mews.kube.client.port import WatchEvent
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.core.wire.negotiation import encode

_REMEMBERED = 1024
_BEAT_PER_WATCH_S, _LONGEST_BEAT_S = 0.0003, 0.03
"""To write one event to one watch takes a third of the first; at a hundred watches the beat is the longest."""


class EventTexts:
    """The lines of the latest events; an object is told from another by being the same, which is why it is kept."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, str, str, str], tuple[Object, bytes]] = {}

    def line(self, event: WatchEvent, kind: Kind) -> bytes:
        """Return the event as the kind shows it."""
        key = (id(event.object), event.type.value, kind.view, kind.resource.version)
        known = self._lines.get(key)
        if known is not None:
            return known[1]
        line = encode({"type": event.type.value, "object": view_of(kind).show(event.object)}) + b"\n"
        if len(self._lines) >= _REMEMBERED:
            del self._lines[next(iter(self._lines))]
        self._lines[key] = (event.object, line)
        return line


class WatchBeat:
    """Keeps watches from writing all the time: the first event goes out at once, what comes soon after it goes out
    together, once in a beat, which is the longer the more watch. One timer for all that wait."""

    def __init__(self) -> None:
        self._next: asyncio.Event | None = None

    async def after(self, written_s: float, watches: int) -> None:
        """Return at once when the last write is a beat ago, else with the next one; so many watch."""
        loop, beat_s = asyncio.get_running_loop(), min(_BEAT_PER_WATCH_S * watches, _LONGEST_BEAT_S)
        if loop.time() >= written_s + beat_s:
            return
        if self._next is None:
            self._next = asyncio.Event()
            loop.call_later(beat_s, self._strike, self._next)
        await self._next.wait()

    def _strike(self, struck: asyncio.Event) -> None:
        self._next = None
        struck.set()

"""Watch events as lines of JSON, encoded once however many watch."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.client.port import WatchEvent
from mews.kube.emulated.apiserver.store.kinds import Kind
from mews.kube.emulated.apiserver.store.views import view_of
from mews.kube.emulated.apiserver.wire.negotiation import encode

_REMEMBERED = 1024


class EventTexts:
    """The lines of the latest events; an object is told from another by being the same, which is why it is kept."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, str, str, str], tuple[Object, bytes]] = {}

    def line(self, event: WatchEvent, kind: Kind) -> bytes:
        """The event as the kind shows it."""
        key = (id(event.object), event.type.value, kind.view, kind.resource.version)
        known = self._lines.get(key)
        if known is not None:
            return known[1]
        line = encode({"type": event.type.value, "object": view_of(kind).show(event.object)}) + b"\n"
        if len(self._lines) >= _REMEMBERED:
            del self._lines[next(iter(self._lines))]
        self._lines[key] = (event.object, line)
        return line

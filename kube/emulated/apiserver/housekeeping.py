"""What keeps a served store from growing for ever: history that nobody may ask for any more or hardly will, events
past their time or their number."""

from __future__ import annotations

from collections import deque

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.clock import rest
from mews.kube.emulated.core.objects.deletion import delete
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store

COMPACTION_S = 300.0
"""How far back a watch may begin: kube-apiserver has etcd compacted as often (--etcd-compaction-interval)."""

EVENT_LIFE_S = 3600.0
"""How long an event is kept after its last write (--event-ttl)."""

MOST_EVENTS = 5_000
"""Events that are kept at the most: theirs lie on a disk, ours in memory."""

_LOOK_S = 15.0
_TURN = 50
"""Changes that are packed in a row."""
_EVENTS = Resource("", "v1", "events", "Event")


class Housekeeping:
    """Runs beside a server, in its store's time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions: deque[tuple[float, int]] = deque()
        self._events: dict[tuple[str, str], float] = {}
        self._kind = store.kinds.of(_EVENTS)
        self._stop = store.listen(self._on_commit)

    def _on_commit(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if kind.plural != "events" or kind.custom:
            return
        metadata = (new or old or {})["metadata"]
        key = (metadata["namespace"], metadata["name"])
        self._events.pop(key, None)
        if new is not None:
            self._events[key] = self._store.now()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await rest(_LOOK_S)
                self.look()
                await self._pack()
        finally:
            self._stop()

    def look(self) -> None:
        """Forget what is past its time."""
        now = self._store.now()
        self._versions.append((now, self._store.version))
        reached = 0
        while self._versions and self._versions[0][0] <= now - COMPACTION_S:
            reached = self._versions.popleft()[1]
        if reached:
            for kind in self._store.kinds:
                self._store.shelf(kind).compact(reached)
        while self._events:
            (namespace, name), written = next(iter(self._events.items()))
            if written > now - EVENT_LIFE_S and len(self._events) <= MOST_EVENTS:
                return
            del self._events[namespace, name]
            try:
                delete(self._store, self._kind, namespace, name)
            except ApiError:  # it went by itself
                continue

    async def _pack(self) -> None:
        """Put the history from before the last look but one into little room, and let others work meanwhile."""
        if len(self._versions) < 2:
            return
        version = self._versions[-2][1]
        for kind in list(self._store.kinds):
            while self._store.shelf(kind).pack(version, _TURN):
                await rest(0.0)

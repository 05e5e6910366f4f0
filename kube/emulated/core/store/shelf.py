"""One resource's objects, their recent history, and those who watch them.

Objects on the shelf are never changed, only replaced: readers share them.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator

from mews.kube.api.errors import GoneError
from mews.kube.api.objects import Object
from mews.kube.client.port import EventType, WatchEvent
from mews.kube.emulated.core.store.selection import Selection, text_at

Key = tuple[str, str]
"""(namespace, name); the namespace is "" for cluster-scoped objects."""

HISTORY = 10_000
"""Changes remembered per resource; a watch from before them is told 410 Expired."""

BACKLOG = 100_000
"""Events that a watcher may leave unread before it is cut off, as the API server does with slow ones."""

_FAST = 1

_Events = dict[tuple[str | None, str, str], "WatchEvent | None"]
"""Events of one change, by the source of the selection."""


class CommittedWrite:
    """One committed write: what was, what is (None once deleted), and the last state of what went. Packed it takes a
    tenth of the room; what is read of it then is made anew."""

    __slots__ = ("_left", "_packed", "_pair", "version")

    def __init__(self, version: int, old: Object | None, new: Object | None) -> None:
        self.version = version
        self._pair: tuple[Object | None, Object | None] | None = (old, new)
        self._packed = b""
        self._left: Object | None = None

    def both(self) -> tuple[Object | None, Object | None]:
        """(what was, what is)."""
        if self._pair is not None:
            return self._pair
        old, new = json.loads(zlib.decompress(self._packed))
        return old, new

    @property
    def old(self) -> Object | None:
        """What was."""
        return self.both()[0]

    @property
    def new(self) -> Object | None:
        """What is."""
        return self.both()[1]

    def pack(self) -> bool:
        """Put it into little room; whether it was not before."""
        if self._pair is None:
            return False
        self._packed = zlib.compress(json.dumps(self._pair, separators=(",", ":")).encode(), _FAST)
        self._pair = self._left = None
        return True

    def seen_by(self, selection: Selection) -> WatchEvent | None:
        """Return the event that a watcher with that selection gets: entering is ADDED, leaving is DELETED with the old
        content and the new version."""
        old, new = self.both()
        was = old is not None and selection.matches(old)
        if new is not None and selection.matches(new):
            return WatchEvent(EventType.MODIFIED if was else EventType.ADDED, new)
        return WatchEvent(EventType.DELETED, self.left()) if was else None

    def left(self) -> Object:
        """Return the old content under the new version."""
        if self._left is None:
            old = self.old
            assert old is not None
            left = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
            if self._pair is None:
                return left
            self._left = left
        return self._left


class WatchInbox:
    """The inbox of one watch."""

    __slots__ = ("_after", "_alarm", "_ended", "_events", "_waiter", "backlog", "bucket", "selection", "shelf")

    def __init__(self, shelf: ResourceShelf, selection: Selection, after: int) -> None:
        self.shelf = shelf
        self.selection = selection
        self._after = after
        self.backlog = BACKLOG
        self.bucket = selection.narrow()
        self._events: deque[WatchEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._ended = False

    def offer(self, change: CommittedWrite, known: _Events) -> None:
        """Take in a change if it is selected and new to this watch (which may wait for a version yet to come).
        ``known`` is what others get of it: who select the same get the same event."""
        if change.version <= self._after:
            return
        source = self.selection.source
        if source in known:
            event = known[source]
        else:
            event = known[source] = change.seen_by(self.selection)
        if event is not None:
            self.push(event)
            if len(self._events) > self.backlog:
                self.end()

    def push(self, event: WatchEvent) -> None:
        """Put an event at the end of the inbox."""
        self._events.append(event)
        self._wake()

    def end(self) -> None:
        """What is in the inbox is still delivered; then the watch ends."""
        self._ended = True
        self.shelf.unsubscribe(self)
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def ready(self) -> list[WatchEvent]:
        """Return all that can be read without waiting."""
        events = list(self._events)
        self._events.clear()
        return events

    def pop(self) -> WatchEvent | None:
        """Return the next event, None when there is none to be read."""
        return self._events.popleft() if self._events else None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes."""
        return self._ended

    def arrival(self) -> asyncio.Future[None]:
        """Return what is done once there is something to read, or the watch has ended."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    async def next_by(self, deadline_s: float) -> WatchEvent | None:
        """Return the next event, None when the watch has ended; TimeoutError when there is none by that time of the
        loop. ``close`` after the last one.

        The alarm that is set stays for later calls whose time is later, and is set anew once it rings: a timer for each
        event of each watch cost as much as sending it.
        """
        loop = asyncio.get_running_loop()
        while not self._events and not self._ended:
            if loop.time() >= deadline_s:
                raise TimeoutError
            if self._alarm is None or self._alarm.when() > deadline_s:
                self.close()
                self._alarm = loop.call_at(deadline_s, self._ring)
            await self.arrival()
        return self.pop()

    def _ring(self) -> None:
        self._alarm = None
        self._wake()

    def close(self) -> None:
        """Nobody waits here any more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def order_of(key: Key) -> tuple[str, str]:
    """Return them by which lists are sorted: the paths in etcd, where ``a-b/x`` comes before ``a/x``."""
    return f"{key[0]}/", key[1]


class ResourceShelf:
    """The objects of one resource."""

    def __init__(self, history: int = HISTORY) -> None:
        self._objects: dict[Key, Object] = {}
        self._keys: list[Key] = []
        self._history: deque[CommittedWrite] = deque(maxlen=history)
        self._floor = 0
        # Watches by the path and value they are narrowed to, so that a write meets only those it can concern.
        self._buckets: dict[tuple[str, ...], dict[str, dict[WatchInbox, None]]] = {}
        self._broad: dict[WatchInbox, None] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """Return the stored object, or None."""
        return self._objects.get(key)

    def select(self, selection: Selection) -> Iterator[Object]:
        """Yield all selected objects, in the order of their paths."""
        for key in self._range(selection.namespace):
            obj = self._objects[key]
            if selection.is_everything or selection.matches(obj):
                yield obj

    def at(self, version: int) -> dict[Key, Object]:
        """Return the objects as they were when that version was written; ``Gone`` when the history does not reach
        back."""
        if version < self._floor:
            raise GoneError(f"The resourceVersion for the provided list is too old: {version}")
        found = dict(self._objects)
        for change in reversed(self._history):
            if change.version <= version:
                break
            old, new = change.both()
            latest = new or old
            assert latest is not None
            key = (latest["metadata"].get("namespace", ""), latest["metadata"]["name"])
            if old is None:
                found.pop(key, None)
            else:
                found[key] = old
        return found

    def _range(self, namespace: str | None) -> list[Key]:
        if namespace is None:
            return list(self._keys)
        start = bisect_left(self._keys, order_of((namespace, "")), key=order_of)
        return self._keys[start : bisect_left(self._keys, (f"{namespace}/\0", ""), start, key=order_of)]

    def put(self, key: Key, new: Object | None, version: int) -> CommittedWrite:
        """Commit a write; None deletes."""
        old = self._objects.get(key)
        if new is None:
            del self._objects[key]
            del self._keys[bisect_left(self._keys, order_of(key), key=order_of)]
        else:
            self._objects[key] = new
            if old is None:
                insort(self._keys, key, key=order_of)
        change = CommittedWrite(version, old, new)
        if len(self._history) == self._history.maxlen:
            self._floor = self._history[0].version
        self._history.append(change)
        self._publish(change)
        return change

    def _publish(self, change: CommittedWrite) -> None:
        both, known = change.both(), _Events()
        for subscription in list(self._broad):
            subscription.offer(change, known)
        for path, by_value in self._buckets.items():
            values = {text_at(obj, path): None for obj in both if obj is not None}
            for value in values:
                for subscription in list(by_value.get(value, ())):
                    subscription.offer(change, known)

    def subscribe(self, selection: Selection, version: int | None) -> WatchInbox:
        """Watch: all later changes than ``version``; with None first ADDED for all that is there.

        Raises ``GoneError`` when the history does not reach back that far.
        """
        if version is not None and version < self._floor:
            raise GoneError(f"too old resource version: {version} ({self._floor})")
        subscription = WatchInbox(self, selection, version or 0)
        if version is None:
            for obj in self.select(selection):
                subscription.push(WatchEvent(EventType.ADDED, obj))
        else:
            for change in self._since(version):
                subscription.offer(change, {})
        if subscription.bucket is None:
            self._broad[subscription] = None
        else:
            path, value = subscription.bucket
            self._buckets.setdefault(path, {}).setdefault(value, {})[subscription] = None
        return subscription

    def _since(self, version: int) -> list[CommittedWrite]:
        later: list[CommittedWrite] = []
        for change in reversed(self._history):
            if change.version <= version:
                break
            later.append(change)
        later.reverse()
        return later

    def unsubscribe(self, subscription: WatchInbox) -> None:
        """End a watch: its inbox gets nothing more."""
        if subscription.bucket is None:
            self._broad.pop(subscription, None)
            return
        path, value = subscription.bucket
        by_value = self._buckets.get(path, {})
        by_value.get(value, {}).pop(subscription, None)
        if not by_value.get(value):
            by_value.pop(value, None)
        if not by_value:
            self._buckets.pop(path, None)

    def watchers(self) -> int:
        """Return how many watches are open."""
        return len(self._broad) + sum(len(subs) for by_value in self._buckets.values() for subs in by_value.values())

    def disconnect(self) -> None:
        """End all watches cleanly, as a restarting server would."""
        for subscription in list(self._broad):
            subscription.end()
        for by_value in list(self._buckets.values()):
            for subscriptions in list(by_value.values()):
                for subscription in list(subscriptions):
                    subscription.end()

    def compact(self, version: int) -> None:
        """Forget all history up to that version."""
        self._floor = max(self._floor, version)
        while self._history and self._history[0].version <= version:
            self._history.popleft()

    def pack(self, version: int, most: int) -> bool:
        """Put history up to that version into little room, at most so many changes of it; whether some are left."""
        done = 0
        for change in self._history:
            if change.version > version:
                return False
            done += change.pack()
            if done == most:
                return True
        return False

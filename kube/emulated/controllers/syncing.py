"""What every controller of workloads is built of: a queue of keys, and patience until its own writes are seen."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable

from mews.kube.api.errors import ApiError, ConflictError, UnavailableError
from mews.kube.api.objects import Object, is_deleting, key_of, uid_of, version_of
from mews.kube.client.informer import Informer
from mews.kube.clock import later
from mews.kube.component import Context

MANAGER = "kube-controller-manager"
"""The field manager of all that controllers write."""

_FIRST_BACKOFF_S, _LAST_BACKOFF_S = 0.005, 1000.0
"""client-go's default rate limiter for a key that fails."""

_TURN = 64
"""Keys that are worked on in a row at most: work that never awaits anything must not keep the others from the loop."""

Sync = Callable[[str], Awaitable[None]]


class SyncLoop:
    """Component: works off keys one by one. A key that fails comes back later and later; one that is added while it is
    being worked on is worked on again."""

    def __init__(self, context: Context, sync: Sync) -> None:
        self._context = context
        self._sync = sync
        self._keys: deque[str] = deque()
        self._waiting: dict[str, None] = {}
        self._failures: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._filled = asyncio.Event()

    def add(self, key: str) -> None:
        """Put a key in, unless it waits already."""
        if key not in self._waiting:
            self._waiting[key] = None
            self._keys.append(key)
            self._filled.set()

    def add_changed(self, old: Object | None, new: Object | None) -> None:
        """Put in the key of the object that came, changed or went; for ``Informer.on_change``."""
        changed = new or old
        if changed is not None:
            self.add(key_of(changed))

    def add_after(self, key: str, delay_s: float) -> None:
        """Put a key in after a while; of several such wishes for a key the earliest counts."""
        loop = asyncio.get_running_loop()
        at_s = loop.time() + max(delay_s, 0.0)
        timer = self._timers.get(key)
        if timer is not None and not timer.cancelled() and loop.time() < timer.when() <= at_s:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_at(at_s, self._ring, key)

    def _ring(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key)

    async def run(self) -> None:
        """Run until cancelled."""
        done = 0
        try:
            while True:
                while self._keys:
                    await self._work(self._keys.popleft())
                    done += 1
                    if done % _TURN == 0:
                        await asyncio.sleep(0)
                self._filled.clear()
                await self._filled.wait()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _work(self, key: str) -> None:
        self._waiting.pop(key, None)
        try:
            await self._sync(key)
        except (ApiError, UnavailableError) as error:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            if not isinstance(error, ConflictError):
                self._context.log.info("%s is tried again: %s", key, error)
            later(min(_FIRST_BACKOFF_S * 2.0 ** min(failures, 30), _LAST_BACKOFF_S), lambda: self.add(key))
        else:
            self._failures.pop(key, None)


class WriteLimit:
    """How fast a controller may write: so many calls at once, and so many a second from then on, which are those of
    ``--kube-api-qps`` and ``--kube-api-burst`` of kube-controller-manager (pkg/controller/apis/config, 1.34). Without
    it a controller whose pods are refused as soon as they are there would make others without end."""

    def __init__(self, *, qps: float = 20.0, burst: int = 30) -> None:
        self._qps = qps
        self._burst = burst
        self._next_s = -math.inf

    async def take(self) -> None:
        """Wait until it is this call's turn."""
        now_s = asyncio.get_running_loop().time()
        due_s = max(self._next_s, now_s - (self._burst - 1) / self._qps)
        self._next_s = due_s + 1 / self._qps
        if due_s > now_s:
            await asyncio.sleep(due_s - now_s)


class Expectations:
    """What a controller wrote and has not seen in its caches yet, by key. As long as there is any, what the caches say
    is old, and nothing must be decided by it; the change that is waited for wakes the key up."""

    def __init__(self) -> None:
        self._awaited: dict[str, list[Callable[[], bool]]] = {}

    def wrote(self, key: str, informer: Informer, written: Object) -> None:
        """The informer must get as far as this answer to a create, update or patch."""
        version = version_of(written)
        self._awaited.setdefault(key, []).append(lambda: informer.version >= version)

    def deleted(self, key: str, informer: Informer, doomed: Object) -> None:
        """The informer must see the object go, or go away."""
        place, uid = key_of(doomed), uid_of(doomed)

        def seen() -> bool:
            known = informer.at(place)
            return known is None or uid_of(known) != uid or is_deleting(known)

        self._awaited.setdefault(key, []).append(seen)

    def met(self, key: str) -> bool:
        """Return whether every creation and deletion that was asked for has been seen."""
        left = [seen for seen in self._awaited.get(key, ()) if not seen()]
        if left:
            self._awaited[key] = left
            return False
        self._awaited.pop(key, None)
        return True

    def forget(self, key: str) -> None:
        """A write failed, or the object is gone: what the caches say is all that is known."""
        self._awaited.pop(key, None)

"""A queue of keys as client-go's: each key waits at most once, and one that failed comes back later and later."""

from __future__ import annotations

import asyncio
from collections import deque

from mews.kube.clock import later

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 60.0


class WorkQueue:
    """The keys that wait for one worker: ``add`` while a key is being worked on puts it in again."""

    def __init__(self) -> None:
        self._keys: deque[str] = deque()
        self._waiting: set[str] = set()
        self._failures: dict[str, int] = {}
        self._filled = asyncio.Event()

    def add(self, key: str) -> None:
        """Put a key in, unless it waits already."""
        if key not in self._waiting:
            self._waiting.add(key)
            self._keys.append(key)
            self._filled.set()

    def retry(self, key: str) -> None:
        """Put a key in that failed, after a while that doubles with each failure in a row."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        later(min(_FIRST_BACKOFF_S * 2.0 ** min(failures, 20), _LAST_BACKOFF_S), lambda: self.add(key))

    def forget(self, key: str) -> None:
        """The key was worked on without a failure."""
        self._failures.pop(key, None)

    async def get(self) -> str:
        """Wait for the next key, and take it out of the queue."""
        while not self._keys:
            self._filled.clear()
            await self._filled.wait()
        key = self._keys.popleft()
        self._waiting.discard(key)
        return key

    def __len__(self) -> int:
        return len(self._keys)

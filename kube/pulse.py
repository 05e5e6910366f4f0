"""Something happened: wakes a loop that otherwise comes round by itself."""

from __future__ import annotations

import asyncio

from mews.kube.clock import rest


class Pulse:
    """A level: ``beat()`` as often as you like, the waiter wakes once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        """Wake the waiter, now or when it next waits."""
        self._event.set()

    async def wait(self, limit_s: float | None = None) -> bool:
        """Wait for a beat, at most so long; whether there was one. The limit is a rest (``mews.kube.clock.rest``)."""
        if limit_s is not None and not self._event.is_set():
            await self._wait_or_rest(limit_s)
        elif limit_s is None:
            await self._event.wait()
        beaten = self._event.is_set()
        self._event.clear()
        return beaten

    async def _wait_or_rest(self, limit_s: float) -> None:
        waits = (asyncio.ensure_future(self._event.wait()), asyncio.ensure_future(rest(limit_s)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

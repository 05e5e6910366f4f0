"""Something happened: wakes a loop that otherwise comes round by itself."""

from __future__ import annotations

import asyncio

from mews.kube.clock import rest_or


class Pulse:
    """A level: ``beat()`` as often as you like, the waiter wakes once."""

    def __init__(self) -> None:
        self._beaten = False
        self._waiters: list[asyncio.Future[None]] = []

    def beat(self) -> None:
        """Wake the waiter, now or when it next waits."""
        self._beaten = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, limit_s: float | None = None) -> bool:
        """Wait for a beat, at most so long; whether there was one. The limit is a rest (``mews.kube.clock.rest``)."""
        if not self._beaten:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await (waiter if limit_s is None else rest_or(waiter, limit_s))
            finally:
                self._waiters.remove(waiter)
        beaten, self._beaten = self._beaten, False
        return beaten

"""What every log of a container needs for those who read it as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from mews.kube.emulated.kubelet.runtime import LogMark


class LogReaders:
    """Those who wait for a log to grow."""

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self, grown: Callable[[], bool]) -> None:
        """Return once it has grown."""
        while not grown():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def wake(self) -> None:
        """Let all look whether it has."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


def marks_from(marks: Sequence[LogMark], offset: int) -> Sequence[LogMark]:
    """Return the pieces that end after that offset."""
    first = max((index for index, mark in enumerate(marks) if mark.offset <= offset), default=0)
    return marks[first:]

"""The components' only sources of time and chance: the running event loop and injected random streams.

Nothing else in ``mews.kube`` reads a clock. Under a virtual loop ``loop.time()`` jumps, and all of this jumps along.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

LOOP_BESIDE: ContextVar[asyncio.AbstractEventLoop] = ContextVar("mews-loop-beside")
"""The loop whose time it is on a thread that works for it."""


def _loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        beside = LOOP_BESIDE.get(None)
        if beside is None:
            raise
        return beside


class Clock:
    """Unix time derived from the running loop: ``epoch_s + loop.time()``, in seconds."""

    def __init__(self, epoch_s: float) -> None:
        self._epoch_s = epoch_s

    @classmethod
    def wall(cls) -> Clock:
        """Return the machine's own time; an asyncio loop counts the same monotonic seconds as ``time.monotonic``."""
        return cls(time.time() - time.monotonic())

    def now(self) -> float:
        """Return seconds since 1970-01-01T00:00:00Z."""
        return self._epoch_s + _loop().time()

    def datetime(self) -> datetime:
        """Return the same instant, aware, in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)


def wall_now() -> float:
    """Return seconds since 1970-01-01T00:00:00Z of this machine, for what another machine's time is compared with."""
    return time.time()


class Pace:
    """How fast emulated hardware, kubelet ticks and simulated durations pass: ``speed`` emulated s per loop second.

    API times are never paced. Virtual runs keep speed 1.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError(f"speed {speed}: must be above 0")
        self.speed = speed

    def now(self) -> float:
        """Emulated seconds; only differences mean something."""
        return asyncio.get_running_loop().time() * self.speed

    def loop_s(self, emulated_s: float) -> float:
        """Return how long an emulated span takes on the loop."""
        return emulated_s / self.speed


async def rest(delay_s: float) -> None:
    """Sleep as part of a loop that goes round for ever (a poll, a heartbeat, an unbounded retry).

    Unlike ``asyncio.sleep`` it does not count as something that may still happen: a virtual loop in which only rests
    are left, and a whole round of them changed nothing, is deadlocked.
    """
    loop = asyncio.get_running_loop()
    background = getattr(loop, "background", None)
    if background is None:
        await asyncio.sleep(delay_s)
        return
    waiter: asyncio.Future[None] = loop.create_future()
    handle = background(delay_s, _resolve, waiter)
    try:
        await waiter
    except BaseException:
        handle.cancel()
        raise


async def rest_or(woken: asyncio.Future[None], delay_s: float) -> None:
    """``rest`` until somebody resolves the future, at most so long; it is done then."""
    loop = asyncio.get_running_loop()
    handle = getattr(loop, "background", loop.call_later)(delay_s, _resolve, woken)
    try:
        await woken
    finally:
        handle.cancel()


def later(delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    """``rest`` for callbacks: call after the delay, unless the handle is cancelled before.

    Others whose time comes at the same instant run between the timer and the callback, as they do before a task that
    rested: who cancels then is still in time.
    """
    loop = asyncio.get_running_loop()
    in_turn = getattr(loop, "background_in_turn", None)
    handle: asyncio.TimerHandle = loop.call_later(delay_s, call) if in_turn is None else in_turn(delay_s, call)
    return handle


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def stream(seed: int | str, actor: str) -> random.Random:
    """Return an actor's own stream of chance; the same for the same seed and name in every process."""
    return random.Random(f"{seed}/{actor}")

"""Long pure work of a write, off the loop: a write that comes upon it is given up, and begun anew with the result.

A write reads and changes the store in one go, so it cannot wait in its midst. What takes long in it, expressions of
definitions and policies, hangs on its input alone: it is done on a thread beside the loop, of which there is one, and
its outcome is found when the write comes by again. In virtual time nobody sets ``LONG_WORK``: all is done at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from msgspec import Struct

from mews.kube.api.errors import ApiError, TooManyRequestsError
from mews.kube.cel.budgets import PACE
from mews.kube.cel.values import CelError
from mews.kube.clock import LOOP_BESIDE

T = TypeVar("T")

ON_LOOP_STEPS = 10_000
"""Steps of expressions that one try of a write takes on the loop: 50 ms."""
PATIENCE_S = 60.0
"""Real seconds that a request waits for all its long work, as kube-apiserver's ``--request-timeout``."""
MOST_WAITING = 64
"""Requests whose long work waits or runs; others are answered 429."""
_MOST_TRIES = 1000
_REFUSALS = (ApiError, CelError, RecursionError, ValueError)
"""What long work may end with as its result, which the write handles where it came upon the work."""


class _Outcome(Struct, frozen=True):
    value: Any = None
    error: Exception | None = None

    def get(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class _SliceSpentError(Exception):
    """The loop has done enough of it."""


class _GivenUpError(Exception):
    """Nobody waits for it any more."""


class LongWorkPendingError(Exception):
    """A write needs the result of long work that is not there yet; nothing was changed."""

    def __init__(self, key: Hashable, work: Callable[[], Any]) -> None:
        super().__init__("a write waits for long work")
        self.key = key
        self.work = work


class _OnLoop:
    """A pace that ends with the allowance."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def go_on(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _SliceSpentError


class _OffLoop:
    """A pace that goes on for as long as somebody waits."""

    def __init__(self) -> None:
        self.given_up = threading.Event()

    def go_on(self, steps: int) -> None:
        if self.given_up.is_set():
            raise _GivenUpError


class LongWorkThread:
    """The thread of a server: a daemon, so that a process ends at once whatever it does. ``close`` gives up what runs
    and waits."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._running: set[_OffLoop] = set()

    async def outcome(self, work: Callable[[], Any], *, until: float | None = None) -> _Outcome:
        """Return what it comes to; ``until``: the loop's time at which a request with several works gives up.

        Raises TooManyRequestsError, ApiError (504) where it takes too long.
        """
        if len(self._running) >= MOST_WAITING:
            raise TooManyRequestsError("too many requests need long work at this time; try again later")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="long work", daemon=True)
            self._thread.start()
        pace, loop = _OffLoop(), asyncio.get_running_loop()
        ended: asyncio.Future[_Outcome] = loop.create_future()
        context = contextvars.copy_context()
        context.run(PACE.set, pace)
        context.run(LONG_WORK.set, None)
        context.run(LOOP_BESIDE.set, loop)
        self._running.add(pace)
        self._orders.put(lambda: context.run(_do, work, pace, loop, ended))
        try:
            async with asyncio.timeout_at(loop.time() + PATIENCE_S if until is None else until):
                return await ended
        except TimeoutError:
            text = f"Timeout: request did not complete within the allotted timeout of {PATIENCE_S:g} s"
            raise ApiError(text, code=504, reason="Timeout") from None
        finally:
            pace.given_up.set()
            self._running.discard(pace)

    def close(self) -> None:
        """Begin nothing more."""
        for pace in self._running:
            pace.given_up.set()
        self._orders.put(None)
        self._thread = None

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            order()


def _do(
    work: Callable[[], Any], pace: _OffLoop, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[_Outcome]
) -> None:
    if pace.given_up.is_set():
        return
    outcome = _done(work)

    def settle() -> None:
        if not ended.done():
            ended.set_result(outcome)

    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(settle)


def _done(work: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(work())
    except Exception as error:  # noqa: BLE001 - the write raises it anew, on the loop
        return _Outcome(error=error)


class LongWork:
    """That of one request: what is done already, by its place among all that a try comes upon."""

    def __init__(self, thread: LongWorkThread) -> None:
        self._thread = thread
        self._known: dict[Hashable, _Outcome] = {}
        self._met = 0
        self._trying = False
        self._until: float | None = None

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Around one try of the write."""
        self._met, self._trying = 0, True
        token = PACE.set(_OnLoop(ON_LOOP_STEPS))
        try:
            yield
        finally:
            PACE.reset(token)
            self._trying = False

    def result(self, work: Callable[[], T], about: Callable[[], Hashable]) -> T:
        """Return what the work comes to; ``about`` tells it from what another input would come to."""
        if not self._trying:
            return work()
        self._met += 1
        key = (self._met, about()) if self._known else None
        if key is not None and key in self._known:
            known: T = self._known[key].get()
            return known
        try:
            return work()
        except _SliceSpentError:
            raise LongWorkPendingError((self._met, about()), work) from None

    def elsewhere(self, work: Callable[[], T], about: Callable[[], Hashable]) -> T:
        """Return the same of work that is known to be long: never done on the loop."""
        self._met += 1
        key = (self._met, about())
        if key not in self._known:
            raise LongWorkPendingError(key, work)
        known: T = self._known[key].get()
        return known

    async def do(self, pending: LongWorkPendingError) -> None:
        """Do what a try came upon.

        Raises ApiError.
        """
        if len(self._known) >= _MOST_TRIES:
            raise TooManyRequestsError("the object does not hold still while it is validated; try again later")
        # One bound for the whole request: each of many expressions could else take as long as one may.
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + PATIENCE_S
        outcome = await self._thread.outcome(pending.work, until=self._until)
        if outcome.error is not None and not isinstance(outcome.error, _REFUSALS):
            raise outcome.error  # a webhook is to be asked first, or it is an error of ours
        self._known[pending.key] = outcome


LONG_WORK: contextvars.ContextVar[LongWork | None] = contextvars.ContextVar("mews-long-work", default=None)
"""That of the request that this context serves; None where all is done at once."""


def sliced(work: Callable[[], T], about: Callable[[], Hashable] = lambda: None) -> T:
    """Return what pure work comes to, done beside the loop where it is long and the request came over the wire."""
    long_work = LONG_WORK.get()
    return work() if long_work is None else long_work.result(work, about)


def on_loop(read: Callable[[], T]) -> T:
    """Return what a look at the store comes to, in work that may run on the thread: the store is changed on the loop
    alone, so it is looked at there. Raises what the look raises."""
    loop = LOOP_BESIDE.get(None)
    if loop is None:
        return read()
    answer: Future[T] = Future()

    def look() -> None:
        try:
            answer.set_result(read())
        except Exception as error:  # noqa: BLE001 - raised anew, on the thread
            answer.set_exception(error)

    try:
        loop.call_soon_threadsafe(look)
    except RuntimeError:  # the loop is closed
        raise _GivenUpError from None
    return answer.result()


async def aside(work: Callable[[], T], thread: LongWorkThread) -> T:
    """Return what pure work comes to that is known to be long.

    Raises what it raises, and as ``LongWorkThread.outcome``.
    """
    found: T = (await thread.outcome(work)).get()
    return found

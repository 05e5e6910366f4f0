"""The event loop of virtual time.

A ``VirtualLoop`` is asyncio whose clock jumps to the next timer when nothing is ready (the idea of PyPI's looptime).
It starts at ``EPOCH_S``, runs in one thread and owns no file descriptor, so it refuses everything that would wait for
the outside world.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import UTC, date, datetime
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, TypeVar

from mews.kube.clock import Clock

EPOCH_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z, where every virtual run begins."""

T = TypeVar("T")


class OutsideWorld(RuntimeError):
    """Something under virtual time asked for a socket, a thread, a process or a signal."""


class Stalled(RuntimeError):
    """Nothing is ready and no timer is set: this loop would wait for ever."""


_RESOLUTION_S = 1e-9
_MANY_TIMERS = 100
"""Beyond so many, cancelled timers are swept out once they are the larger half, as asyncio's loop does."""


class _Timer(asyncio.TimerHandle):
    """Knows whether it is among the loop's timers still."""

    __slots__ = ("is_due",)
    is_due: bool


class _Rest(_Timer):
    """One that does not count as something that may still happen."""

    __slots__ = ()


class _Due(float):
    """When a timer is due; a number, so that the heap compares without a frame of Python."""

    __slots__ = ("timer",)
    timer: _Timer


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose time jumps. ``time()`` starts at 0.

    A world is thousands of callbacks of a few microseconds each, so what asyncio spends on every one of them shows:
    no debug mode is looked up, no selector asked, and timers are compared as the numbers that they are. Which callback
    comes after which is as in asyncio's own loop.
    """

    get_debug = bool
    """``bool()`` is False: asyncio asks at each handle, future and task, and needs no frame of Python for that."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[_Due] = []
        self._cancelled_timers = 0

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now_s

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        """As asyncio's."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:  # type: ignore[override]
        """As asyncio's."""
        return self._at(when, _Timer(when, callback, args, self, context))

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:  # type: ignore[override]
        """As asyncio's."""
        when = self._now_s + delay
        return self._at(when, _Timer(when, callback, args, self, context))

    def background(self, delay_s: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """A timer that does not count as something that may still happen (see ``mews.kube.clock.rest``)."""
        when = self._now_s + delay_s
        return self._at(when, _Rest(when, callback, args, self, None))

    def _at(self, when: float, timer: _Timer) -> _Timer:
        due = _Due(when)
        due.timer = timer
        heappush(self._timers, due)
        timer.is_due = True
        return timer

    def idle_until(self) -> float | None:
        """None while anything but rests and deadlines is pending; else the time of the last of those.

        Once that time has passed with nothing changed and this still not None, nothing can happen any more. A deadline
        (``asyncio.timeout``) only guards something else that is pending.
        """
        last = self._now_s
        for due in self._timers:
            if due.timer._cancelled:
                continue
            if not isinstance(due.timer, _Rest) and not _is_deadline(due.timer):
                return None
            last = max(last, due)
        return float(last)

    def _run_once(self) -> None:
        """One turn: forget cancelled timers, jump when nothing is ready, call what was ready as the turn began."""
        if self._cancelled_timers:
            self._forget_cancelled()
        timers, ready = self._timers, self._ready
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            if not timers:
                raise Stalled("nothing is ready and no timer is set")
            self._now_s = max(self._now_s, float(timers[0]))
        end_s = self._now_s + _RESOLUTION_S
        while timers and timers[0] < end_s:
            timer = heappop(timers).timer
            timer.is_due = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _forget_cancelled(self) -> None:
        timers = self._timers
        if len(timers) > _MANY_TIMERS and self._cancelled_timers > len(timers) / 2:
            self._timers = [due for due in timers if not due.timer.cancelled()]
            heapify(self._timers)
            self._cancelled_timers = 0
            return
        while timers and timers[0].timer.cancelled():
            self._cancelled_timers -= 1
            heappop(timers).timer.is_due = False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Count it while it is among the timers, as asyncio's loop does."""
        if isinstance(handle, _Timer) and handle.is_due:
            self._cancelled_timers += 1

    # What BaseEventLoop asks of its platform half.

    def _write_to_self(self) -> None:
        """No other thread to be woken by."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise OutsideWorld("virtual time has no sockets, threads, processes or signals; use an in-process adapter")

    add_reader = add_writer = add_signal_handler = _refuse  # type: ignore[assignment]
    run_in_executor = _refuse  # type: ignore[assignment]
    _add_reader = _add_writer = _make_subprocess_transport = _make_socket_transport = _refuse
    sock_recv = sock_sendall = sock_connect = sock_accept = _refuse

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """As ``call_soon``, for this thread alone: Ctrl-C wakes the loop by it, to have the run cancelled."""
        if self._thread_id != threading.get_ident():  # type: ignore[attr-defined]
            self._refuse()
        return self.call_soon(callback, *args, context=context)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""


def _is_deadline(handle: asyncio.TimerHandle) -> bool:
    callback = handle._callback  # type: ignore[attr-defined]
    return isinstance(getattr(callback, "__self__", None), asyncio.Timeout)


_COLLECT = (20_000, 10, 10)
"""When Python's collector looks for cycles: a world makes and drops more than it is tuned for, and looking ever again
through all hosts of a large one is a tenth of its cost; some ten megabytes more wait to be collected."""


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in virtual time and return its result."""
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECT)
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(main())
    finally:
        gc.set_threshold(*before)


def virtual_clock() -> Clock:
    """The clock of components under a ``VirtualLoop``."""
    return Clock(EPOCH_S)


def today() -> date:
    """The machine's date, in UTC."""
    return datetime.now(UTC).date()

"""The event loop of virtual time.

A ``VirtualLoop`` is asyncio whose clock jumps to the next timer when nothing is ready (the idea of PyPI's looptime).
It starts at ``EPOCH_S``, runs in one thread and owns no file descriptor, so it refuses everything that would wait for
the outside world.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, date, datetime
from typing import Any, NoReturn, TypeVar

from mews.kube.clock import Clock

EPOCH_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z, where every virtual run begins."""

T = TypeVar("T")


class OutsideWorld(RuntimeError):
    """Something under virtual time asked for a socket, a thread, a process or a signal."""


class Stalled(RuntimeError):
    """Nothing is ready and no timer is set: this loop would wait for ever."""


class _Jump:
    """The loop's selector: instead of waiting for descriptors it moves the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stalled("nothing is ready and no timer is set")
        if timeout > 0:
            self._loop.jump(timeout)
        return []

    def close(self) -> None:
        """Nothing to give back."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose time jumps. ``time()`` starts at 0."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._selector = _Jump(self)
        self._clock_resolution = 1e-9
        self._background: set[asyncio.TimerHandle] = set()

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now_s

    def jump(self, delay_s: float) -> None:
        """Let time pass, exactly up to the next timer where one is due then."""
        scheduled = self._scheduled  # type: ignore[attr-defined]
        target = self._now_s + delay_s
        if scheduled and abs(scheduled[0].when() - target) < 1e-6:
            target = scheduled[0].when()
        self._now_s = max(self._now_s, target)

    def background(self, delay_s: float, waiter: asyncio.Future[None]) -> asyncio.TimerHandle:
        """A timer that does not count as something that may still happen (see ``mews.kube.clock.rest``)."""

        def fire() -> None:
            self._background.discard(handle)
            if not waiter.done():
                waiter.set_result(None)

        handle = self.call_later(delay_s, fire)
        self._background.add(handle)
        return handle

    def idle_until(self) -> float | None:
        """None while anything but rests and deadlines is pending; else the time of the last of those.

        Once that time has passed with nothing changed and this still not None, nothing can happen any more. A deadline
        (``asyncio.timeout``) only guards something else that is pending.
        """
        last = self._now_s
        self._background = {handle for handle in self._background if not handle.cancelled()}
        for handle in self._scheduled:  # type: ignore[attr-defined]
            if handle.cancelled():
                continue
            if handle not in self._background and not _is_deadline(handle):
                return None
            last = max(last, handle.when())
        return last

    # What BaseEventLoop asks of its platform half.

    def _process_events(self, event_list: list[Any]) -> None:
        """No descriptors, no events."""

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

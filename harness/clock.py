"""The event loop of virtual time.

A ``VirtualLoop`` is asyncio whose clock jumps to the next timer when nothing is ready (the idea of PyPI's looptime).
It starts at ``EPOCH_S``, runs in one thread and owns no file descriptor, so it refuses everything that would wait for
the outside world.
"""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from datetime import UTC, date, datetime
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, TypeVar

from msgspec import Struct

from mews.kube.clock import Clock

EPOCH_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z, where every virtual run begins."""

T = TypeVar("T")


class OutsideWorldError(RuntimeError):
    """Something under virtual time asked for a socket, a thread, a process or a signal."""


class StalledLoopError(RuntimeError):
    """This loop would turn for ever: nothing is ready and no timer is set, or time stands however many come due."""


_RESOLUTION_S = 1e-9
_JUMPS_AT_ONE_INSTANT = 100_000
"""After so many timers in a row that time does not pass by, somebody waits in rests that round to none."""
_TURNS_AT_ONE_INSTANT = 2_000_000
"""After so many turns in a row somebody does something again and again and never waits."""
_MANY_TIMERS = 100
"""Beyond so many, cancelled timers are swept out once they are the larger half, as asyncio's loop does."""


class _Handle(Struct, eq=False):
    """What asyncio's Handle is to its own loop: made and dropped once per callback, so a struct."""

    callback: Callable[..., object] | None
    args: tuple[Any, ...]
    context: Context
    is_cancelled: bool = False

    def cancel(self) -> None:
        """As asyncio's."""
        self.is_cancelled = True
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        """Return it as asyncio's."""
        return self.is_cancelled

    def __repr__(self) -> str:
        # Not its arguments, which may hold a whole world: asyncio logs this where a callback fails.
        return f"<{type(self).__name__} {_name(self.callback)}>"


class _Timer(_Handle, kw_only=True):
    """Knows whether it is among the loop's timers still, and whether it counts as something that may still happen."""

    loop: VirtualLoop
    due_s: float
    is_rest: bool = False
    is_due: bool = True

    def cancel(self) -> None:
        """As asyncio's; the loop counts those that it has still."""
        if self.is_due and not self.is_cancelled:
            self.loop.cancelled_timers += 1
        super().cancel()

    def when(self) -> float:
        """Return it as asyncio's."""
        return self.due_s


class _Due(float):
    """When a timer is due; a number, so that the heap compares without a frame of Python."""

    __slots__ = ("timer",)
    timer: _Timer


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose time jumps. ``time()`` starts at 0.

    A world is thousands of callbacks of a few microseconds each, so what asyncio spends on every one of them shows:
    no debug mode is looked up, no selector asked, handles are structs, and timers are compared as the numbers that they
    are. Which callback comes after which is as in asyncio's own loop.
    """

    get_debug = bool
    """``bool()`` is False: asyncio asks at each future and task, and needs no frame of Python for that."""

    def __init__(self, order: int = 0) -> None:
        """``order`` draws in which order what is due at one moment is called; 0: as it was set."""
        super().__init__()
        self._drawn = random.Random(order) if order else None
        self._now_s = 0.0
        self._ready: deque[_Handle] = deque()
        self._timers: list[_Due] = []
        self._stands = 0
        self.cancelled_timers = 0
        """How many of its timers are."""

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now_s

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> _Handle:  # type: ignore[override]
        """Return it as asyncio's."""
        handle = _Handle(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> _Timer:  # type: ignore[override]
        """Return it as asyncio's."""
        context = copy_context() if context is None else context
        return self._set(_Timer(callback, args, context, loop=self, due_s=when))

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> _Timer:  # type: ignore[override]
        """Return it as asyncio's."""
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def background(self, delay_s: float, callback: Callable[..., object], *args: Any) -> _Timer:
        """Return a timer that does not count as something that may still happen (see ``mews.kube.clock.rest``)."""
        return self._set(_Timer(callback, args, copy_context(), loop=self, due_s=self._now_s + delay_s, is_rest=True))

    def background_in_turn(self, delay_s: float, callback: Callable[[], object]) -> _Timer:
        """Return the same for a callback whose turn comes after all that is ready then; until that it can be
        cancelled."""
        timer = self.background(delay_s, self._take_turn)
        timer.args = (timer, callback)
        return timer

    def _take_turn(self, timer: _Timer, callback: Callable[[], object]) -> None:
        timer.callback, timer.args = callback, ()
        self._ready.append(timer)

    def _set(self, timer: _Timer) -> _Timer:
        due = _Due(timer.due_s)
        due.timer = timer
        heappush(self._timers, due)
        return timer

    def idle_until(self) -> float | None:
        """Return None while anything but rests and deadlines is pending; else the time of the last of those.

        Once that time has passed with nothing changed and this still not None, nothing can happen any more. A deadline
        (``asyncio.timeout``) only guards something else that is pending.
        """
        last = self._now_s
        for due in self._timers:
            timer = due.timer
            if timer.is_cancelled:
                continue
            if not timer.is_rest and not _is_deadline(timer):
                return None
            if timer.due_s > last:
                last = timer.due_s
        return last

    # Complex: one flat turn of the loop: it runs for every callback.
    def _run_once(self) -> None:  # noqa: C901
        """Turn after turn until somebody stops the loop; asyncio would come back here for each.

        A turn: jump when nothing is ready, past timers that were cancelled; call what was ready as the turn began.
        """
        ready, timers, stopping = self._ready, self._timers, self._stopping  # type: ignore[attr-defined]
        next_ready = ready.popleft
        turns, at_s = 0, self._now_s
        while True:
            turns += 1
            if turns > _TURNS_AT_ONE_INSTANT:
                if self._now_s <= at_s:
                    raise StalledLoopError(f"time has stayed at {at_s:g} s for {turns - 1} turns in a row")
                turns, at_s = 0, self._now_s
            if not ready and not stopping:
                if self.cancelled_timers:
                    self._forget_cancelled()
                if not timers:
                    raise StalledLoopError("nothing is ready and no timer is set")
                self._jump(timers[0].timer.due_s)
            end_s, waiting = self._now_s + _RESOLUTION_S, len(ready)
            while timers and timers[0] < end_s:
                timer = heappop(timers).timer
                timer.is_due = False
                if timer.is_cancelled:
                    self.cancelled_timers -= 1
                else:
                    ready.append(timer)
            if self._drawn is not None and len(ready) > waiting + 1:
                self._shuffle(ready, waiting)
            for _ in range(len(ready)):
                handle = next_ready()
                if handle.is_cancelled:
                    continue
                try:
                    handle.context.run(handle.callback, *handle.args)  # type: ignore[arg-type]  # set until cancelled
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - the handler's, as in asyncio
                    self._failed(handle, error)
            if self._stopping:  # type: ignore[attr-defined]
                return

    def _shuffle(self, ready: deque[_Handle], begin: int) -> None:
        """Draw the order of what came due, which stands behind ``begin`` others."""
        due = [ready.pop() for _ in range(len(ready) - begin)]
        assert self._drawn is not None
        self._drawn.shuffle(due)
        ready.extend(due)

    def _jump(self, due_s: float) -> None:
        if due_s > self._now_s:
            self._now_s, self._stands = due_s, 0
            return
        self._stands += 1
        if self._stands >= _JUMPS_AT_ONE_INSTANT:
            raise StalledLoopError(f"time has stayed at {self._now_s:g} s for {self._stands} timers in a row")

    def _failed(self, handle: _Handle, error: BaseException) -> None:
        message = f"Exception in callback {_name(handle.callback)}"
        self.call_exception_handler({"message": message, "exception": error, "handle": handle})

    def _forget_cancelled(self) -> None:
        timers = self._timers
        if len(timers) > _MANY_TIMERS and self.cancelled_timers > len(timers) / 2:
            timers[:] = [due for due in timers if not due.timer.is_cancelled]
            heapify(timers)
            self.cancelled_timers = 0
            return
        while timers and timers[0].timer.is_cancelled:
            self.cancelled_timers -= 1
            heappop(timers).timer.is_due = False

    # What BaseEventLoop asks of its platform half.

    def _write_to_self(self) -> None:
        """No other thread to be woken by."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise OutsideWorldError("virtual time has no sockets, threads, processes or signals; use an in-process adapter")

    add_reader = add_writer = add_signal_handler = _refuse  # type: ignore[assignment]
    run_in_executor = _refuse  # type: ignore[assignment]
    _add_reader = _add_writer = _make_subprocess_transport = _make_socket_transport = _refuse
    sock_recv = sock_sendall = sock_connect = sock_accept = _refuse

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> _Handle:
        """Return it as ``call_soon``, for this thread alone: Ctrl-C wakes the loop by it, to have the run cancelled."""
        if self._thread_id != threading.get_ident():  # type: ignore[attr-defined]
            self._refuse()
        return self.call_soon(callback, *args, context=context)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""


class _Turns(deque[_Handle]):
    """What is ready, where the loop can be held between two callbacks."""

    hold: Callable[[], None] | None = None

    def popleft(self) -> _Handle:
        """Return the next one, once whoever holds the loop lets it go on."""
        self.held()
        return super().popleft()

    def held(self) -> None:
        """Call what was asked for, once."""
        hold, self.hold = self.hold, None
        if hold is not None:
            hold()


class HaltingLoop(VirtualLoop):
    """A virtual loop that can be held between two callbacks, and then goes on as if nothing had been."""

    def __init__(self, order: int = 0) -> None:
        super().__init__(order)
        self._turns = _Turns()
        self._ready = self._turns

    def hold_next(self, hold: Callable[[], None]) -> None:
        """Call ``hold`` once the callback that runs now has ended, before any other one and before time passes; what
        it raises ends the run."""
        self._turns.hold = hold

    def _jump(self, due_s: float) -> None:
        self._turns.held()
        super()._jump(due_s)


class LaterLoop(asyncio.SelectorEventLoop):
    """An ordinary loop, with sockets, whose time goes on from that of a virtual one."""

    def __init__(self, since_s: float) -> None:
        super().__init__()
        self._ahead_s = since_s - super().time()

    def time(self) -> float:
        """Return seconds of the virtual loop, passing as real ones do."""
        return super().time() + getattr(self, "_ahead_s", 0.0)


def _name(callback: Callable[..., object] | None) -> str:
    function = getattr(callback, "func", callback)
    return str(getattr(function, "__qualname__", type(function).__name__))


def _is_deadline(timer: _Timer) -> bool:
    return isinstance(getattr(timer.callback, "__self__", None), asyncio.Timeout)


_COLLECT = (20_000, 10, 10)
"""When Python's collector looks for cycles: a world makes and drops more than it is tuned for, and looking ever again
through all hosts of a large one is a tenth of its cost; some ten megabytes more wait to be collected."""


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]], *, order: int = 0, halts: bool = False) -> T:
    """Run a coroutine to its end in virtual time and return its result. ``order``: as ``VirtualLoop`` has it;
    ``halts``: on a ``HaltingLoop``."""
    answers: list[T] = []

    async def answer() -> None:
        # Not the task's own result: the runner lets the signal module show the task, and with it all that a world was.
        answers.append(await main())

    before = gc.get_threshold()
    gc.set_threshold(*_COLLECT)
    try:
        with asyncio.Runner(loop_factory=lambda: (HaltingLoop if halts else VirtualLoop)(order)) as runner:
            runner.run(answer())
        return answers[0]
    finally:
        gc.set_threshold(*before)


def virtual_clock() -> Clock:
    """Return the clock of components under a ``VirtualLoop``."""
    return Clock(EPOCH_S)


def today() -> date:
    """Return the machine's date, in UTC."""
    return datetime.now(UTC).date()

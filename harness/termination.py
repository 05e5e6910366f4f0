"""Ends a server that was told to end and does not: says what still runs, and leaves no process behind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from mews.harness import terminal

PATIENCE_S = 10.0
"""How long it may take to end in good order."""
AGAIN_S = 0.5
"""Signals closer upon each other are one request: ``timeout`` and a process group deliver it twice."""
_TURN_S = 3.0
"""A loop that takes no turn for so long counts as blocked; one that works hard on a busy machine takes many."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
AT_ONCE = (signal.SIGTERM, signal.SIGINT)
"""Of these a second one means at once; a shell passes a hang-up on once more by itself."""

_ASYNCIO = str(Path(asyncio.__file__).parent)


class TerminationGuard:
    """Around the loop of a server, in the main thread. ``watch`` gives the event that the first signal sets; a second
    one, or the end of the patience, ends the process: ``clean_up`` is to end what it started.

    Signals are followed by a thread of its own, through the descriptor that the interpreter writes them to: a loop that
    is blocked, or tasks that swallow every cancellation, can hold up neither the account of them nor the end.
    """

    def __init__(self, name: str, clean_up: Callable[[], None], patience_s: float = PATIENCE_S) -> None:
        self._name = name
        self._patience_s = patience_s
        self._clean_up = clean_up
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked = asyncio.Event()
        self._main = threading.get_ident()

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._on_signal) for number in ENDING}
        threading.Thread(target=self._follow, name="termination", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._writing)  # the thread reads the end, and ends

    def watch(self) -> asyncio.Event:
        """Set once the process is told to end. To be called on the loop that is guarded."""
        self._loop = asyncio.get_running_loop()
        return self._asked

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed: what is left ends by itself
                self._loop.call_soon_threadsafe(self._asked.set)
        else:
            self._asked.set()

    def _follow(self) -> None:
        first_s: float | None = None
        while True:
            left_s = None if first_s is None else max(0.0, first_s + self._patience_s - time.monotonic())
            ready, _, _ = select.select([self._reading], [], [], left_s)
            if not ready:
                self._end(f"told to end {self._patience_s:g} s ago, and still running")
            numbers = os.read(self._reading, 256)
            if not numbers:
                os.close(self._reading)
                return
            now_s = time.monotonic()
            if first_s is None and any(number in ENDING for number in numbers):
                first_s = now_s
            elif first_s is not None and now_s - first_s >= AGAIN_S and any(n in AT_ONCE for n in numbers):
                self._end("told to end a second time, and still running")

    def _end(self, why: str) -> None:
        """Say what runs, and go."""
        blocked = self._blocked()
        with contextlib.suppress(OSError, ValueError):
            lines = [f"{self._name}: {why}:", *(f"  {line}" for line in self._running(blocked))]
            terminal.err("\n".join(lines) + "\n")
            sys.stderr.flush()
        if blocked is None:  # A loop that is blocked makes nothing.
            self._stop_the_loop()
        logging.disable()  # What other threads still do fails as folders go, which is nobody's business.
        try:
            self._clean_up()
        finally:
            os._exit(1)

    def _stop_the_loop(self) -> None:
        """Let the loop do nothing more: it would make anew what is about to go."""
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            threading.Event().wait()

        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # It is closed.
                self._loop.call_soon_threadsafe(stop)
                stopped.wait(_TURN_S)

    def _running(self, blocked: FrameType | None) -> Iterator[str]:
        frames = sys._current_frames()
        if blocked is not None:
            yield f"the loop itself, which does not get on: {_place(blocked)}"
        for task in sorted(self._tasks(), key=lambda task: task.get_name()):
            yield f"task {task.get_name()}: {_waits_at(task)}"
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if thread.daemon or thread.ident == self._main or frame is None:
                continue
            if not frame.f_code.co_filename.endswith("concurrent/futures/thread.py"):  # else it waits for work
                yield f"thread {thread.name}: {_place(frame)}"

    def _blocked(self) -> FrameType | None:
        """Return where the loop is, if it does not come to what it is asked to do next: one that works is not stuck."""
        turn = threading.Event()
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(turn.set)
            except RuntimeError:  # it is closed: what is left is not its work
                return None
            if turn.wait(_TURN_S):
                return None
        return sys._current_frames().get(self._main)

    def _tasks(self) -> list[asyncio.Task[Any]]:
        if self._loop is None:
            return []
        with contextlib.suppress(RuntimeError):  # they change as they are looked at
            return [task for task in asyncio.all_tasks(self._loop) if not task.done()]
        return []


def _waits_at(task: asyncio.Task[Any]) -> str:
    """Return the innermost place outside of asyncio at which a task waits."""
    found, inside = "(not begun)", ""
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            inside = _place(frame)
            found = found if frame.f_code.co_filename.startswith(_ASYNCIO) else inside
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return found if inside == "" or found != "(not begun)" else inside


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"

"""Work spread over processes of this machine; its results come in the order of the work, as from one process."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Generic, NoReturn, TypeVar

from msgspec import Struct, field

from mews.harness.errors import RequirementError

R = TypeVar("R")

_CHUNK = 8
"""Items in one worker's hands at most; fewer where few are left, so that all end at about the same time."""
_CHUNKS_EACH = 8

TICK_S = 0.5
"""How often whoever waits for results is called meanwhile."""


class _Worker(Struct):
    process: ForkProcess
    connection: Connection
    items: deque[int] = field(default_factory=deque)
    """What it works on, and what it does next: it does not wait for us between two."""


class WorkerPool(Generic[R]):
    """Calls ``work`` with the numbers of some items, in ``jobs`` processes at once.

    Workers are forked from this process as it stands: what it has imported and read is theirs without being sent, only
    results travel and must be picklable. Fork is safe here because this process has neither threads nor a running loop,
    which the caller sees to. ``lost`` gives the result of an item whose worker died, from its number and the reason;
    another worker takes that one's place. What ``work`` raises is raised where the result would have been.
    """

    def __init__(
        self,
        work: Callable[[int], R],
        *,
        jobs: int,
        lost: Callable[[int, str], R],
        on_result: Callable[[R], None] = lambda _: None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._jobs = jobs
        self._lost = lost
        self._on_result = on_result
        self._on_tick = on_tick
        self._workers: list[_Worker] = []
        self._results: dict[int, _Ended[R]] = {}
        self._left: deque[int] = deque()

    def run(self, count: int) -> Iterator[R]:
        """Yield the results of items 0 to ``count`` - 1, in that order, each as soon as those before it are there.

        An interrupt ends the workers, gives what has ended out of turn, and is raised then. Raises RequirementError
        where not even one worker can be started.
        """
        self._left = deque(range(count))
        frozen = gc.get_freeze_count() > 0
        if not frozen:
            gc.freeze()  # pages that no collection touches stay shared with the workers
        try:
            for number in range(count):
                while number not in self._results:
                    self._employ()
                    self._receive()
                yield self._results.pop(number).value()
        except KeyboardInterrupt:
            self._end_all()
            yield from (self._results[number].value() for number in sorted(self._results))
            raise
        finally:
            self._end_all()
            if not frozen:
                gc.unfreeze()

    def _employ(self) -> None:
        """Give every worker that has none some items; start workers as long as there are items for them."""
        for worker in self._workers:
            if not worker.items and self._left:
                self._assign(worker)
        while len(self._workers) < self._jobs and self._left:
            try:
                worker = self._start()
            except OSError as error:
                if self._workers:
                    return  # fewer do as well
                raise RequirementError(f"no worker process can be started: {error.strerror or error}") from error
            self._workers.append(worker)
            self._assign(worker)

    def _assign(self, worker: _Worker) -> None:
        chunk = max(1, min(_CHUNK, len(self._left) // (_CHUNKS_EACH * self._jobs)))
        worker.items = deque(self._left.popleft() for _ in range(chunk))
        with contextlib.suppress(BrokenPipeError):  # it has died idle: noticed as it is waited for
            worker.connection.send(list(worker.items))

    def _start(self) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        others = [worker.connection for worker in self._workers] + [ours]
        # A signal that comes between fork and the worker's first line must not find the parent's handlers in it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            context = multiprocessing.get_context("fork")
            process = context.Process(target=_serve, args=(theirs, self._work, others, mask), daemon=True)
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()
        return _Worker(process, ours)

    def _receive(self) -> None:
        """Wait for the next results, a moment at most."""
        ready = wait([worker.connection for worker in self._workers], TICK_S)
        for worker in [worker for worker in self._workers if worker.connection in ready]:
            try:
                ended: _Ended[R] = worker.connection.recv()
            except (EOFError, OSError, pickle.UnpicklingError):
                self._bury(worker)
                continue
            self._note(worker, ended)
        self._on_tick()

    def _note(self, worker: _Worker, ended: _Ended[R]) -> None:
        if not worker.items:
            return
        item = worker.items.popleft()
        if ended.unsent:
            ended = _Ended(self._lost(item, ended.unsent))
        self._results[item] = ended
        if ended.result is not None:
            self._on_result(ended.result)

    def _bury(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join()
        self._note(worker, _Ended(unsent=f"its worker process {_end_of(worker.process.exitcode)}"))
        self._left.extendleft(reversed(worker.items))  # of its chunk the others have not begun

    def _end_all(self) -> None:
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.process.kill()  # it has nothing that outlives it
        for worker in workers:
            worker.process.join()
            worker.connection.close()


class _Ended(Struct, Generic[R], frozen=True):
    """What became of an item: a result, or what was raised, or why neither could be sent."""

    result: R | None = None
    error: Exception | None = None
    unsent: str = ""

    def value(self) -> R:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]


def _end_of(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    memory = ", as the kernel does when memory runs out" if name == "SIGKILL" else ""
    return f"was killed by {name}{memory}"


def _serve(connection: Connection, work: Callable[[int], Any], others: Sequence[Connection], mask: Any) -> None:
    """A worker: items in, results out, until its parent ends it or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert sys.__stdout__ is not None and sys.__stderr__ is not None
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # the parent's progress bar may stand in their place
    for other in others:
        other.close()
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent is gone: nobody to tell
        while True:
            for item in connection.recv():
                connection.send_bytes(_packed(work, item))


def _packed(work: Callable[[int], Any], item: int) -> bytes:
    try:
        ended = _Ended(work(item))
    except Exception as error:  # noqa: BLE001 - raised again in the parent
        ended = _Ended(error=error)
    try:
        packed = pickle.dumps(ended)
        if ended.error is not None:
            pickle.loads(packed)
    except Exception as error:  # noqa: BLE001 - pickle raises what it likes
        text = ended.error if ended.error is not None else error
        return pickle.dumps(
            _Ended(unsent=f"what its worker process came to cannot be sent: {type(text).__name__}: {text}")
        )
    return packed


def _end_with_parent() -> NoReturn:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)

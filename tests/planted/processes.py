"""Work in forked children, so many at a time; what they say on the way counts even where they end badly."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

Say = Callable[[Any], None]
Work = Callable[[Say], None]
"""What a child does; it says what it finds as it finds it."""


@dataclass(slots=True)
class _Child:
    number: int
    pid: int
    hears: Connection
    ends_s: float
    said: list[Any] = field(default_factory=list)


def said(works: Sequence[Work], *, jobs: int, limit_s: float) -> Iterator[tuple[int, list[Any]]]:
    """The number of each piece of work, as it ends, and what its child said; one that takes longer is ended."""
    waiting = list(enumerate(works))[::-1]
    running: dict[Connection, _Child] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            child = _begin(*waiting.pop(), limit_s)
            running[child.hears] = child
        for ready in wait(list(running), timeout=1.0):
            child = running[ready]  # type: ignore[index]
            try:
                child.said.append(pickle.loads(child.hears.recv_bytes()))
            except EOFError:
                del running[child.hears]
                yield _ended(child)
        for child in [one for one in running.values() if time.monotonic() > one.ends_s]:
            os.kill(child.pid, signal.SIGKILL)
            child.ends_s = float("inf")


def _begin(number: int, work: Work, limit_s: float) -> _Child:
    sys.stdout.flush()
    hears, says = Pipe(duplex=False)
    pid = os.fork()
    if pid:
        says.close()
        return _Child(number, pid, hears, time.monotonic() + limit_s)
    hears.close()
    try:
        work(lambda what: says.send_bytes(pickle.dumps(what)))
    except BaseException:  # noqa: BLE001 - the child's outermost: it must not go on as its parent
        if os.environ.get("PLANTED_DEBUG"):
            traceback.print_exc()
    finally:
        os._exit(0)


def _ended(child: _Child) -> tuple[int, list[Any]]:
    child.hears.close()
    os.waitpid(child.pid, 0)
    return child.number, child.said

"""The worlds of crash points that begin alike: the beginning is played once, and a child forked where each one strikes.

A world in virtual time is one thread without sockets, so that a forked child goes on with it as it stands. Half of the
work of a full sweep is saved.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait

from mews.harness.scenario.model import Scenario
from tests.crash_points.point import CrashPoint
from tests.crash_points.trial import Outcome, try_point

HANGS_S = 300
"""CPU seconds after which a child is ended."""


def branched(
    scenario: Scenario,
    points: Sequence[CrashPoint],
    *,
    pending: Sequence[str],
    seed: int,
    jobs: int,
    on_result: Callable[[int, Outcome], None],
) -> None:
    """Try all of these points of one scenario; ``on_result`` is called with a point's number and what became of it."""
    forks = _Forks(points, jobs, on_result)
    try:
        outcome = try_point(scenario, CrashPoint(scenario.name, ()), pending=pending, seed=seed, branch=forks.branch_at)
        forks.tell(outcome)
    except BaseException:
        forks.tell(lost_outcome(traceback.format_exc()))
        raise
    finally:
        forks.leave()
    forks.collect(at_most=0)
    for number in forks.unreached():
        on_result(number, try_point(scenario, points[number], pending=pending, seed=seed))


def lost_outcome(reason: str) -> Outcome:
    """Of a trial that did not come to its end."""
    return Outcome((reason,), (), (), 0, (), 0, 0, ())


class _Forks:
    """In the parent: its children by what they say. In a child: where to say it."""

    def __init__(self, points: Sequence[CrashPoint], jobs: int, on_result: Callable[[int, Outcome], None]) -> None:
        self._points, self._jobs, self._on_result = points, jobs, on_result
        self._due: dict[int, list[int]] = {}
        for number, point in enumerate(points):
            self._due.setdefault(point.incidents[0].line, []).append(number)
        self._children: dict[Connection, tuple[int, int]] = {}
        self._says: Connection | None = None

    def branch_at(self, line: int) -> CrashPoint | None:
        """Called in the parent for each line. Returns None there, and in each child the point that strikes here."""
        for number in self._due.pop(line, ()):
            self.collect(at_most=self._jobs - 1)
            hears, says = Pipe(duplex=False)
            loop = asyncio.get_running_loop()
            pid = os.fork()
            if pid == 0:
                asyncio._set_running_loop(loop)  # Python 3.11 takes it for the parent's, by the process id
                self._says = says
                self._children.clear()
                resource.setrlimit(resource.RLIMIT_CPU, (HANGS_S, HANGS_S))
                return self._points[number]
            says.close()
            self._children[hears] = (number, pid)
        return None

    def collect(self, *, at_most: int) -> None:
        """Wait until so many children are left."""
        while len(self._children) > at_most:
            for ready in wait(list(self._children)):
                hears: Connection = ready  # type: ignore[assignment]
                number, pid = self._children.pop(hears)
                try:
                    outcome = pickle.loads(hears.recv_bytes())
                except EOFError:
                    outcome = lost_outcome("its process ended before it did")
                hears.close()
                os.waitpid(pid, 0)
                self._on_result(number, outcome)

    def unreached(self) -> list[int]:
        """Points whose first line never came: they strike once all is at rest."""
        return sorted(number for numbers in self._due.values() for number in numbers)

    def tell(self, outcome: Outcome) -> None:
        """In a child: hand its outcome to the parent."""
        if self._says is not None:
            self._says.send_bytes(pickle.dumps(outcome))

    def leave(self) -> None:
        """In a child: end here, so that it does not go on as its parent."""
        if self._says is not None:
            os._exit(0)

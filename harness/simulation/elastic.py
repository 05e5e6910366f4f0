"""Plays a trace by a policy that changes jobs while they run: it keeps the line, the engine keeps the time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from itertools import count

from mews.harness.simulation.statistics import JobRow, TraceStatistics
from mews.kube.system.simulation import WHOLE, ElasticRun, ElasticScheduler, SimulatedJob

_NEVER = math.inf
_WINDOW = 200
"""Jobs that wait at most where others can still come: an elastic policy looks at all of them at every event."""


class StuckElasticError(ValueError):
    """Jobs wait and nothing can happen any more; one line."""


class ElasticEngine:
    """One run."""

    def __init__(
        self,
        scheduler: ElasticScheduler,
        statistics: TraceStatistics,
        *,
        on_job: Callable[[JobRow], None] | None = None,
        on_progress: Callable[[int], None] = lambda jobs: None,
    ) -> None:
        self._scheduler = scheduler
        self._statistics = statistics
        self._on_job = on_job
        self._on_progress = on_progress
        self._ends: list[tuple[float, int, ElasticRun]] = []
        self._numbers = count()
        self._booked: dict[int, tuple[int, int]] = {}

    # Complex: one loop over arrivals, decisions and ends: it runs for every job.
    def run(self, jobs: Iterable[SimulatedJob]) -> None:  # noqa: C901
        """Play all jobs to their end.

        Raises StuckElasticError.
        """
        scheduler, statistics, ends = self._scheduler, self._statistics, self._ends
        stream = iter(jobs)
        upcoming = next(stream, None)
        now_s = 0.0
        if upcoming is not None:
            statistics.arrived(upcoming.arrival_s)
        while True:
            while upcoming is not None and upcoming.arrival_s <= now_s and scheduler.waiting() < _WINDOW:
                if scheduler.could_ever(upcoming):
                    scheduler.submit(upcoming, now_s)
                else:
                    statistics.unplaceable += 1
                upcoming = next(stream, None)
            for run in scheduler.decide(now_s):
                self._book(run, now_s)
            statistics.peak_waiting = max(statistics.peak_waiting, scheduler.waiting())
            while ends and ends[0][2].ends_s != ends[0][0]:
                heapq.heappop(ends)  # it was changed since
            own_s = scheduler.next_s(now_s)
            next_s = min(ends[0][0] if ends else _NEVER, _NEVER if own_s is None else own_s)
            if upcoming is not None and scheduler.waiting() < _WINDOW:
                next_s = min(next_s, upcoming.arrival_s)
            if next_s == _NEVER:
                if upcoming is None and not scheduler.waiting():
                    return
                raise StuckElasticError(
                    f"after {now_s:g} s {scheduler.waiting()} jobs wait, and nothing can happen any more"
                )
            now_s = max(now_s, next_s)
            while ends and ends[0][0] <= now_s:
                at_s, _, run = heapq.heappop(ends)
                if run.ends_s == at_s:
                    self._end(run, at_s)

    def _book(self, run: ElasticRun, now_s: float) -> None:
        devices, cpu_milli = self._booked.get(id(run), (0, 0))
        self._statistics.take(now_s, (run.devices - devices) * WHOLE, run.cpu_milli - cpu_milli)
        self._booked[id(run)] = run.devices, run.cpu_milli
        if run.ends_s is not None:
            heapq.heappush(self._ends, (run.ends_s, next(self._numbers), run))

    def _end(self, run: ElasticRun, now_s: float) -> None:
        devices, cpu_milli = self._booked.pop(id(run))
        job, began_s = run.job, now_s if run.began_s is None else run.began_s
        self._statistics.take(now_s, -devices * WHOLE, -cpu_milli)
        self._statistics.ran(job.arrival_s, began_s, now_s)
        run.ends_s = None
        self._scheduler.end(run, now_s)
        if self._on_job is not None:
            self._on_job(JobRow(job.name, run.node, run.devices, job.arrival_s, began_s, now_s))
        if not self._statistics.jobs % 256:
            self._on_progress(self._statistics.jobs)

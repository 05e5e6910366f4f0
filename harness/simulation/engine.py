"""Plays a trace: jobs come when they arrive, a line tries them, a placer gives them room, and they end. Pure but for
the stream of jobs that it reads.

Every moment is settled before the next: what ended is released, devices that arrived are counted, jobs that arrived
join the line, and the line is asked until nobody else gets room.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from mews.harness.simulation.costs import KubeletCosts
from mews.harness.simulation.lines import JobLine
from mews.harness.simulation.statistics import JobRow, TraceStatistics
from mews.kube.system.simulation import WHOLE, JobPlacer, JobSpot, SimulatedJob

_SHAPES = 4096
_NEVER = math.inf
_TICK = 1024
"""Jobs between two calls of ``on_progress``."""


class SubmissionGate(Struct, frozen=True):
    """The driver submits a job only when none is Pending; it looks every so many seconds (None: sees it at once)."""

    every_s: float | None = None


class StuckTraceError(RuntimeError):
    """Jobs wait and nothing can happen any more; one line."""


class TraceEngine:
    """One run. ``costs`` None: pods cost nothing. ``on_job`` gets every job as it is settled, ``on_progress`` the
    number of jobs now and then."""

    def __init__(
        self,
        placer: JobPlacer,
        statistics: TraceStatistics,
        *,
        costs: KubeletCosts | None = None,
        gate: SubmissionGate | None = None,
        fractions: bool = False,
        on_job: Callable[[JobRow], None] | None = None,
        on_progress: Callable[[int], None] = lambda jobs: None,
    ) -> None:
        self._placer = placer
        self._statistics = statistics
        self._costs = costs
        self._gate = gate
        self._fractions = fractions
        self._on_job = on_job
        self._on_progress = on_progress
        self._ends: list[tuple[float, int, SimulatedJob, JobSpot]] = []
        self._moving: dict[int, SimulatedJob] = {}
        self._number = 0
        self._fits: dict[tuple[int, int, int], bool] = {}
        self._line: JobLine | None = None
        self._submitted_s = 0.0
        self._shown_s = 0.0

    def ends(self) -> Iterator[tuple[float, SimulatedJob, JobSpot]]:
        """Return when running jobs will have freed their room."""
        return ((at_s, job, spot) for at_s, _, job, spot in self._ends)

    # Complex: one loop over arrivals, decisions and ends: it runs for every job.
    def run(self, jobs: Iterable[SimulatedJob], line: JobLine) -> None:  # noqa: C901
        """Play all jobs to their end.

        Raises StuckTraceError.
        """
        self._line = line
        placer, statistics, ends, costs = self._placer, self._statistics, self._ends, self._costs
        stream = iter(jobs)
        upcoming = next(stream, None)
        due_s = _NEVER if upcoming is None else upcoming.arrival_s
        if upcoming is not None:
            statistics.arrived(due_s)
        now_s = 0.0
        while True:
            placed = True
            while placed:
                while due_s <= now_s and upcoming is not None and not line.full:
                    self._submit(upcoming, line, due_s)
                    upcoming = next(stream, None)
                    due_s = self._due_s(upcoming)
                placed = line.decide(now_s)
                if placed and self._gate is not None:
                    due_s = self._due_s(upcoming)
            next_s = ends[0][0] if ends else _NEVER
            if due_s < next_s and not line.full:
                next_s = due_s
            placer_s = placer.next_s()
            for own_s in (placer_s, line.next_s()):
                if own_s is not None and own_s < next_s:
                    next_s = own_s
            if next_s == _NEVER:
                if upcoming is None and not len(line) and not self._moving:
                    return
                raise StuckTraceError(f"after {now_s:g} s {len(line)} jobs wait, and nothing can happen any more")
            if next_s > now_s:
                now_s = next_s
            if ends and ends[0][0] <= now_s:
                while ends and ends[0][0] <= now_s:
                    _, _, job, spot = heapq.heappop(ends)
                    placer.release(job, spot, now_s)
                    if costs is None:
                        statistics.take(now_s, -self._used(job), -job.cpu_milli)
                line.changed(now_s)
            if self._moving or (placer_s is not None and placer_s <= now_s):
                due_s = self._advance(now_s, line, upcoming, due_s)

    def _advance(self, now_s: float, line: JobLine, upcoming: SimulatedJob | None, due_s: float) -> float:
        for spot in self._placer.advance(now_s):
            job = self._moving.pop(id(spot))
            if spot.ready:
                self._begin(job, spot, now_s)
                line.begun(job)
            else:
                line.given_up(job, spot, now_s)
        if self._placer.woke:
            line.changed(now_s)
        return self._due_s(upcoming) if self._gate is not None else due_s

    def _submit(self, job: SimulatedJob, line: JobLine, due_s: float) -> None:
        shape = (job.share, job.cpu_milli, job.memory_mib)
        fits = self._fits.get(shape)
        if fits is None:
            if len(self._fits) >= _SHAPES:
                self._fits.clear()
            fits = self._fits[shape] = self._placer.could_ever(job)
        if not fits:
            self._statistics.unplaceable += 1
            return
        self._submitted_s, self._shown_s = due_s, _NEVER
        line.submit(job, due_s)
        if len(line) > self._statistics.peak_waiting:
            self._statistics.peak_waiting = len(line)

    def _due_s(self, job: SimulatedJob | None) -> float:
        """Return when the next job is submitted, as far as is known."""
        if job is None:
            return _NEVER
        gate = self._gate
        if gate is None:
            return job.arrival_s
        if self._shown_s == _NEVER:
            return _NEVER
        first_s = max(job.arrival_s, self._submitted_s)
        if gate.every_s is None:
            return max(first_s, self._shown_s)
        looks = math.ceil((self._shown_s - first_s) / gate.every_s)
        return first_s + max(looks, 0) * gate.every_s

    def start(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """A job has its room: it begins, or waits for devices on their way."""
        if spot.ready:
            self._begin(job, spot, now_s)
        else:
            self._moving[id(spot)] = job

    def _used(self, job: SimulatedJob) -> int:
        """Return what it takes of devices, in hundredths."""
        return job.share if self._fractions else job.devices * WHOLE

    def _begin(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        statistics, used = self._statistics, self._used(job)
        statistics.take(now_s, used, job.cpu_milli)
        if self._costs is None:
            started_s, ended_s = now_s, now_s + job.duration_s
            self._shown_s, freed_s = now_s, ended_s
        else:
            span = self._costs.span(spot.node, spot.idle, now_s, job.duration_s)
            started_s, ended_s, freed_s = span.started_s, span.ended_s, span.freed_s
            self._shown_s = span.shown_s
            # A pod has ended before its room is free: its use ends apart from its release.
            statistics.give(ended_s, used, job.cpu_milli)
        spot.shown_s = self._shown_s
        statistics.ran(job.arrival_s, started_s, ended_s)
        self._number = number = self._number + 1
        heapq.heappush(self._ends, (freed_s, number, job, spot))
        if self._on_job is not None:
            self._on_job(JobRow(job.name, spot.node, used / WHOLE, job.arrival_s, started_s, ended_s))
        if not number % _TICK:
            self._on_progress(number)

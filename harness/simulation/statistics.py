"""What a trace came to, in memory that does not grow with it: sums, shares of time, and waits in classes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.harness.scenario.metrics import cumulative
from mews.kube.system.simulation import WHOLE

_CLASS = math.log(1.01)
"""Waits and the like are kept in classes one percent wide."""
_POINTS = 512
"""Use over time is kept in at most so many slices of equal length, half of them after each doubling."""


class Quantiles:
    """A distribution of seconds: exact mean, quantiles within one percent (and a hundredth of a second)."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self._classes: dict[int, int] = {}

    def add(self, value: float) -> None:
        """One more."""
        self.count += 1
        self.total += value
        if value > self.largest:
            self.largest = value
        number = int(math.log(value * 100 + 1) / _CLASS) if value > 0 else -1
        self._classes[number] = self._classes.get(number, 0) + 1

    @property
    def mean(self) -> float:
        """Their mean; 0 of none."""
        return self.total / self.count if self.count else 0.0

    def at(self, share: float) -> float:
        """Return the value that this share of them does not exceed."""
        left = share * self.count
        for number in sorted(self._classes):
            left -= self._classes[number]
            if left <= 1e-9:
                return 0.0 if number < 0 else min(math.expm1((number + 1) * _CLASS) / 100, self.largest)
        return self.largest


class UseOverTime:
    """The mean number of devices in use in each slice of time, of a run whose length nobody knows beforehand."""

    def __init__(self) -> None:
        self._slice_s = 1.0
        self._slices = [0.0]

    def add(self, from_s: float, to_s: float, used: float) -> None:
        """So many were in use between the two times."""
        while to_s >= self._slice_s * _POINTS:
            self._slices = [sum(self._slices[number : number + 2]) for number in range(0, len(self._slices), 2)]
            self._slice_s *= 2
        width, slices = self._slice_s, self._slices
        number = int(from_s // width)
        last = int(to_s // width)
        while len(slices) <= last:
            slices.append(0.0)
        if number == last:
            slices[number] += used * (to_s - from_s)
            return
        slices[number] += used * ((number + 1) * width - from_s)
        for between in range(number + 1, last):
            slices[between] += used * width
        slices[last] += used * (to_s - last * width)

    def means(self) -> tuple[float, list[float]]:
        """Return how long a slice is, and the mean of each."""
        return self._slice_s, [area / self._slice_s for area in self._slices]


class JobRow(Struct, frozen=True):
    """One job as it was played; times in seconds from the start of the trace."""

    job: str
    node: str
    devices: float
    arrival_s: float
    started_s: float
    ended_s: float


class TraceStatistics:
    """Fed by the engine, in order of time. Devices in use are counted in hundredths: sums of parts stay exact, and
    there are no more different ones than devices have hundredths, however many jobs come."""

    def __init__(self, cpu_milli: int) -> None:
        self.waits = Quantiles()
        self.completions = Quantiles()
        self.use = UseOverTime()
        self.jobs = 0
        self.unplaceable = 0
        self.last_end_s = 0.0
        self.peak_waiting = 0
        self._cpu_milli = cpu_milli
        self._first_s: float | None = None
        self._used = 0
        self._cpu = 0
        self._since_s = 0.0
        self._at: dict[int, float] = {}
        self._cpu_area = 0.0
        self._ends: list[tuple[float, int, int]] = []

    def arrived(self, at_s: float) -> None:
        """The first job is there: the time that counts begins."""
        if self._first_s is None:
            self._first_s = self._since_s = at_s

    def ran(self, arrival_s: float, started_s: float, ended_s: float) -> None:
        """A job's times are settled."""
        self.jobs += 1
        self.waits.add(started_s - arrival_s)
        self.completions.add(ended_s - arrival_s)
        if ended_s > self.last_end_s:
            self.last_end_s = ended_s

    def take(self, at_s: float, share: int, cpu_milli: int) -> None:
        """So many hundredths of devices more are in use from now on; fewer where they are negative."""
        self._pass(at_s)
        self._used += share
        self._cpu += cpu_milli

    def give(self, at_s: float, share: int, cpu_milli: int) -> None:
        """A job that runs will end then."""
        heapq.heappush(self._ends, (at_s, share, cpu_milli))

    def _pass(self, at_s: float) -> None:
        ends = self._ends
        while ends and ends[0][0] <= at_s:
            end_s, share, cpu_milli = heapq.heappop(ends)
            self._to(end_s)
            self._used -= share
            self._cpu -= cpu_milli
        self._to(at_s)

    def _to(self, at_s: float) -> None:
        since_s = self._since_s
        if at_s <= since_s:
            return
        used = self._used
        span_s = at_s - since_s
        self._at[used] = self._at.get(used, 0.0) + span_s
        self._cpu_area += self._cpu * span_s
        self.use.add(since_s, at_s, used / WHOLE)
        self._since_s = at_s

    def metrics(self) -> dict[str, Any]:
        """Return them as ``mews run`` has them, and what only a trace has."""
        while self._ends:
            self._pass(self._ends[0][0])
        metrics: dict[str, Any] = {"jobs": self.jobs, "unplaceable": self.unplaceable}
        if not self.jobs:
            return metrics
        metrics |= {
            "mean_wait_s": round(self.waits.mean, 3),
            "median_wait_s": round(self.waits.at(0.5), 3),
            "p95_wait_s": round(self.waits.at(0.95), 3),
            "longest_wait_s": round(self.waits.largest, 3),
            "mean_jct_s": round(self.completions.mean, 3),
            "makespan_s": round(self.last_end_s, 3),
        }
        lasted_s = sum(self._at.values())
        shares = {used / WHOLE: span_s / lasted_s for used, span_s in sorted(self._at.items())} if lasted_s else {}
        metrics["gpu_used_cdf"] = cumulative(_whole(shares))
        metrics["mean_gpus_used"] = round(sum(used * share for used, share in shares.items()), 4)
        whole = self._cpu_milli * lasted_s
        metrics["cpu_utilisation"] = round(self._cpu_area / whole, 4) if whole else 0.0
        return metrics


def _whole(shares: Mapping[float, float]) -> dict[int, float]:
    """Shares of time by whole numbers of devices: parts of one count as the next."""
    found: dict[int, float] = {}
    for used, share in shares.items():
        number = math.ceil(used)
        found[number] = found.get(number, 0.0) + share
    return found

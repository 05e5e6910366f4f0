"""Metrics of a run, from what was booked of its jobs and from its journal. Pure.

Wait, completion time, GPUs in use and CPU use as in the paper (contract kubecomp.md section 4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.journal import Line
from mews.harness.scenario.model import MetricBound
from mews.harness.scenario.trace import TraceJob


class JobTimes(Struct):
    """One job's life, in emulated seconds from the start of the workload; None while it has not come to that.

    ``started_s`` is the pod's startTime, which has whole seconds; ``began_s`` is when the watch showed it first.
    """

    job: TraceJob
    created_s: float | None = None
    started_s: float | None = None
    began_s: float | None = None
    ended_s: float | None = None
    node: str = ""
    phase: str = ""

    @property
    def wait_s(self) -> float | None:
        """The pod's startTime less the planned arrival: the gate counts, the container's start does not."""
        return None if self.started_s is None else self.started_s - self.job.arrival_s

    @property
    def jct_s(self) -> float | None:
        """The pod's end less the planned arrival."""
        return None if self.ended_s is None else self.ended_s - self.job.arrival_s


def workload_metrics(times: Sequence[JobTimes], cpus: float) -> dict[str, Any]:
    """Metrics of a workload; ``cpus`` is what all nodes have together. A mean over no job is left out."""
    metrics: dict[str, Any] = {}
    waits = [t.wait_s for t in times if t.wait_s is not None]
    jcts = [t.jct_s for t in times if t.jct_s is not None]
    ends = [t.ended_s for t in times if t.ended_s is not None]
    if waits:
        metrics["mean_wait_s"] = round(sum(waits) / len(waits), 3)
    if jcts:
        metrics["mean_jct_s"] = round(sum(jcts) / len(jcts), 3)
    if not ends:
        return metrics
    metrics["makespan_s"] = round(max(ends), 3)
    shares = gpu_shares(times)
    metrics["gpu_used_cdf"] = cumulative(shares)
    metrics["mean_gpus_used"] = round(sum(gpus * share for gpus, share in shares.items()), 4)
    metrics["cpu_utilisation"] = round(cpu_utilisation(times, cpus), 4) if cpus > 0 else 0.0
    return metrics


def gpu_shares(times: Sequence[JobTimes]) -> dict[int, float]:
    """Number of GPUs in use -> share of the time from the first arrival to the last end."""
    spans = [(t.began_s, t.ended_s, t.job.gpus) for t in times if t.began_s is not None and t.ended_s is not None]
    first = min((t.job.arrival_s for t in times), default=0.0)
    last = max((end for _, end, _ in spans), default=first)
    if last <= first:
        return {}
    changes: dict[float, int] = defaultdict(int)
    for start, end, gpus in spans:
        changes[max(start, first)] += gpus
        changes[end] -= gpus
    shares: dict[int, float] = defaultdict(float)
    used, since = 0, first
    for t in sorted(changes):
        shares[used] += (t - since) / (last - first)
        used, since = used + changes[t], t
    return {gpus: share for gpus, share in sorted(shares.items()) if share > 0}


def cumulative(shares: Mapping[int, float]) -> list[list[float]]:
    """``[[gpus, share of the time with at most that many], …]``, without what four digits do not show."""
    result: list[list[float]] = []
    total, shown = 0.0, 0.0
    for gpus, share in sorted(shares.items()):
        total += share
        if round(total, 4) > shown:
            shown = round(total, 4)
            result.append([gpus, shown])
    return result


def cpu_utilisation(times: Sequence[JobTimes], cpus: float) -> float:
    """CPU seconds asked for by running jobs, over those there were, from the first arrival to the last end."""
    first = min((t.job.arrival_s for t in times), default=0.0)
    last = max((t.ended_s for t in times if t.ended_s is not None), default=first)
    busy = sum(
        t.job.cpu_cores * (t.ended_s - t.began_s) for t in times if t.began_s is not None and t.ended_s is not None
    )
    return busy / (cpus * (last - first)) if last > first else 0.0


def hardware_metrics(lines: Iterable[Line]) -> dict[str, int]:
    """``moved_gpus``: attaches that were completed."""
    return {"moved_gpus": sum(line.layer == "chassis" and line.event == "attached" for line in lines)}


def bound_broken(name: str, bound: MetricBound, metrics: Mapping[str, Any]) -> str:
    """Return what is wrong with a metric, in one line; "" when it is within its bound."""
    value = metrics.get(name)
    if not isinstance(value, int | float):
        return f"{name} was not measured"
    if bound.of is not None and bound.within is not None and abs(value - bound.of) > bound.within * abs(bound.of):
        off = 100 * (value - bound.of) / bound.of if bound.of else float("inf")
        return f"{name} is {value:g}, {off:+.1f} % off {bound.of:g} (allowed: {100 * bound.within:g} %)"
    if bound.min is not None and value < bound.min:
        return f"{name} is {value:g}, below {bound.min:g}"
    if bound.max is not None and value > bound.max:
        return f"{name} is {value:g}, above {bound.max:g}"
    if bound.is_ is not None and value != bound.is_:
        return f"{name} is {value:g}, not {bound.is_:g}"
    return ""

"""The jobs of the paper's Tables I and II, drawn from a seed: five-minute jobs that arrive by chance. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

JOB_S, PER_GPU_S = 300.1, 1.05
"""How long a job runs, and what each of its GPUs adds (measured: rows of both replayed workloads)."""

GPUS: Mapping[str, int] = {"A": 1, "B": 1, "C": 2, "D": 4, "E": 8}
CPUS: Mapping[str, int] = {"A": 80, "B": 40, "C": 40, "D": 40, "E": 40}
"""Table I."""

WORKLOADS: Mapping[str, Mapping[str, int]] = {
    "W1": {"A": 10, "B": 10},
    "W2": {"A": 10, "C": 10},
    "W3": {"A": 5, "B": 5, "C": 5, "D": 5},
    "W4": {"A": 6, "B": 6, "C": 6, "D": 6, "E": 1},
}
"""Table II in jobs: 20, and 25 so that 4 % of them are one."""

INTERVAL_S = 60.0
"""Mean time from one arrival to the next on the testbed."""


class WorkloadJob(Struct, frozen=True):
    """One job; ``arrival_s`` counts from the first one's."""

    name: str
    type: str
    gpus: int
    cpus: int
    arrival_s: float
    duration_s: float


def drawn(mix: Mapping[str, int], seed: int | str, *, interval_s: float = INTERVAL_S) -> tuple[WorkloadJob, ...]:
    """Return that many jobs of each type; the seed decides their order and times, and the first comes at 0."""
    rng = random.Random(f"{seed}/jobs")
    types = [kind for kind, count in mix.items() for _ in range(count)]
    rng.shuffle(types)
    jobs, arrival_s, counts = [], 0.0, dict.fromkeys(mix, 0)
    for kind in types:
        counts[kind] += 1
        jobs.append(job_of(f"{kind.lower()}{counts[kind]:02}", kind, round(arrival_s)))
        arrival_s += rng.expovariate(1 / interval_s)
    return tuple(jobs)


def job_of(name: str, kind: str, arrival_s: float) -> WorkloadJob:
    """Return a job of a type of Table I."""
    return WorkloadJob(name, kind, GPUS[kind], CPUS[kind], arrival_s, JOB_S + PER_GPU_S * GPUS[kind])


def entries(jobs: Sequence[WorkloadJob]) -> list[dict[str, object]]:
    """Return them as the ``workload.jobs`` of a scenario."""
    return [{"job": job.name, "type": job.type, "arrival": job.arrival_s} for job in jobs]


def types() -> dict[str, dict[str, int]]:
    """Table I as the ``workload.types`` of a scenario."""
    return {kind: {"gpus": GPUS[kind], "cpus": CPUS[kind]} for kind in GPUS}

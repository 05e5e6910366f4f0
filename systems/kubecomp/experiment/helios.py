"""A job log that stands in for that of Helios Earth, in the same columns: jobs drawn from a seed. Pure.

Columns: the README of the public release (S-Lab-System-Group/HeliosData). What is drawn is ours: mostly small jobs,
lengths over orders of magnitude, arrivals by chance from June 2020 on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

COLUMNS = (
    "job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "start_time", "end_time",
    "duration", "queue",
)  # fmt: skip
BEGIN, END = datetime(2020, 6, 1, tzinfo=UTC), datetime(2020, 9, 1, tzinfo=UTC)
"""June to August 2020, of which the paper took the log; its times are local, and have no zone."""

SMALL: Mapping[int, float] = {1: 0.60, 2: 0.15, 4: 0.15}
"""How many GPUs jobs of less than eight ask for, by weight."""
LARGE = 8
MEDIAN_S, SPREAD, LONGEST_S = 600.0, 1.2, 86400.0


class LoggedJob(Struct, frozen=True):
    """A job on one node; ``submitted_s`` counts from the first one's."""

    number: int
    gpus: int
    cpus: float
    submitted_s: float
    duration_s: float


def drawn_log(
    seed: int, *, jobs: int, load: float, eights: float, cpus_per_gpu: float, pool_gpus: int
) -> list[LoggedJob]:
    """Return so many jobs, of which the share ``eights`` asks for eight GPUs. ``load``: GPU seconds asked for over
    those that a pool of ``pool_gpus`` has while jobs arrive. Times are whole seconds, as in the log."""
    rng = random.Random(f"fig12/{seed}/trace")
    rest = sum(SMALL.values())
    weights = [weight / rest * (1.0 - eights) for weight in SMALL.values()]
    sizes = rng.choices([*SMALL, LARGE], [*weights, eights], k=jobs)
    lengths = [max(1.0, round(min(rng.lognormvariate(0.0, SPREAD) * MEDIAN_S, LONGEST_S))) for _ in sizes]
    asked = sum(size * length for size, length in zip(sizes, lengths, strict=True))
    every_s = asked / (pool_gpus * load * jobs)
    found, submitted_s = [], 0.0
    for number, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        found.append(LoggedJob(number, size, cpus_per_gpu * size, float(round(submitted_s)), length))
        submitted_s += rng.expovariate(1 / every_s)
    return found


def log_text(jobs: Sequence[LoggedJob]) -> str:
    """Return the log as a ``cluster_log.csv``. Nobody waits in it: when jobs start is for whoever plays it."""
    return "\n".join((",".join(COLUMNS), *_rows(jobs))) + "\n"


def _rows(jobs: Sequence[LoggedJob]) -> Iterator[str]:
    for job in jobs:
        begin = BEGIN + timedelta(seconds=job.submitted_s)
        times = [f"{at:%Y-%m-%d %H:%M:%S}" for at in (begin, begin, begin + timedelta(seconds=job.duration_s))]
        row = (job.number, "u0", "vc0", job.gpus, f"{job.cpus:g}", 1, "COMPLETED", *times, f"{job.duration_s:g}", 0)
        yield ",".join(map(str, row))

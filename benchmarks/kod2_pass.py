"""One scheduling pass of the elastic operator with 1,000 jobs on 1,000 nodes, and how it grows from 100.

Three situations: a full cluster on which 500 jobs wait and nothing fits (what every tick costs under load); all jobs
arriving at once on an empty cluster; and a scale-in for a heavy job that needs many workers of others.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from benchmarks.common import progress, report
from mews.systems.kod2.model import (
    ClusterState,
    ElasticJob,
    NodeRoom,
    Queues,
    Running,
    TaskRequest,
    WaitingJob,
    worker_task,
)
from mews.systems.kod2.policy import decide

GIB = 2**30


def cluster(nodes: int) -> ClusterState:
    whole = (32_000, 128 * GIB, 110)
    return ClusterState(tuple(NodeRoom(f"node-{i:04d}", whole, whole) for i in range(nodes)))


def job(number: int, rng: random.Random, *, workers: int | None = None) -> ElasticJob:
    wanted = workers or rng.randint(2, 8)
    server = TaskRequest((rng.randint(1, 4) * 1000, 4 * GIB, 1))
    worker = TaskRequest((rng.randint(2, 8) * 1000, rng.randint(2, 16) * GIB, 1))
    return ElasticJob(
        f"default/job-{number:04d}", float(number % 30), (("ps-0", server),), worker, 2, max(2, wanted), wanted + 4
    )


def full(size: int) -> Queues:
    """Half of the jobs run, with as many workers as fill their two nodes; the others wait and fit nowhere."""
    rng, where = random.Random(1), cluster(size)
    running = []
    for number in range(size // 2):
        homes = (f"node-{2 * number:04d}", f"node-{2 * number + 1:04d}")
        server, worker = TaskRequest((2_000, 4 * GIB, 1)), TaskRequest((15_000, 8 * GIB, 1))
        what = ElasticJob(f"default/run-{number:04d}", 0.0, (("ps-0", server),), worker, 4, 4, 4)
        tasks = {"ps-0": homes[0], **{worker_task(i): homes[i // 2] for i in range(4)}}
        running.append(Running(what, tasks))
    waiting = [WaitingJob(job(number, rng), starving=False) for number in range(size // 2)]
    return Queues(where, tuple(waiting), tuple(running))


def arriving(size: int) -> Queues:
    """All jobs wait on an empty cluster."""
    rng = random.Random(2)
    return Queues(cluster(size), tuple(WaitingJob(job(number, rng)) for number in range(size)))


def preempting(size: int) -> Queues:
    """A starving job needs one whole node of a cluster full of jobs that could each give three workers."""
    where = cluster(size)
    running = []
    for number in range(size):
        worker = TaskRequest((7_500, 8 * GIB, 1))
        what = ElasticJob(f"default/run-{number:04d}", 0.0, (("ps-0", TaskRequest((2_000, GIB, 1))),), worker, 1, 4, 4)
        home = f"node-{number:04d}"
        running.append(Running(what, {"ps-0": home, **{worker_task(i): home for i in range(4)}}))
    large = ElasticJob(
        "default/large",
        0.0,
        (("ps-0", TaskRequest((2_000, GIB, 1))),),
        TaskRequest((20_000, GIB, 1)),
        size // 20,
        size // 20,
        size // 20,
    )
    return Queues(where, (WaitingJob(large, starving=True),), tuple(running))


def seconds_of(make: Callable[[int], Queues], size: int, runs: int) -> float:
    queues, taken = make(size), []
    for _ in range(runs):
        begin = time.process_time()
        decide(queues, 31.0)
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


def main() -> None:
    """Median of five (three for the largest), CPU time: a pass waits for nothing."""
    for name, make in {"full": full, "arriving": arriving, "preempting": preempting}.items():
        progress(f"a scheduling pass, {name}")
        small = seconds_of(make, 100, 5)
        report(f"kod2_pass_{name}_100", small, "s")
        large = seconds_of(make, 1000, 3)
        report(f"kod2_pass_{name}_1000", large, "s", baseline=small, baseline_name="100 jobs on 100 nodes")


if __name__ == "__main__":
    main()

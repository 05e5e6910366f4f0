"""KOD2's policy as traces are played by it: jobs of several instances have as many workers as there is room for.

A job needs one worker at least and may have all of its instances; its work is what they would do together in the
trace's time, and goes on as fast as its workers are many. Whatever ``policy.decide`` says happens at once.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mews.kube.system.simulation import ElasticRun, SimulatedCluster, SimulatedJob, TracePolicy
from mews.systems.kod2.model import (
    ClusterState,
    ElasticJob,
    NodeRoom,
    Options,
    Placed,
    Queues,
    Running,
    ScaledIn,
    ScaledOut,
    Starved,
    TaskRequest,
    WaitingJob,
)
from mews.systems.kod2.placement import Feasibility, feasibility
from mews.systems.kod2.policy import decide, next_look_s
from mews.systems.kod2.room import FreeRoom

_PODS = 110
_MIB = 1024 * 1024
_OPTIONS = {
    "starve_limit_s": "how long a job waits before it starves",
    "cooldown_s": "how long a scaled job is left alone",
}


class _Training(Struct, eq=False):
    """A running job: ``work`` is what is left of it, in seconds of one worker, as of ``since_s``."""

    job: ElasticJob
    run: ElasticRun
    tasks: dict[str, str]
    work: float
    since_s: float
    scaled_s: float | None = None


class TraceTrainingScheduler:
    """The operator's queues without its API."""

    reconfigurations = 0

    def __init__(self, cluster: SimulatedCluster, options: Options) -> None:
        self.moved = 0
        self._options = options
        nodes = tuple(
            NodeRoom(node.name, amounts, amounts)
            for node in cluster.nodes
            for amounts in [(node.cpu_milli, node.memory_mib * _MIB, _PODS, len(node.devices))]
        )
        self._cluster = ClusterState(nodes)
        self._empty = FreeRoom(self._cluster)
        self._waiting: dict[str, WaitingJob] = {}
        self._running: dict[str, _Training] = {}
        self._jobs: dict[str, SimulatedJob] = {}
        self._number = 0

    def _elastic(self, job: SimulatedJob, now_s: float) -> ElasticJob:
        self._number += 1
        ask = TaskRequest((job.cpu_milli, job.memory_mib * _MIB, 1, job.devices))
        return ElasticJob(f"{self._number:09}-{job.name}", now_s, (), ask, 1, job.instances, job.instances)

    def could_ever(self, job: SimulatedJob) -> bool:
        """Return whether one worker fits an empty node."""
        return feasibility(self._empty, self._elastic(job, 0.0)) is Feasibility.YES

    def submit(self, job: SimulatedJob, now_s: float) -> None:
        """A job is there."""
        elastic = self._elastic(job, now_s)
        self._jobs[elastic.key] = job
        self._waiting[elastic.key] = WaitingJob(elastic)

    def end(self, run: ElasticRun, now_s: float) -> None:
        """It has done its work."""
        key = next(key for key, each in self._running.items() if each.run is run)
        del self._running[key], self._jobs[key]

    def waiting(self) -> int:
        """Return how many jobs wait."""
        return len(self._waiting)

    def _queues(self) -> Queues:
        running = tuple(Running(each.job, each.tasks, each.scaled_s) for each in self._running.values())
        return Queues(self._cluster, tuple(self._waiting.values()), running)

    def next_s(self, now_s: float) -> float | None:
        """Return when a limit or a cooldown is over."""
        return next_look_s(self._queues(), now_s, self._options) if self._waiting or self._running else None

    def decide(self, now_s: float) -> Sequence[ElasticRun]:
        """Return what the policy decides, done at once."""
        changed: dict[str, _Training] = {}
        for decision in decide(self._queues(), now_s, self._options).decisions:
            match decision:
                case Starved(key):
                    self._waiting[key] = WaitingJob(self._waiting[key].job, starving=True)
                case Placed(key, tasks):
                    changed[key] = self._start(key, dict(tasks), now_s)
                case ScaledIn(key, gone):
                    changed[key] = self._scaled(key, now_s)
                    for task in gone:
                        del changed[key].tasks[task]
                case ScaledOut(key, more):
                    changed[key] = self._scaled(key, now_s)
                    changed[key].tasks.update(more)
        for each in changed.values():
            self._settle(each, now_s)
        return [each.run for each in changed.values()]

    def _start(self, key: str, tasks: dict[str, str], now_s: float) -> _Training:
        job, run = self._jobs[key], ElasticRun(self._jobs[key], began_s=now_s)
        entry = self._waiting.pop(key)
        training = _Training(entry.job, run, tasks, job.duration_s * job.instances, now_s)
        self._running[key] = training
        return training

    def _scaled(self, key: str, now_s: float) -> _Training:
        training = self._running[key]
        training.work -= (now_s - training.since_s) * training.run.workers
        training.since_s = training.scaled_s = now_s
        return training

    @staticmethod
    def _settle(training: _Training, now_s: float) -> None:
        """What the run is from now on."""
        workers, run = len(training.tasks), training.run
        run.workers = workers
        run.node = "+".join(sorted(set(training.tasks.values())))
        run.devices, run.cpu_milli = workers * run.job.devices, workers * run.job.cpu_milli
        run.ends_s = now_s + max(training.work, 0.0) / workers if workers else None


def _scheduler(cluster: SimulatedCluster, rng: random.Random, options: Mapping[str, str]) -> TraceTrainingScheduler:
    given = {"starve_limit_s": Options().starve_limit_s, "cooldown_s": Options().cooldown_s}
    for name, text in options.items():
        try:
            given[name] = float(text)
        except ValueError:
            given[name] = -1.0
        if not 0 <= given[name] < float("inf"):
            raise ValueError(f"{name}: {text!r}: must be a number of seconds of at least 0")
    return TraceTrainingScheduler(
        cluster, Options(starve_limit_s=given["starve_limit_s"], cooldown_s=given["cooldown_s"])
    )


TRACE_POLICIES = (
    TracePolicy(
        "kod2",
        "jobs of several instances have as many workers as there is room for",
        elastic=_scheduler,
        options=_OPTIONS,
        left_out=(
            "parameter servers and how training slows between nodes (work goes on as fast as workers are many), what a "
            "worker's start and end take, devices that move"
        ),
    ),
)

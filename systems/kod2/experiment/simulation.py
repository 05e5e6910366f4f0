"""TFJobs on a small cluster, second by second, without an API: what the operator's policy decides is done at once.

Two ways to schedule: the elastic one asks ``mews.systems.kod2.policy`` at every event, as the operator does; the
baseline leaves all pods of a job to the default scheduler (``default_scheduler.py``), as Kubeflow's operator does, and
a job trains once its servers and all of its workers run. Training itself is the model of ``mews.systems.kod2.training``
in both. Pure but for its injected chance.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from mews.systems.kod2.experiment.baseline import BaselinePods, StartedTask
from mews.systems.kod2.experiment.default_scheduler import Scoring
from mews.systems.kod2.model import (
    CPU,
    ClusterState,
    ElasticJob,
    Mode,
    Options,
    Placed,
    Queues,
    Running,
    ScaledIn,
    ScaledOut,
    Starved,
    TaskRequest,
    WaitingJob,
    is_server,
    is_worker,
)
from mews.systems.kod2.policy import decide, next_look_s
from mews.systems.kod2.room import FreeRoom
from mews.systems.kod2.training import TrainingShape, busy_share, speed

_EPSILON_S = 1e-6
_TICK_S = 5.0


class TrainJob(Struct, frozen=True):
    """A job as submitted: what the policy sees of it, and how it trains."""

    job: ElasticJob
    shape: TrainingShape


class Costs(Struct, frozen=True):
    """What the cluster takes for elastic jobs: ``start_s`` from a pod's placement to its process, ``stop_s`` from the
    last step until the operator knows, ``leave_s`` until a removed worker's room is free (the baseline's pods come and
    go one by one: ``baseline.PodTimes``). ``deadline_s`` ends a job as failed so long after its submission; infinity:
    never."""

    start_s: float = 1.4
    stop_s: float = 1.3
    leave_s: float = 1.2
    deadline_s: float = math.inf


class JobLife(Struct):
    """What became of a job; times in seconds from the start of the run."""

    submitted_s: float
    started_s: float | None = None
    ended_s: float | None = None
    dead: bool = False

    @property
    def jct_s(self) -> float | None:
        """Entry to the waiting queue until entry to the finished queue."""
        return None if self.ended_s is None else self.ended_s - self.submitted_s


class SimulationOutcome(Struct):
    """A run: each job's life, and the busy cores over time as (from, cores) steps, the last one being the end."""

    lives: dict[str, JobLife]
    busy: list[tuple[float, float]]
    cores: float
    added: int = 0
    removed: int = 0

    @property
    def end_s(self) -> float:
        """When the last job ended."""
        return max((life.ended_s for life in self.lives.values() if life.ended_s is not None), default=0.0)

    def utilisation(self, until_s: float | None = None) -> float:
        """Return the mean share of busy cores from the start until then (until the last job ended)."""
        end_s = self.end_s if until_s is None else until_s
        total = 0.0
        for (at, cores), (to, _) in zip(self.busy, [*self.busy[1:], (end_s, 0.0)], strict=True):
            total += cores * max(0.0, min(to, end_s) - min(at, end_s))
        return total / (self.cores * end_s) if end_s else 0.0


class _Run(Struct):
    """A job that holds room. ``up``: task -> when its process is there; tasks that no node has taken yet are absent."""

    what: TrainJob
    tasks: dict[str, str]
    up: dict[str, float] = field(default_factory=dict)
    scaled_s: float | None = None
    done: float = 0.0
    rate: float = 0.0
    begun: bool = False
    ends_s: float | None = None


class TrainingSimulation:
    """One run. ``scoring`` given: the baseline, whose scheduler chooses nodes so; else elastic with ``options``."""

    def __init__(
        self,
        cluster: ClusterState,
        jobs: Sequence[TrainJob],
        *,
        options: Options | None = None,
        scoring: Scoring | None = None,
        costs: Costs | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._cluster = cluster
        self._options = options or Options()
        self._costs = costs or Costs()
        rng = rng or random.Random(0)
        self._baseline = None if scoring is None else BaselinePods(cluster, scoring, rng)
        self._coming = sorted(jobs, key=lambda entry: (entry.job.arrived_s, entry.job.key))
        self._waiting: dict[str, tuple[TrainJob, bool]] = {}
        self._running: dict[str, _Run] = {}
        self._leaving: list[tuple[float, str, TaskRequest]] = []
        self._now_s = 0.0
        cores = sum(node.allocatable[CPU] for node in cluster.nodes) / 1000
        lives = {entry.job.key: JobLife(entry.job.arrived_s) for entry in jobs}
        self.outcome = SimulationOutcome(lives, [(0.0, 0.0)], cores)

    def run(self) -> SimulationOutcome:
        """To the end: all jobs have ended, or nothing can happen any more."""
        while (next_s := self._next_s()) is not None:
            self._pass_until(max(next_s, self._now_s))
            self._arrive()
            self._finish()
            self._expire()
            self._decide()
            self._speeds()
        return self.outcome

    # Time

    def _next_s(self) -> float | None:
        times = [entry.job.arrived_s for entry in self._coming[:1]]
        times += [at for at, _, _ in self._leaving]
        for run in self._running.values():
            if run.ends_s is not None:
                times.append(run.ends_s)
            elif run.rate > 0:
                times.append(self._now_s + max(0.0, run.what.shape.steps - run.done) / run.rate)
            times += [at for at in run.up.values() if at > self._now_s]
        if not math.isinf(self._costs.deadline_s):
            times += [self._deadline(key) for key in (*self._waiting, *self._running)]
        if self._baseline is None and (self._waiting or self._running):
            times += self._looks()
        if self._baseline is not None:
            times += self._turns(self._baseline, alone=not times)
        return min((at for at in times if at >= self._now_s - _EPSILON_S), default=None)

    def _turns(self, baseline: BaselinePods, *, alone: bool) -> list[float]:
        """Return when the baseline's pods come or go; not the scheduler's further tries where nothing else can
        happen."""
        turn_s = baseline.leaves_s() if alone else baseline.next_s()
        return [] if turn_s is None else [turn_s]

    def _looks(self) -> list[float]:
        look_s = next_look_s(self._queues(), self._now_s, self._options)
        found = [] if look_s is None else [look_s]
        if self._options.mode is Mode.LITERAL and self._waiting and self._running:
            found.append((math.floor(self._now_s / _TICK_S) + 1) * _TICK_S)
        return found

    def _deadline(self, key: str) -> float:
        return self.outcome.lives[key].submitted_s + self._costs.deadline_s

    def _pass_until(self, then_s: float) -> None:
        for run in self._running.values():
            run.done += run.rate * (then_s - self._now_s)
        self._now_s = then_s
        if self._baseline is not None:
            self._baseline.now_s = then_s
        self._leaving = [entry for entry in self._leaving if entry[0] > then_s + _EPSILON_S]

    # What happens

    def _arrive(self) -> None:
        while self._coming and self._coming[0].job.arrived_s <= self._now_s + _EPSILON_S:
            entry = self._coming.pop(0)
            if self._baseline is None:
                self._waiting[entry.job.key] = (entry, False)
            else:
                self._running[entry.job.key] = _Run(entry, {})
                self._bind(self._baseline.create(entry.job))

    def _finish(self) -> None:
        for key, run in list(self._running.items()):
            if run.ends_s is not None and run.ends_s <= self._now_s + _EPSILON_S:
                self._end(key, dead=False)
            elif run.ends_s is None and run.rate > 0 and run.done >= run.what.shape.steps - 1e-6:
                run.ends_s, run.rate = self._stopped_s(run), 0.0

    def _stopped_s(self, run: _Run) -> float:
        """The last step is done: when the operator will know. The first worker's end is that of a job with bounds that
        no one scales."""
        if self._baseline is None:
            return self._now_s + self._costs.stop_s
        return self._baseline.trained(run.what.job.key, filter(is_worker, run.tasks))["worker-0"]

    def _expire(self) -> None:
        for key in [*self._waiting, *self._running]:
            if self._deadline(key) <= self._now_s + _EPSILON_S:
                self._end(key, dead=True)

    def _end(self, key: str, *, dead: bool) -> None:
        self._waiting.pop(key, None)
        self._running.pop(key, None)
        if self._baseline is not None:
            self._baseline.delete(key)
        life = self.outcome.lives[key]
        life.ended_s, life.dead = self._now_s, dead

    def _decide(self) -> None:
        if self._baseline is not None:
            self._bind(self._baseline.advance())
        else:
            self._ask_policy()
            self._admit()

    # Baseline: the default scheduler

    def _bind(self, started: Iterable[StartedTask]) -> None:
        for each in started:
            run = self._running[each.job]
            run.tasks[each.task] = each.node
            run.up[each.task] = each.up_s

    # Elastic: the operator's policy

    def _queues(self) -> Queues:
        running = tuple(
            Running(run.what.job, run.tasks, run.scaled_s, finishing=run.ends_s is not None)
            for run in self._running.values()
        )
        waiting = tuple(WaitingJob(entry.job, starving) for entry, starving in self._waiting.values())
        return Queues(self._cluster, waiting, running)

    def _ask_policy(self) -> None:
        for decision in decide(self._queues(), self._now_s, self._options).decisions:
            match decision:
                case Starved(key):
                    self._waiting[key] = (self._waiting[key][0], True)
                case Placed(key, tasks):
                    entry, _ = self._waiting.pop(key)
                    self._running[key] = _Run(entry, dict(tasks))
                    self.outcome.lives[key].started_s = self._now_s
                case ScaledIn(key, gone):
                    self._shrink(self._running[key], gone)
                case ScaledOut(key, more):
                    run = self._running[key]
                    run.tasks.update(more)
                    run.scaled_s = self._now_s
                    self.outcome.added += len(more)

    def _shrink(self, run: _Run, gone: Sequence[str]) -> None:
        for task in gone:
            node = run.tasks.pop(task)
            if run.up.pop(task, None) is not None:
                self._leaving.append((self._now_s + self._costs.leave_s, node, run.what.job.worker))
        run.scaled_s = self._now_s
        self.outcome.removed += len(gone)

    def _admit(self) -> None:
        """Tasks whose node has the room now start; the others (refused, or behind one that leaves) wait for it."""
        room = FreeRoom(self._cluster)
        for _, node, ask in self._leaving:
            room.take(node, ask)
        for run in self._running.values():
            for task in run.up:
                room.take(run.tasks[task], _ask(run.what.job, task))
        for run in self._running.values():
            for task, node in run.tasks.items():
                ask = _ask(run.what.job, task)
                if task not in run.up and run.ends_s is None and room.fits(room.index[node], ask):
                    room.take(node, ask)
                    run.up[task] = self._now_s + self._costs.start_s

    # Training

    def _speeds(self) -> None:
        busy = 0.0
        for key, run in self._running.items():
            job, shape = run.what.job, run.what.shape
            up = [task for task, at in run.up.items() if at <= self._now_s + _EPSILON_S]
            servers = [run.tasks[task] for task in up if is_server(task)]
            workers = [run.tasks[task] for task in up if is_worker(task)]
            quorum = 1 if self._baseline is None else job.wanted
            run.begun = run.begun or len(workers) >= quorum
            ready = run.begun and run.ends_s is None and len(servers) == sum(is_server(task) for task, _ in job.fixed)
            near = sum(node in servers for node in workers)
            counts = {"near": near, "far": len(workers) - near, "servers": len(servers)}
            run.rate = speed(shape, **counts) if ready else 0.0
            if run.rate > 0:
                life = self.outcome.lives[key]
                life.started_s = self._now_s if life.started_s is None else life.started_s
                load = run.rate / (len(servers) * shape.server_rate)
                busy += len(workers) * job.worker.amounts[CPU] / 1000 * busy_share(shape, **counts)
                busy += sum(ask.amounts[CPU] / 1000 for task, ask in job.fixed if is_server(task)) * load
        if busy != self.outcome.busy[-1][1]:
            self.outcome.busy.append((self._now_s, busy))


def _ask(job: ElasticJob, task: str) -> TaskRequest:
    return job.worker if is_worker(task) else dict(job.fixed)[task]

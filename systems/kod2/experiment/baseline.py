"""The pods of the baseline's jobs: created all at once, placed by the default scheduler one by one, and gone from their
nodes one by one, as each node's kubelet gets to it."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable

from msgspec import Struct

from mews.systems.kod2.experiment.default_scheduler import Scoring, SimulatedScheduler
from mews.systems.kod2.model import ClusterState, ElasticJob, TaskRequest, worker_task

PodSpan = tuple[float, float, float]
"""Seconds: never below the first, most often the second, never above the third."""


class PodTimes(Struct, frozen=True):
    """What a kubelet's steps take: those of the whole stack (``mews.kube.emulated.kubelet.timings``), which a system
    does not import; a test holds them equal. ``starting``: from a pod's binding to its process, one after the other;
    ``finished``: from the kubelet's look at a process that has ended (once in ``relist_s``, each node at a moment of
    its own) to the pod's last phase; ``deleted``: from a pod's deletion to that."""

    starting: tuple[PodSpan, ...] = (
        (0.010, 0.015, 0.035),
        (0.45, 0.50, 1.30),
        (0.012, 0.017, 0.035),
        (0.09, 0.10, 0.38),
    )
    relist_s: float = 1.0
    finished: PodSpan = (1.13, 1.19, 1.37)
    deleted: tuple[PodSpan, ...] = ((0.020, 0.030, 1.0), (0.19, 0.20, 0.26))


class StartedTask(Struct, frozen=True):
    """A task of a job that has a node now, and when its process will run."""

    job: str
    task: str
    node: str
    up_s: float


class BaselinePods:
    """All pods of a run. ``now_s``: the simulation sets the time before it asks for anything."""

    def __init__(
        self, cluster: ClusterState, scoring: Scoring, rng: random.Random, times: PodTimes | None = None
    ) -> None:
        self._times = times or PodTimes()
        self.now_s = 0.0
        self._rng = rng
        self._scheduler = SimulatedScheduler(cluster.nodes, scoring, rng, lambda: self.now_s)
        self._phases = {node.name: rng.random() * self._times.relist_s for node in cluster.nodes}
        self._jobs: dict[str, dict[str, str | None]] = {}
        self._pods: dict[str, tuple[str, str]] = {}
        self._ends: list[tuple[float, str]] = []
        self._ending: set[str] = set()

    def leaves_s(self) -> float | None:
        """Return when the next pod leaves its node."""
        return self._ends[0][0] if self._ends else None

    def next_s(self) -> float | None:
        """Return when one leaves, or the scheduler tries again what waits."""
        return min((at for at in (self.leaves_s(), self._scheduler.next_s()) if at is not None), default=None)

    def advance(self) -> list[StartedTask]:
        """Return what is due by now; and where what waits is placed."""
        while self._ends and self._ends[0][0] <= self.now_s:
            self._scheduler.remove(heapq.heappop(self._ends)[1])
        self._scheduler.advance()
        return self._bound()

    def create(self, job: ElasticJob) -> list[StartedTask]:
        """Return all of a job's pods, servers first; what of it is placed at once."""
        asks: dict[str, TaskRequest] = {**dict(job.fixed), **{worker_task(i): job.worker for i in range(job.wanted)}}
        self._jobs[job.key] = dict.fromkeys(asks)
        started = []
        for task, ask in asks.items():
            pod = f"{job.key}-{task}"
            self._pods[pod] = (job.key, task)
            self._scheduler.add(pod, ask)
            started += self._bound()
        return started

    def _bound(self) -> list[StartedTask]:
        started = []
        for pod in self._scheduler.decide():
            job, task = self._pods[pod.name]
            self._jobs[job][task] = pod.node
            up_s = self.now_s + self._spent(self._times.starting)
            started.append(StartedTask(job, task, pod.node, up_s))
        return started

    def trained(self, job: str, tasks: Iterable[str]) -> dict[str, float]:
        """The processes of these tasks end now: when each of the pods has ended."""
        found = {}
        for task in sorted(tasks):
            node = self._jobs[job][task]
            assert node is not None, f"{job} {task} trains without a node"
            found[task] = self._look_s(node) + self._spent((self._times.finished,))
            self._end(f"{job}-{task}", found[task])
        return found

    def delete(self, job: str) -> None:
        """The job is over: what waits of it is gone, what runs is taken down."""
        for task, node in self._jobs.pop(job).items():
            pod = f"{job}-{task}"
            if node is None:
                self._scheduler.remove(pod)
            elif pod not in self._ending:
                self._end(pod, self.now_s + self._spent(self._times.deleted))

    def _end(self, pod: str, at_s: float) -> None:
        self._ending.add(pod)
        heapq.heappush(self._ends, (at_s, pod))

    def _look_s(self, node: str) -> float:
        """Return when the kubelet looks at its containers next."""
        phase_s, period_s = self._phases[node], self._times.relist_s
        return phase_s + (int((self.now_s - phase_s) // period_s) + 1) * period_s

    def _spent(self, spans: Iterable[PodSpan]) -> float:
        return sum(self._rng.triangular(low, high, usual) for low, usual, high in spans)

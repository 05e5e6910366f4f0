"""The paper's simulator (section VI-E): a trace on homogeneous nodes, first come first served, tried again at once.

Decisions are those of ``policy``: equation 1 where GPUs are pooled, Algorithm 1 for those that are moved. Pure.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from mews.systems.kubecomp import policy
from mews.systems.kubecomp.experiment.workloads import WorkloadJob
from mews.systems.kubecomp.policy import Gpu, Policy

NODE_CPUS = 192
MOVE_S = 20.9
"""Seconds to detach a GPU and attach it elsewhere, one after the other (72 measured)."""


class FigureNode(Struct):
    """A node: its pool, and the CPUs and GPUs that no job holds."""

    name: str
    pool: str
    cpus: int
    gpus: list[str]


class FigureJob(Struct, frozen=True):
    """What became of a job; None: it never ran. ``runs_s``: when it has its node and has started. ``moved`` GPUs were
    moved for it."""

    job: WorkloadJob
    start_s: float | None = None
    end_s: float | None = None
    node: str = ""
    moved: int = 0
    runs_s: float = 0.0

    @property
    def wait_s(self) -> float | None:
        """From its arrival to its start."""
        return None if self.start_s is None else self.start_s - self.job.arrival_s

    @property
    def jct_s(self) -> float | None:
        """From its arrival to its end."""
        return None if self.end_s is None else self.end_s - self.job.arrival_s


def nodes_of(split: Sequence[int], *, pool: str = "0") -> list[FigureNode]:
    """Nodes of one pool with so many GPUs each."""
    return [
        FigureNode(f"node-{pool}-{number}", pool, NODE_CPUS, [f"{pool}-{number}-{gpu}" for gpu in range(gpus)])
        for number, gpus in enumerate(split, start=1)
    ]


class Simulation(Struct):
    """One run. ``pooled``: GPUs may be moved within their pool, ``move_s`` seconds each; else each stays where it is,
    and the least loaded node that fits is taken. ``start_s``: what starting a job costs where so many GPUs, its own
    included, are idle. ``gate_s``: a job is submitted so long after the one before it runs, at the earliest; None: as
    it arrives. ``reconfigure_s``: what a reconfiguration takes beside its moves. Ties from ``rng``."""

    nodes: Sequence[FigureNode]
    jobs: Sequence[WorkloadJob]
    pooled: bool
    rng: random.Random
    policy: Policy = Policy.BOTH
    move_s: float = MOVE_S
    start_s: Callable[[int], float] = lambda idle: 0.0
    gate_s: float | None = None
    reconfigure_s: float = 0.0
    _ends: list[tuple[float, int, FigureNode, list[str], int]] = field(default_factory=list)

    def run(self) -> list[FigureJob]:
        """Return every job in the order of arrival. One that can never run leaves all behind it unrun as well."""
        found: list[FigureJob] = []
        now_s = 0.0
        for number, job in enumerate(self.jobs):
            now_s = max(now_s, job.arrival_s)
            self._release(now_s)
            while (node := self._choose(job)) is None and self._ends:
                now_s = max(now_s, self._ends[0][0])
                self._release(now_s)
            if node is None:
                return found + [FigureJob(left) for left in self.jobs[number:]]
            moved = self._gather(node, job)
            if moved:
                now_s += self.reconfigure_s + self.move_s * moved
            found.append(begun := self._start(number, job, node, now_s, moved))
            if self.gate_s is not None:
                now_s = begun.runs_s + self.gate_s
        return found

    def _release(self, now_s: float) -> None:
        while self._ends and self._ends[0][0] <= now_s:
            _, _, node, gpus, cpus = heapq.heappop(self._ends)
            node.cpus += cpus
            node.gpus += gpus

    def _choose(self, job: WorkloadJob) -> FigureNode | None:
        fitting = [node for node in self.nodes if node.cpus >= job.cpus]
        if not self.pooled:
            return self._least_loaded(node for node in fitting if len(node.gpus) >= job.gpus)
        free: dict[str, int] = {}
        for node in self.nodes:
            free[node.pool] = free.get(node.pool, 0) + len(node.gpus)
        fitting = [node for node in fitting if policy.pool_fits(job.gpus, free[node.pool])]
        scores = policy.normalise({n.name: policy.score(job.gpus, len(n.gpus), self.policy) for n in fitting})
        best = max(scores.values(), default=0)
        there = [node for node in fitting if scores[node.name] == best]
        if policy.ties_by_name(self.policy):
            return self._least_loaded(there)
        return self.rng.choice(there) if there else None

    def _least_loaded(self, nodes: Iterable[FigureNode]) -> FigureNode | None:
        """Return it as the default scheduler spreads them; ties by chance."""
        there = list(nodes)
        if not there:
            return None
        most = max((node.cpus, len(node.gpus)) for node in there)
        return self.rng.choice([node for node in there if (node.cpus, len(node.gpus)) == most])

    def _gather(self, node: FigureNode, job: WorkloadJob) -> int:
        """Move what the node lacks for the job; how many GPUs."""
        shortfall = policy.demand(job.gpus, len(node.gpus))
        if not shortfall:
            return 0
        others: Mapping[str, FigureNode] = {o.name: o for o in self.nodes if o.pool == node.pool and o is not node}
        found = tuple(sorted(Gpu(gpu, other.name, other.name) for other in others.values() for gpu in other.gpus))
        for gpu in policy.plan(found, shortfall):
            others[gpu.node].gpus.remove(gpu.gpuid)
            node.gpus.append(gpu.gpuid)
        return shortfall

    def _start(self, number: int, job: WorkloadJob, node: FigureNode, now_s: float, moved: int) -> FigureJob:
        started_s = now_s + self.start_s(len(node.gpus))
        held, node.gpus = node.gpus[: job.gpus], node.gpus[job.gpus :]
        node.cpus -= job.cpus
        end_s = started_s + job.duration_s
        heapq.heappush(self._ends, (end_s, number, node, held, job.cpus))
        return FigureJob(job, now_s, end_s, node.name, moved, started_s)

"""What is left on the nodes and in the pools while a decision is tried out. Pure; changed in place, cheap to copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mews.systems.kod2.model import CPU, MEMORY, ClusterState, ElasticJob, NodeRoom, Running, TaskRequest, is_worker

PLENTY = 1 << 30
_STEPS = 200_000


class Capacities:
    """How many more tasks of one kind each node holds (pools aside), and all together; kept by a room."""

    __slots__ = ("by_node", "seen", "total")

    def __init__(self, by_node: list[int], seen: int) -> None:
        self.by_node = by_node
        self.total = sum(by_node)
        self.seen = seen


class SearchBudget:
    """How many steps of search (``mews.systems.kod2.search``) one decision may still take for all its questions."""

    __slots__ = ("left",)

    def __init__(self, left: int = _STEPS) -> None:
        self.left = left


class FreeRoom:
    """Free amounts per node, in the cluster's order of nodes, and free devices per pool.

    What was asked about a kind of task is remembered, and brought up to date only for nodes that changed since.
    """

    __slots__ = ("_capacities", "_changes", "_idle", "budget", "free", "index", "nodes", "pools")

    def __init__(self, cluster: ClusterState, running: Iterable[Running] = ()) -> None:
        self.nodes: tuple[NodeRoom, ...] = cluster.nodes
        self.index = {node.name: number for number, node in enumerate(cluster.nodes)}
        self.free = [list(node.free) for node in cluster.nodes]
        self.pools = dict(cluster.pools)
        self.budget = SearchBudget()
        self._changes: list[int] = []
        self._capacities: dict[TaskRequest, Capacities] = {}
        self._idle: list[float | None] = [None] * len(cluster.nodes)
        for job in running:
            self.take_all(job.job, job.tasks)
            self.take_all(job.job, job.ended)

    def copy(self) -> FreeRoom:
        """Return an independent copy, to try things out in."""
        other = FreeRoom.__new__(FreeRoom)
        other.nodes, other.index = self.nodes, self.index
        other.free = [list(free) for free in self.free]
        other.pools = dict(self.pools)
        other.budget = self.budget
        other._changes, other._capacities, other._idle = [], {}, list(self._idle)
        return other

    def take(self, node: str, ask: TaskRequest, count: int = 1) -> None:
        """A task goes to a node; nodes that are gone are passed over."""
        number = self.index.get(node)
        if number is None:
            return
        free = self.free[number]
        self._changes.append(number)
        self._idle[number] = None
        for dimension, amount in enumerate(ask.amounts):
            free[dimension] -= amount * count
        pool = self.nodes[number].pool
        if ask.pooled and pool is not None:
            self.pools[pool] = self.pools.get(pool, 0) - ask.pooled * count

    def give(self, node: str, ask: TaskRequest) -> None:
        """A task leaves a node."""
        self.take(node, ask, -1)

    def take_all(self, job: ElasticJob, tasks: Mapping[str, str]) -> None:
        """All tasks of a job go to their nodes."""
        fixed = dict(job.fixed)
        for task, node in tasks.items():
            ask = job.worker if is_worker(task) else fixed.get(task)
            if ask is not None:
                self.take(node, ask)

    def capacities(self, ask: TaskRequest) -> Capacities:
        """``capacity`` of every node now."""
        known = self._capacities.get(ask)
        if known is None:
            made = Capacities([self.capacity(n, ask) for n in range(len(self.nodes))], len(self._changes))
            self._capacities[ask] = made
            return made
        for number in set(self._changes[known.seen :]):
            now = self.capacity(number, ask)
            known.total += now - known.by_node[number]
            known.by_node[number] = now
        known.seen = len(self._changes)
        return known

    def capacity(self, number: int, ask: TaskRequest, less: TaskRequest | None = None) -> int:
        """Return how many more such tasks a node holds, once it holds one of ``less``; its pool, which it shares,
        aside."""
        node = self.nodes[number]
        if ask.nodes is not None and node.name not in ask.nodes:
            return 0
        if ask.pooled and node.pool is None:
            return 0
        least, free = PLENTY, self.free[number]
        if less is not None:
            free = [have - want for have, want in zip(free, less.amounts, strict=True)]
        for have, want in zip(free, ask.amounts, strict=True):
            if want:
                count = have // want
                if count <= 0:
                    return 0
                least = min(least, count)
        return least

    def fits(self, number: int, ask: TaskRequest) -> bool:
        """Return whether one more such task fits a node, devices of its pool included."""
        return self.capacity(number, ask) > 0 and self.devices(number, ask) > 0

    def devices(self, number: int, ask: TaskRequest) -> int:
        """Return how many such tasks the devices of a node's pool are enough for."""
        if not ask.pooled:
            return PLENTY
        return max(0, self.pools.get(self.nodes[number].pool or "", 0) // ask.pooled)

    def idle(self, number: int) -> float:
        """Return the smaller of a node's idle shares of CPU and memory."""
        known = self._idle[number]
        if known is None:
            allocatable, free = self.nodes[number].allocatable, self.free[number]
            shares = [free[d] / allocatable[d] for d in (CPU, MEMORY) if allocatable[d]]
            known = self._idle[number] = min(shares, default=0.0)
        return known

    def by_idle(self, numbers: Iterable[int] | None = None) -> list[int]:
        """Nodes (all of them) by descending idle share, then by name."""
        chosen = range(len(self.nodes)) if numbers is None else numbers
        return sorted(chosen, key=lambda number: (-self.idle(number), self.nodes[number].name))

"""Where the tasks of a job go: on as few nodes as can be, parameter servers with workers (contract kod2.md section 2).

A placement is found whenever there is one. For a job with one task besides its identical workers (the paper's jobs have
one parameter server) each node is tried for it. For several a search decides (``mews.systems.kod2.search``), within a
budget: where that ends before the search does the answer is "not found". What makes good places for several is greedy:
each node is tried for the first of them and the rest follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from mews.systems.kod2.model import ElasticJob, worker_task
from mews.systems.kod2.room import PLENTY, FreeRoom
from mews.systems.kod2.search import assign

Tasks = dict[str, str]


class Layout(Struct):
    """One way to place the fixed tasks: their nodes, and how many workers fit then (at most those asked about)."""

    fixed: Tasks
    first: int
    workers: int
    together: bool


class Workers:
    """How many of a job's workers fit, and where its fixed tasks go best for that. Asks the room anew each time."""

    def __init__(self, room: FreeRoom, job: ElasticJob) -> None:
        self.room = room
        self.job = job
        self.proven = True
        """Whether the last layout is the best there is; where there was none, that there is none."""

    def within(
        self, changed: Mapping[int, int] = MappingProxyType({}), devices: Mapping[str, int] | None = None
    ) -> int:
        """Return how many fit in all, were the capacities of some nodes others, and with what the pools have left."""
        capacities = self.room.capacities(self.job.worker)
        if not self.job.worker.pooled:
            return capacities.total + sum(now - capacities.by_node[number] for number, now in changed.items())
        sums: dict[str, int] = {}
        for number, count in enumerate(capacities.by_node):
            pool = self.room.nodes[number].pool
            count = changed.get(number, count)
            if count and pool is not None:
                sums[pool] = min(PLENTY, sums.get(pool, 0) + count)
        left, asks = self.room.pools if devices is None else devices, self.job.worker.pooled
        return sum(min(count, max(0, left.get(pool, 0) // asks)) for pool, count in sums.items())

    # Complex: one search, and the shortcuts that end it early.
    def layout(self, at_least: int, wanted: int, order: Sequence[int] | None = None) -> Layout | None:  # noqa: C901
        """Return the best way to place the fixed tasks so that at least so many workers fit: most workers (up to
        ``wanted``), then a worker beside the first fixed task, then the earliest node of ``order``.

        Without an order the first way that is good enough is taken: to know whether there is one.
        """
        self.proven = True
        if self.within() < at_least:
            return None
        if not self.job.fixed:
            first = order[0] if order else 0
            return Layout({}, first, min(wanted, self.within()), True)
        homes = self.room.capacities(self.job.fixed[0][1])
        if not homes.total:
            return None
        if order is None and len(self.job.fixed) > 1:
            return self._searched(at_least, wanted)
        best: Layout | None = None
        for number in range(len(self.room.nodes)) if order is None else order:
            if not homes.by_node[number]:
                continue
            found = self._from(number, wanted, order)
            if found is None or found.workers < at_least:
                continue
            if order is None or (found.workers >= wanted and found.together):
                return found
            if best is None or (found.workers, found.together) > (best.workers, best.together):
                best = found
        if len(self.job.fixed) > 1 and (best is None or best.workers < wanted):
            return self._searched(at_least if best is None else best.workers + 1, wanted) or best
        return best

    def _searched(self, at_least: int, wanted: int) -> Layout | None:
        """Return what the exact search finds."""
        found = assign(self.room, self.job, at_least, wanted)
        self.proven = found.proven
        if found.tasks is None:
            return None
        first = self.room.index[found.tasks[self.job.fixed[0][0]]]
        trial = self.room.copy()
        trial.take_all(self.job, found.tasks)
        beside = trial.capacity(first, self.job.worker)
        tasks = {task: found.tasks[task] for task, _ in self.job.fixed}
        return Layout(tasks, first, found.workers, beside > 0 and found.workers > 0)

    def _from(self, first: int, wanted: int, order: Sequence[int] | None) -> Layout | None:
        if len(self.job.fixed) == 1 and not self.job.fixed[0][1].pooled:
            task, ask = self.job.fixed[0]
            beside = self.room.capacity(first, self.job.worker, less=ask)
            workers = min(wanted, self.within({first: beside}))
            return Layout({task: self.room.nodes[first].name}, first, workers, beside > 0 and workers > 0)
        return self._greedily(first, wanted, order)

    def _greedily(self, first: int, wanted: int, order: Sequence[int] | None) -> Layout | None:
        """Return the first fixed task on that node, each other one there too or on the next that takes it."""
        room, job = self.room, self.job
        trial = room.copy()
        placed: Tasks = {}
        touched: dict[int, int] = {}
        for task, ask in job.fixed:
            rest = range(len(room.nodes)) if order is None else order
            number = next((number for number in (first, *rest) if trial.fits(number, ask)), None)
            if number is None or (not placed and number != first):
                return None
            placed[task] = room.nodes[number].name
            trial.take(placed[task], ask)
            touched[number] = 0
        for number in touched:
            touched[number] = trial.capacity(number, job.worker)
        workers = min(wanted, self.within(touched, trial.pools))
        return Layout(placed, first, workers, touched[first] > 0 and workers > 0)


class Feasibility(StrEnum):
    """Whether a job has a placement."""

    YES = "yes"
    NO = "no"
    NOT_FOUND = "not found"
    """The search was not done when its budget was spent."""


def feasibility(room: FreeRoom, job: ElasticJob) -> Feasibility:
    """Return whether the job's fixed tasks and its minimum of workers have an actual placement."""
    workers = Workers(room, job)
    if workers.layout(job.minimum, job.minimum) is not None:
        return Feasibility.YES
    return Feasibility.NO if workers.proven else Feasibility.NOT_FOUND


def could_place(room: FreeRoom, job: ElasticJob) -> bool:
    """Return whether a placement of the job's fixed tasks and its minimum of workers is known."""
    return feasibility(room, job) is Feasibility.YES


def place(room: FreeRoom, job: ElasticJob, *, affinity: bool = True) -> Tasks | None:
    """Task -> node for the fixed tasks and as many of the wanted workers as fit, at least the minimum; None when there
    is no such placement. The room is not changed."""
    workers = Workers(room, job)
    if workers.layout(job.minimum, job.minimum) is None:
        return None
    if not affinity:
        return _spread(room, job)
    alone = _on_one(room, job, job.wanted)
    if alone is not None:
        return alone
    takes = room.capacities(job.worker).by_node
    homes = room.capacities(job.fixed[0][1]).by_node if job.fixed else takes
    order = room.by_idle([number for number in range(len(room.nodes)) if takes[number] or homes[number]])
    if len(job.fixed) > 1:
        order = room.by_idle()
    layout = workers.layout(job.minimum, job.wanted, order)
    if layout is None:
        return None
    return _on_one(room, job, layout.workers) or _on_several(room, job, layout, order)


def _on_one(room: FreeRoom, job: ElasticJob, count: int) -> Tasks | None:
    """Return the whole job on the tightest single node that holds it."""
    best: tuple[float, str] | None = None
    for number, capacity in enumerate(room.capacities(job.worker).by_node):
        if capacity < count:
            continue
        tightness = (room.idle(number), room.nodes[number].name)
        if (best is None or tightness < best) and _holds(room, number, job, count):
            best = tightness
    if best is None:
        return None
    tasks = [task for task, _ in job.fixed] + [worker_task(index) for index in range(count)]
    return dict.fromkeys(tasks, best[1])


def _holds(room: FreeRoom, number: int, job: ElasticJob, count: int) -> bool:
    allowed = all(ask.nodes is None or room.nodes[number].name in ask.nodes for _, ask in job.fixed)
    fixed = [ask for _, ask in job.fixed]
    pooled = sum(ask.pooled for ask in fixed) + count * job.worker.pooled
    pool = room.nodes[number].pool
    if not allowed or (pooled and (pool is None or room.pools.get(pool, 0) < pooled)):
        return False
    for dimension, have in enumerate(room.free[number]):
        asked = sum(ask.amounts[dimension] for ask in fixed) + count * job.worker.amounts[dimension]
        if asked and asked > have:
            return False
    return True


def _on_several(room: FreeRoom, job: ElasticJob, layout: Layout, order: Sequence[int]) -> Tasks:
    tasks, index = dict(layout.fixed), 0
    trial = room.copy() if len(job.fixed) > 1 else room
    pools = dict(room.pools)
    fixed = dict(job.fixed)
    for task, node in layout.fixed.items():
        pool = room.nodes[room.index[node]].pool
        if fixed[task].pooled and pool is not None:
            pools[pool] -= fixed[task].pooled
        if trial is not room:
            trial.take(node, fixed[task])
    for number in (layout.first, *(number for number in order if number != layout.first)):
        less = job.fixed[0][1] if trial is room and job.fixed and number == layout.first else None
        count = min(layout.workers - index, trial.capacity(number, job.worker, less=less))
        pool = room.nodes[number].pool
        if job.worker.pooled and pool is not None:
            count = min(count, pools.get(pool, 0) // job.worker.pooled)
            pools[pool] = pools.get(pool, 0) - max(0, count) * job.worker.pooled
        for _ in range(count):
            tasks[worker_task(index)] = room.nodes[number].name
            index += 1
        if index >= layout.workers:
            break
    return tasks


def _spread(room: FreeRoom, job: ElasticJob) -> Tasks | None:
    """Return each task on the node that is most idle by then: placement without affinity, for comparison. Where that
    wastes room that the minimum needs, the ordinary placement is taken."""
    trial = room.copy()
    tasks: Tasks = {}
    workers = [(worker_task(index), job.worker) for index in range(job.wanted)]
    for task, ask in (*job.fixed, *workers):
        number = next((number for number in trial.by_idle() if trial.fits(number, ask)), None)
        if number is None:
            break
        tasks[task] = trial.nodes[number].name
        trial.take(tasks[task], ask)
    if len(tasks) < len(job.fixed) + job.minimum:
        return place(room, job)
    return tasks

"""Where the tasks of a job go: on as few nodes as can be, parameter servers with workers (contract kod2.md section 2).

Exact for a job with one task besides its identical workers (the paper's jobs have one parameter server): a placement is
found whenever there is one. With several, each node is tried for the first of them and the rest follow greedily.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mews.kube.kod2.model import Ask, Job, worker_task
from mews.kube.kod2.room import PLENTY, Room

Tasks = dict[str, str]


@dataclass(slots=True)
class _Layout:
    """One way to place the fixed tasks: their nodes, and how many workers fit then (at most those asked about)."""

    fixed: Tasks
    first: int
    workers: int
    together: bool


class Workers:
    """How many of a job's workers fit, kept up to date while a room changes node by node."""

    def __init__(self, room: Room, job: Job) -> None:
        self.room = room
        self.job = job
        self.capacity = [room.capacity(number, job.worker) for number in range(len(room.nodes))]
        self._total = sum(self.capacity)

    def changed(self, node: str) -> None:
        """A node's room has changed."""
        number = self.room.index.get(node)
        if number is not None:
            now = self.room.capacity(number, self.job.worker)
            self._total += now - self.capacity[number]
            self.capacity[number] = now

    def within(self, changed: Sequence[tuple[int, int]] = ()) -> int:
        """How many fit in all, were the capacities of some nodes others, and with what the pools have left."""
        if not self.job.worker.pooled:
            return self._total + sum(now - self.capacity[number] for number, now in changed)
        sums: dict[str, int] = {}
        now = dict(changed)
        for number, node in enumerate(self.room.nodes):
            count = now.get(number, self.capacity[number])
            if count and node.pool is not None:
                sums[node.pool] = min(PLENTY, sums.get(node.pool, 0) + count)
        room, asks = self.room.pools, self.job.worker.pooled
        return sum(min(count, max(0, room.get(pool, 0) // asks)) for pool, count in sums.items())

    def layout(self, at_least: int, wanted: int, order: Sequence[int] | None = None) -> _Layout | None:
        """The best way to place the fixed tasks so that at least so many workers fit: most workers (up to
        ``wanted``), then a worker beside the first fixed task, then the earliest node of ``order``.

        Without an order the first way that is good enough is taken: to know whether there is one.
        """
        if self.within() < at_least:
            return None
        best: _Layout | None = None
        for number in range(len(self.room.nodes)) if order is None else order:
            found = self._from(number, wanted, order)
            if found is None or found.workers < at_least:
                continue
            if order is None or (found.workers >= wanted and found.together):
                return found
            if best is None or (found.workers, found.together) > (best.workers, best.together):
                best = found
            if not self.job.fixed:
                break
        return best

    def _from(self, first: int, wanted: int, order: Sequence[int] | None) -> _Layout | None:
        room, job = self.room, self.job
        if not job.fixed:
            return _Layout({}, first, min(wanted, self.within()), True)
        if not room.fits(first, job.fixed[0][1]):
            return None
        placed: list[tuple[int, str, Ask]] = []
        try:
            for task, ask in job.fixed:
                number = self._next(first, ask, order)
                if number is None:
                    return None
                placed.append((number, task, ask))
                room.take(room.nodes[number].name, ask)
            touched = sorted({number for number, _, _ in placed})
            changed = [(number, room.capacity(number, job.worker)) for number in touched]
            workers = min(wanted, self.within(changed))
            together = dict(changed)[first] > 0 and workers > 0
            return _Layout({task: room.nodes[number].name for number, task, _ in placed}, first, workers, together)
        finally:
            for number, _, ask in placed:
                room.give(room.nodes[number].name, ask)

    def _next(self, first: int, ask: Ask, order: Sequence[int] | None) -> int | None:
        if self.room.fits(first, ask):
            return first
        rest = range(len(self.room.nodes)) if order is None else order
        return next((number for number in rest if self.room.fits(number, ask)), None)


def could_place(room: Room, job: Job, workers: int | None = None) -> bool:
    """Whether the job's fixed tasks and that many workers (its minimum) have an actual placement."""
    count = job.minimum if workers is None else workers
    return Workers(room, job).layout(count, count) is not None


def place(room: Room, job: Job, *, affinity: bool = True) -> Tasks | None:
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
    order = room.by_idle()
    layout = workers.layout(job.minimum, job.wanted, order)
    if layout is None:
        return None
    return _on_one(room, job, layout.workers) or _on_several(room, job, layout, order)


def _on_one(room: Room, job: Job, count: int) -> Tasks | None:
    """The whole job on the tightest single node that holds it."""
    best: tuple[float, str] | None = None
    for number, node in enumerate(room.nodes):
        if (best is None or (room.idle(number), node.name) < best) and _holds(room, number, job, count):
            best = (room.idle(number), node.name)
    if best is None:
        return None
    tasks = [task for task, _ in job.fixed] + [worker_task(index) for index in range(count)]
    return dict.fromkeys(tasks, best[1])


def _holds(room: Room, number: int, job: Job, count: int) -> bool:
    node = room.nodes[number].name
    if room.capacity(number, job.worker) < count or room.devices(number, job.worker) < count:
        return False
    taken: list[Ask] = []
    try:
        for _, ask in job.fixed:
            if not room.fits(number, ask):
                return False
            room.take(node, ask)
            taken.append(ask)
        return room.capacity(number, job.worker) >= count and room.devices(number, job.worker) >= count
    finally:
        for ask in taken:
            room.give(node, ask)


def _on_several(room: Room, job: Job, layout: _Layout, order: Sequence[int]) -> Tasks:
    trial, tasks, index = room.copy(), dict(layout.fixed), 0
    fixed = dict(job.fixed)
    for task, node in layout.fixed.items():
        trial.take(node, fixed[task])
    for number in (layout.first, *(number for number in order if number != layout.first)):
        node = room.nodes[number].name
        while index < layout.workers and trial.fits(number, job.worker):
            tasks[worker_task(index)] = node
            trial.take(node, job.worker)
            index += 1
    return tasks


def _spread(room: Room, job: Job) -> Tasks | None:
    """Each task on the node that is most idle by then: placement without affinity, for comparison. Where that wastes
    room that the minimum needs, the ordinary placement is taken."""
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

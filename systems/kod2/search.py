"""Where several fixed tasks of a job go so that its workers fit as well: an exact search within a budget. Pure.

Branch and bound over classes of nodes that are alike (the same free amounts, pool and permission), so that neither
equal nodes nor equal tasks are tried twice; a state that was seen in another order is not looked at again. Workers are
all alike: how many fit beside what is placed is a sum, and never grows as more is placed, which is the bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mews.systems.kod2.model import ElasticJob, TaskRequest
from mews.systems.kod2.room import PLENTY, FreeRoom

STEPS = 20_000
"""So many ways to place one task are tried for one question at the most."""

_Kind = tuple[tuple[int, ...], str | None, tuple[bool, ...]]
"""What makes nodes alike: free amounts, pool, and which of the tasks they may take."""


class Assignment(Struct, frozen=True):
    """Node by task for the fixed ones, and how many workers fit then (at most those asked about); ``tasks`` is None
    where none was found, and ``proven`` says whether there is no better one."""

    tasks: dict[str, str] | None
    workers: int
    proven: bool


def assign(room: FreeRoom, job: ElasticJob, at_least: int, wanted: int, steps: int = STEPS) -> Assignment:
    """Return the fixed tasks' nodes so that at least so many workers fit, and most of those wanted."""
    steps = min(steps, room.budget.left)
    search = _Search(room, job, at_least, wanted, steps)
    search.run()
    room.budget.left -= steps - max(0, search.left)
    return Assignment(search.best, search.workers, search.left >= 0)


class _Search:
    def __init__(self, room: FreeRoom, job: ElasticJob, at_least: int, wanted: int, steps: int) -> None:
        self.best: dict[str, str] | None = None
        self.workers = at_least - 1
        self.left = steps
        self._room, self._job, self._wanted = room, job, wanted
        self._tasks = sorted(job.fixed, key=lambda entry: (_size(room, entry[1]), entry[1].amounts), reverse=True)
        self._asks = [job.worker, *dict.fromkeys(ask for _, ask in self._tasks)]
        self._members: dict[_Kind, list[int]] = {}
        for number in reversed(range(len(room.nodes))):
            self._members.setdefault(self._kind_of(number), []).append(number)
        self._pools = dict(room.pools)
        self._has_devices = any(ask.pooled for _, ask in job.fixed)
        self._holds: dict[_Kind, tuple[int, ...]] = {}
        self._sums: list[dict[str | None, int]] = [{} for _ in self._asks]
        for kind, members in self._members.items():
            self._count(kind, len(members))
        self._moved: dict[_Kind, int] = {}
        self._seen: set[object] = set()
        self._path: list[tuple[str, int]] = []

    def run(self) -> None:
        if all(self._takes(number) >= 1 for number in range(1, len(self._asks))):
            self._place(0)

    # Nodes alike

    def _kind_of(self, number: int) -> _Kind:
        node = self._room.nodes[number]
        allowed = tuple(
            (ask.nodes is None or node.name in ask.nodes) and not (ask.pooled and node.pool is None)
            for ask in self._asks
        )
        return tuple(self._room.free[number]), node.pool, allowed

    def _capacities(self, kind: _Kind) -> tuple[int, ...]:
        """Return how many more of each kind of task a node of that kind holds, its pool aside."""
        known = self._holds.get(kind)
        if known is None:
            free, _, allowed = kind
            known = self._holds[kind] = tuple(
                _capacity(free, ask) if may else 0 for ask, may in zip(self._asks, allowed, strict=True)
            )
        return known

    def _count(self, kind: _Kind, nodes: int) -> None:
        """So many more nodes of that kind."""
        for sums, capacity in zip(self._sums, self._capacities(kind), strict=True):
            if capacity:
                sums[kind[1]] = sums.get(kind[1], 0) + nodes * capacity

    def _takes(self, which: int) -> int:
        """Return how many tasks of a kind fit in all, as things are."""
        asks = self._asks[which].pooled
        if not asks:
            return sum(self._sums[which].values())
        return sum(min(n, max(0, self._pools.get(pool or "", 0) // asks)) for pool, n in self._sums[which].items())

    # The search

    def _place(self, depth: int) -> None:
        """Place the task of that depth and all after it, in every way that may still be better than the best."""
        reached = min(self._wanted, self._takes(0))
        if reached <= self.workers or not self._is_new(depth):
            return
        if depth == len(self._tasks):
            self.best, self.workers = {task: self._room.nodes[number].name for task, number in self._path}, reached
            return
        task, ask = self._tasks[depth]
        for kind in self._candidates(ask):
            number = self._take(kind, ask)
            self._path.append((task, number))
            if self._rest_fits(depth + 1):
                self._place(depth + 1)
            self._path.pop()
            self._give(kind, ask, number)
            if self.workers >= self._wanted or self.left < 0:
                return

    def _candidates(self, ask: TaskRequest) -> Iterator[_Kind]:
        """Kinds of nodes that take a task, first those where it costs the fewest workers, then the fullest."""
        which = self._asks.index(ask)
        found = []
        for kind, members in self._members.items():
            if not members or not self._capacities(kind)[which]:
                continue
            if ask.pooled and self._pools.get(kind[1] or "", 0) < ask.pooled:
                continue
            self.left -= 1
            if self.left < 0:
                return iter(())
            lost = self._capacities(kind)[0] - self._capacities(_after(kind, ask))[0]
            found.append((lost, kind[0], members[-1], kind))
        return iter([kind for *_, kind in sorted(found)])

    def _take(self, kind: _Kind, ask: TaskRequest) -> int:
        number = self._members[kind].pop()
        self._members.setdefault(_after(kind, ask), []).append(number)
        self._move(kind, _after(kind, ask), ask.pooled)
        return number

    def _give(self, kind: _Kind, ask: TaskRequest, number: int) -> None:
        self._members[_after(kind, ask)].pop()
        self._members[kind].append(number)
        self._move(_after(kind, ask), kind, -ask.pooled)

    def _move(self, old: _Kind, new: _Kind, devices: int) -> None:
        self._count(old, -1)
        self._count(new, 1)
        for kind, change in ((old, -1), (new, 1)):
            self._moved[kind] = self._moved.get(kind, 0) + change
            if not self._moved[kind]:
                del self._moved[kind]
        if devices:
            self._pools[old[1] or ""] -= devices

    def _rest_fits(self, depth: int) -> bool:
        """Return whether the tasks that are left fit one kind at a time: less than that is no way."""
        left: dict[TaskRequest, int] = {}
        for _, ask in self._tasks[depth:]:
            left[ask] = left.get(ask, 0) + 1
        return all(self._takes(self._asks.index(ask)) >= count for ask, count in left.items())

    def _is_new(self, depth: int) -> bool:
        state = (depth, frozenset(self._moved.items()), frozenset(self._pools.items()) if self._has_devices else None)
        if state in self._seen:
            return False
        self._seen.add(state)
        return True


def _after(kind: _Kind, ask: TaskRequest) -> _Kind:
    free, pool, allowed = kind
    return tuple(have - want for have, want in zip(free, ask.amounts, strict=True)), pool, allowed


def _capacity(free: tuple[int, ...], ask: TaskRequest) -> int:
    counts = [have // want for have, want in zip(free, ask.amounts, strict=True) if want]
    return max(0, min(PLENTY, *counts)) if counts else PLENTY


def _size(room: FreeRoom, ask: TaskRequest) -> float:
    """Return a task's largest share of the largest node: large ones are placed first."""
    largest = [max((node.allocatable[d] for node in room.nodes), default=0) for d in range(len(ask.amounts))]
    return max((want / have for want, have in zip(ask.amounts, largest, strict=True) if have), default=0.0)

"""The elastic scheduler: weights and Algorithm 1 (the KOD2 paper, section 3.2, contract kod2.md section 2). Pure.

``decide`` takes the queues and says what to do; whoever acts on it (the operator, the simulator) writes it down and
asks again at the next event.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec.structs import replace

from mews.systems.kod2 import literal
from mews.systems.kod2.edits import followed, missing_of, named
from mews.systems.kod2.model import (
    CPU,
    MEMORY,
    ClusterState,
    Decision,
    ElasticJob,
    Mode,
    Options,
    Placed,
    Queues,
    Running,
    ScaledIn,
    ScaledOut,
    SchedulingDecision,
    Starved,
    WaitingJob,
    WaitReason,
)
from mews.systems.kod2.placement import Feasibility, could_place, feasibility, place
from mews.systems.kod2.room import FreeRoom
from mews.systems.kod2.scaling import scale_in, scale_out
from mews.systems.kod2.search import STEPS

_DIGITS = 12
_MOMENT_S = 0.001
"""Longer than a limit is meant, not as long."""


def decide(queues: Queues, now_s: float, options: Options | None = None) -> SchedulingDecision:
    """Return everything that can be decided now: passes of Algorithm 1, repeated until one changes nothing.

    ``now_s`` counts in the same seconds as the jobs' ``arrived_s``.
    """
    chosen = options or Options()
    edits, queues = followed(queues, now_s)
    if chosen.mode is Mode.LITERAL:
        decisions = literal.decide(queues, now_s, chosen, weights_of(queues))
        return SchedulingDecision((*edits, *decisions), {})
    scheduling = _Scheduling(queues, now_s, chosen)
    while scheduling.one_pass():
        pass
    return SchedulingDecision((*edits, *scheduling.decisions), scheduling.reasons())


def weight(job: ElasticJob, cluster: ClusterState) -> float:
    """w' = n_min / (C/C_node + M/M_node): C and M of the fixed tasks and the minimum of workers, C_node and M_node of
    the largest node. Devices count for fitting only; a job without workers counts as one that needs one."""
    return _weight(job, _largest(cluster))


def _largest(cluster: ClusterState) -> tuple[int, int]:
    cpu = max((node.allocatable[CPU] for node in cluster.nodes), default=0)
    return cpu, max((node.allocatable[MEMORY] for node in cluster.nodes), default=0)


def _weight(job: ElasticJob, largest: tuple[int, int]) -> float:
    share = 0.0
    for dimension, whole in zip((CPU, MEMORY), largest, strict=True):
        asked = sum(ask.amounts[dimension] for _, ask in job.fixed) + job.minimum * job.worker.amounts[dimension]
        if whole:
            share += asked / whole
    return round(max(1, job.minimum) / share, _DIGITS) if share else math.inf


def published(raw: float) -> float:
    """Equation 1: the sigmoid of w', what people are shown. It saturates, so nothing is decided by it."""
    return 1.0 if math.isinf(raw) else 1.0 / (1.0 + math.exp(-raw))


def weights_of(queues: Queues) -> dict[str, float]:
    """w' of every job, waiting or running; starving ones have their base weight here."""
    jobs = [*(entry.job for entry in queues.waiting), *(entry.job for entry in queues.running)]
    largest = _largest(queues.cluster)
    return {job.key: _weight(job, largest) for job in jobs}


class _Scheduling:
    """One decision in the making: the queues as they will be."""

    def __init__(self, queues: Queues, now_s: float, options: Options) -> None:
        self._cluster = queues.cluster
        self._now_s = now_s
        self._options = options
        self._waiting = {entry.job.key: entry for entry in queues.waiting}
        self._running = {entry.job.key: entry for entry in queues.running}
        self._weights = weights_of(queues)
        self._room = FreeRoom(queues.cluster, queues.running)
        empty = FreeRoom(queues.cluster)
        found = {key: feasibility(empty, entry.job) for key, entry in self._waiting.items()}
        self._too_large = {key: answer for key, answer in found.items() if answer is not Feasibility.YES}
        self._heaviest = max((self._weights[key] for key in self._running), default=-math.inf)
        self._line: list[WaitingJob] | None = None
        self._edited = {r.job.key for r in queues.running if r.target is not None or missing_of(r) is not None}
        self.decisions: list[Decision] = []

    # One pass

    def one_pass(self) -> bool:
        """Return lines 5 to 36, once running jobs have what their specs ask for since they were changed; whether
        anything changed."""
        changed = self._complete()
        order = self._order()
        if order and not changed:
            changed = self._head(order) if self._is_heaviest(order[0]) else self._walk(order)
        return changed or self._starve(order) or self._grow(order)

    def _complete(self) -> bool:
        """Give running jobs what their changed specs ask for at the least, as if it were a job that waits; and idle
        room to those whose replicas were raised. Heavier ones first."""
        if not self._edited:
            return False
        changed = False
        for runner in sorted((self._running[key] for key in self._edited), key=self._line_of_running):
            lacks = missing_of(runner)
            if lacks is not None and (tasks := self._room_for(lacks)) is not None:
                self._add(runner, named(runner, tasks))
                changed = True
        for runner in [self._running[key] for key in sorted(self._edited) if self._running[key].target is not None]:
            raised = replace(runner, target=None)
            self._running[runner.job.key] = raised
            most = min(runner.target or 0, runner.job.maximum)
            if not (runner.held or runner.finishing):
                added = scale_out(self._room, replace(raised, job=replace(runner.job, maximum=most)))
                if added:
                    self._add(raised, added)
                    changed = True
        return changed

    def _line_of_running(self, runner: Running) -> tuple[float, float, str]:
        return (-self._weights[runner.job.key], runner.job.arrived_s, runner.job.key)

    def _room_for(self, lacks: ElasticJob) -> Mapping[str, str] | None:
        tasks = place(self._room, lacks, affinity=self._options.affinity)
        if tasks is None and self._options.preemption and self._take_from_others(lacks, self._weights):
            tasks = place(self._room, lacks, affinity=self._options.affinity)
        return tasks

    def _add(self, runner: Running, added: Mapping[str, str]) -> None:
        self._room.take_all(runner.job, added)
        tasks = {**runner.tasks, **added}
        self._running[runner.job.key] = replace(runner, tasks=tasks, scaled_s=self._now_s)
        self.decisions.append(ScaledOut(runner.job.key, added))

    def _starve(self, order: list[WaitingJob]) -> bool:
        """Return lines 27 to 29, for all that still wait: behind a head that cannot be placed they would starve as
        well."""
        changed = False
        for entry in order:
            patient = entry.starving or entry.refused
            if not patient and self._now_s - entry.job.arrived_s > self._options.starve_limit_s:
                self._waiting[entry.job.key] = replace(entry, starving=True)
                self._line = None
                self.decisions.append(Starved(entry.job.key))
                changed = True
        return changed

    def _order(self) -> list[WaitingJob]:
        """Return the waiting: starving ones by their wait, then by descending weight, equal ones by arrival. A job that
        does not fit the empty cluster waits outside the line."""
        if self._line is None:
            line = [entry for key, entry in self._waiting.items() if key not in self._too_large]
            self._line = sorted(line, key=self._rank)
        return self._line

    def _rank(self, entry: WaitingJob) -> tuple[bool, bool, float, float, str]:
        job, starving = entry.job, entry.starving
        weight = 0.0 if starving else -self._weights[job.key]
        return (entry.refused, not starving, weight, job.arrived_s, job.key)

    def _effective(self, entry: WaitingJob) -> float:
        return math.inf if entry.starving else self._weights[entry.job.key]

    def _is_heaviest(self, head: WaitingJob) -> bool:
        return not head.refused and self._effective(head) >= self._heaviest

    def _head(self, order: list[WaitingJob]) -> bool:
        if self._place(order[0]) or (self._options.preemption and self._preempt(order[0])):
            return True
        return self._walk(order[1:]) if self._options.backfill else False

    def _walk(self, order: list[WaitingJob]) -> bool:
        changed = False
        in_vain: set[tuple[object, ...]] = set()
        for entry in list(order):
            shape = (tuple(ask for _, ask in entry.job.fixed), entry.job.worker, entry.job.minimum)
            if shape in in_vain:
                continue
            if self._place(entry):
                changed = True
            else:
                in_vain.add(shape)
        return changed

    # Acts

    def _place(self, entry: WaitingJob) -> bool:
        tasks = place(self._room, entry.job, affinity=self._options.affinity)
        if tasks is None:
            return False
        self._room.take_all(entry.job, tasks)
        del self._waiting[entry.job.key]
        if self._line is not None:
            self._line.remove(entry)
        self._heaviest = max(self._heaviest, self._weights[entry.job.key])
        self._running[entry.job.key] = Running(entry.job, tasks)
        self.decisions.append(Placed(entry.job.key, tasks))
        return True

    def _preempt(self, entry: WaitingJob) -> bool:
        weights = {**self._weights, entry.job.key: self._effective(entry)}
        return self._take_from_others(entry.job, weights) and self._place(entry)

    def _take_from_others(self, job: ElasticJob, weights: Mapping[str, float]) -> bool:
        others = [runner for runner in self._running.values() if runner.job.key != job.key]
        removals = scale_in(self._room, job, others, weights)
        if removals is None:
            return False
        by_job: dict[str, list[str]] = {}
        for victim, task in removals:
            by_job.setdefault(victim.job.key, []).append(task)
        for key, tasks in by_job.items():
            self._shrink(key, tasks, job.key)
        return True

    def _shrink(self, key: str, tasks: list[str], beneficiary: str) -> None:
        victim = self._running[key]
        for task in tasks:
            self._room.give(victim.tasks[task], victim.job.worker)
        left = {task: node for task, node in victim.tasks.items() if task not in tasks}
        self._running[key] = replace(victim, tasks=left, scaled_s=self._now_s)
        self.decisions.append(ScaledIn(key, tuple(tasks), beneficiary))

    def _grow(self, order: list[WaitingJob]) -> bool:
        growing = [runner for runner in self._running.values() if self._may_grow(runner)]
        if not growing or any(could_place(self._room, e.job) for e in order if not e.refused):
            return False
        changed = False
        for runner in sorted(growing, key=self._line_of_running):
            added = scale_out(self._room, runner)
            if added:
                self._add(runner, added)
                changed = True
        return changed

    def _may_grow(self, runner: Running) -> bool:
        if not self._options.scale_out or runner.finishing or runner.held or runner.worker_count >= runner.job.maximum:
            return False
        return runner.scaled_s is None or self._now_s - runner.scaled_s >= self._options.cooldown_s

    # What people are told

    def reasons(self) -> Mapping[str, WaitReason]:
        """Return why each waiting job waits, and what running ones lack."""
        order = self._order()
        heaviest = max(self._running, key=lambda key: self._weights[key], default=None)
        blocked = order[0].job.key if order and self._is_heaviest(order[0]) else None
        lacking = {key: missing_of(self._running[key]) for key in self._edited}
        return {key: self._reason(entry.job, heaviest, blocked) for key, entry in self._waiting.items()} | {
            key: WaitReason("BelowMinimum", f"it runs on, but {_least(lacks)} that its spec asks for do not fit")
            for key, lacks in lacking.items()
            if lacks is not None
        }

    def _reason(self, job: ElasticJob, heaviest: str | None, blocked: str | None) -> WaitReason:
        least = f"its {_least(job)}"
        if self._too_large.get(job.key) is Feasibility.NOT_FOUND:
            text = f"no placement of {least} was found within {STEPS} steps of search, even with no other TFJob running"
            return WaitReason("PlacementNotFound", text)
        if job.key in self._too_large:
            text = f"{least} fit no placement even with no other TFJob running"
            return WaitReason("LargerThanCluster", text)
        if job.key == blocked:
            text = f"{least} do not fit, and those that run cannot give enough; it is next in line"
            return WaitReason("NextInLine", text)
        if blocked is not None:
            return WaitReason("Behind", f"{blocked} is ahead of it in the line and cannot be placed yet")
        weight = self._weights[job.key]
        ahead = "" if heaviest is None else f", and {heaviest} runs with {self._weights[heaviest]:.3g}"
        return WaitReason("TooLight", f"{least} do not fit, and its weight {weight:.3g} lets it preempt nobody{ahead}")


def _least(job: ElasticJob) -> str:
    return f"{len(job.fixed)} fixed task(s) and {job.minimum} worker(s)"


def next_look_s(queues: Queues, now_s: float, options: Options) -> float | None:
    """Return the next time at which time alone may change the decision, in the seconds of ``now_s``: a waiting job's
    limit or a grown job's cooldown is over, or the room of ended workers counts no more. None: never.
    """
    starve = [e.job.arrived_s + options.starve_limit_s for e in queues.waiting if not (e.starving or e.refused)]
    grown = [r for r in queues.running if r.scaled_s is not None and len(r.workers) < r.job.maximum]
    cool = [r.scaled_s + options.cooldown_s for r in grown if r.scaled_s is not None]
    settled = [r.settled_s for r in queues.running if r.settled_s is not None]
    ahead = min((due_s for due_s in (*starve, *cool, *settled) if due_s >= now_s), default=None)
    return None if ahead is None else ahead + _MOMENT_S

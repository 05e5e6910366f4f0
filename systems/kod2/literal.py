"""The paper's pseudocode to the letter (Algorithms 1 to 3), for comparison. Pure.

Where it differs from the corrected rules (contract kod2.md section 2), each with a scenario: feasibility by sums over
the whole cluster; ScaleIn looks at one node, before each removal; worker-0 is removed like any other; ScaleOut wants
strictly more than a worker asks for, takes nodes as listed, runs at every pass and has no cooldown; one job is placed
per event.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mews.systems.kod2.model import (
    Decision,
    ElasticJob,
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
    worker_task,
)
from mews.systems.kod2.placement import place
from mews.systems.kod2.room import FreeRoom

Weights = Mapping[str, float]


def decide(queues: Queues, now_s: float, options: Options, weights: Weights) -> list[Decision]:
    """Algorithm 1, once: at most one job is placed."""
    room = FreeRoom(queues.cluster, queues.running)
    running = {entry.job.key: entry for entry in queues.running}
    decisions: list[Decision] = []
    effective = {e.job.key: math.inf if e.starving else weights[e.job.key] for e in queues.waiting}
    line = sorted(queues.waiting, key=lambda e: (e.refused, -effective[e.job.key], e.job.arrived_s, e.job.key))
    if line:
        heaviest = max((weights[key] for key in running), default=-math.inf)
        preemption = options.preemption and not line[0].refused
        if effective[line[0].job.key] >= heaviest:
            _line_5(line[0].job, room, running, {**weights, **effective}, decisions, preemption=preemption)
        else:
            _line_18(line, room, running, now_s, options, decisions)
    if options.scale_out:
        _scale_out(room, sorted(running.values(), key=lambda r: (-weights[r.job.key], r.job.arrived_s)), decisions)
    return decisions


def _line_5(
    job: ElasticJob,
    room: FreeRoom,
    running: dict[str, Running],
    weights: Weights,
    decisions: list[Decision],
    *,
    preemption: bool,
) -> None:
    if _sums_suffice(room, job) or (preemption and _scale_in(job, room, running, weights, decisions)):
        _start(job, room, running, decisions)


def _line_18(
    line: Sequence[WaitingJob],
    room: FreeRoom,
    running: dict[str, Running],
    now_s: float,
    options: Options,
    decisions: list[Decision],
) -> None:
    placed = next((entry.job for entry in line if _sums_suffice(room, entry.job)), None)
    if placed is not None:
        _start(placed, room, running, decisions)
    for entry in line:
        waited = now_s - entry.job.arrived_s
        patient = entry.starving or entry.refused
        if entry.job is not placed and not patient and waited > options.starve_limit_s:
            decisions.append(Starved(entry.job.key))


def least(job: ElasticJob) -> list[int]:
    """Return the sum of what the fixed tasks and the minimum of workers ask for, per dimension."""
    total = [amount * job.minimum for amount in job.worker.amounts]
    for _, ask in job.fixed:
        total = [have + more for have, more in zip(total, ask.amounts, strict=True)]
    return total


def _sums_suffice(room: FreeRoom, job: ElasticJob) -> bool:
    idle = [sum(free[d] for free in room.free) for d in range(len(job.worker.amounts))]
    devices = job.minimum * job.worker.pooled + sum(ask.pooled for _, ask in job.fixed)
    return all(have >= want for have, want in zip(idle, least(job), strict=True)) and (
        not devices or sum(room.pools.values()) >= devices
    )


def _start(job: ElasticJob, room: FreeRoom, running: dict[str, Running], decisions: list[Decision]) -> None:
    """Place the job; a task that fits nowhere goes to the idlest node all the same, whose kubelet will refuse it."""
    tasks = place(room, job) or _forced(room, job)
    room.take_all(job, tasks)
    running[job.key] = Running(job, tasks)
    decisions.append(Placed(job.key, tasks))


def _forced(room: FreeRoom, job: ElasticJob) -> dict[str, str]:
    trial, tasks = room.copy(), {}
    workers: list[tuple[str, TaskRequest]] = [(worker_task(index), job.worker) for index in range(job.minimum)]
    for task, ask in (*job.fixed, *workers):
        order = trial.by_idle()
        number = next((number for number in order if trial.fits(number, ask)), order[0] if order else None)
        if number is not None:
            tasks[task] = trial.nodes[number].name
            trial.take(tasks[task], ask)
    return tasks


def _scale_in(
    job: ElasticJob, room: FreeRoom, running: dict[str, Running], weights: Weights, decisions: list[Decision]
) -> bool:
    """Algorithm 2: a node is tested for the whole job before each removal, never after the last."""
    trial, want, removals = room.copy(), least(job), dict[str, list[str]]()
    line = sorted(running.values(), key=lambda r: (weights[r.job.key], r.job.arrived_s))
    for victim in line:
        if weights[victim.job.key] == weights[job.key] and victim.job.arrived_s < job.arrived_s:
            continue
        if victim.held:
            continue
        for node, task in _candidates(victim, room):
            if all(have >= ask for have, ask in zip(trial.free[trial.index[node]], want, strict=True)):
                _apply(removals, room, running, job.key, decisions)
                return True
            if len(removals.get(victim.job.key, ())) >= len(victim.workers) - victim.job.minimum:
                break
            trial.give(node, victim.job.worker)
            removals.setdefault(victim.job.key, []).append(task)
    return False


def _candidates(victim: Running, room: FreeRoom) -> list[tuple[str, str]]:
    servers = {node for task, node in victim.tasks.items() if is_server(task)}
    nodes = sorted((node.name for node in room.nodes), key=lambda name: name in servers)
    return [(node, task) for node in nodes for task in victim.tasks if is_worker(task) and victim.tasks[task] == node]


def _apply(
    removals: Mapping[str, Sequence[str]],
    room: FreeRoom,
    running: dict[str, Running],
    beneficiary: str,
    decisions: list[Decision],
) -> None:
    for key, tasks in removals.items():
        victim = running[key]
        for task in tasks:
            room.give(victim.tasks[task], victim.job.worker)
        left = {task: node for task, node in victim.tasks.items() if task not in tasks}
        running[key] = Running(victim.job, left, victim.scaled_s, victim.finishing)
        decisions.append(ScaledIn(key, tuple(tasks), beneficiary))


def _scale_out(room: FreeRoom, running: Sequence[Running], decisions: list[Decision]) -> None:
    """Algorithm 3."""
    for runner in running:
        there, added = set(runner.workers), dict[str, str]()
        indices = [index for index in range(runner.job.maximum) if index not in there]
        missing = 0 if runner.finishing or runner.held else runner.job.maximum - len(there)
        for number, node in enumerate(room.nodes):
            while len(added) < missing and _more_than(room, number, runner.job.worker):
                room.take(node.name, runner.job.worker)
                added[worker_task(indices[len(added)])] = node.name
        if added:
            decisions.append(ScaledOut(runner.job.key, added))


def _more_than(room: FreeRoom, number: int, ask: TaskRequest) -> bool:
    node = room.nodes[number]
    if ask.nodes is not None and node.name not in ask.nodes:
        return False
    if ask.pooled and room.pools.get(node.pool or "", 0) <= ask.pooled:
        return False
    return all(have > want for have, want in zip(room.free[number], ask.amounts, strict=True) if want)

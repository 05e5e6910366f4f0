"""ScaleIn and ScaleOut (Algorithms 2 and 3 of the paper, with the corrections of contract kod2.md section 2). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mews.systems.kod2.model import ElasticJob, Running, is_server, is_worker, worker_index, worker_task
from mews.systems.kod2.placement import Workers
from mews.systems.kod2.room import FreeRoom

Weights = Mapping[str, float]
Removals = list[tuple[Running, str]]
"""(job, task) pairs in the order in which they were taken away."""


def scale_in(room: FreeRoom, job: ElasticJob, running: Sequence[Running], weights: Weights) -> Removals | None:
    """Return the workers to take from running jobs so that the job's minimum can be placed; None when that is not
    enough.

    ``weights``: the effective ones, of the running and of ``job``. The room is not changed.
    """
    trial = room.copy()
    workers = Workers(trial, job)
    removals: Removals = []
    for victim in victims(job, running, weights):
        for task in removable(victim):
            trial.give(victim.tasks[task], victim.job.worker)
            removals.append((victim, task))
            if workers.layout(job.minimum, job.minimum) is not None:
                return _needed(trial, workers, job, removals)
    return None


def victims(job: ElasticJob, running: Sequence[Running], weights: Weights) -> list[Running]:
    """Running jobs by ascending weight, the youngest first among equals; without those as heavy as ``job`` that came
    earlier, and without heavier ones."""
    weight = weights[job.key]
    eligible = [
        other
        for other in running
        if not other.held
        and (
            weights[other.job.key] < weight
            or (weights[other.job.key] == weight and other.job.arrived_s > job.arrived_s)
        )
    ]
    return sorted(eligible, key=lambda other: (weights[other.job.key], -other.job.arrived_s, other.job.key))


def removable(victim: Running) -> list[str]:
    """Return a job's workers in the order in which they may be taken: from nodes without its parameter servers first,
    the highest index first; worker-0 never, and never below the minimum."""
    servers = {node for task, node in victim.tasks.items() if is_server(task)}
    workers = [task for task in victim.tasks if is_worker(task)]
    candidates = sorted(
        (task for task in workers if worker_index(task) > 0),
        key=lambda task: (victim.tasks[task] in servers, victim.tasks[task], -worker_index(task)),
    )
    return candidates[: max(0, len(workers) - victim.job.minimum)]


def _needed(trial: FreeRoom, workers: Workers, job: ElasticJob, removals: Removals) -> Removals:
    """Give back what turned out not to be needed, the heaviest jobs' workers first."""
    kept: Removals = []
    for position in range(len(removals) - 1, -1, -1):
        victim, task = removals[position]
        trial.take(victim.tasks[task], victim.job.worker)
        if workers.layout(job.minimum, job.minimum) is None:
            trial.give(victim.tasks[task], victim.job.worker)
            kept.append((victim, task))
    return kept[::-1]


def scale_out(room: FreeRoom, runner: Running) -> dict[str, str]:
    """Return the workers to add to a job, task -> node: on its parameter servers' nodes first, then on nodes that host
    it, then by name, the lowest free indices first, up to its maximum. The room is not changed."""
    missing = runner.job.maximum - runner.worker_count
    capacities = room.capacities(runner.job.worker)
    if missing <= 0 or not capacities.total:
        return {}
    there = set(runner.workers)
    indices = [index for index in range(runner.job.maximum) if index not in there]
    servers = {node for task, node in runner.tasks.items() if is_server(task)}
    hosts = set(runner.tasks.values())
    taking = [room.nodes[number].name for number, count in enumerate(capacities.by_node) if count]
    pools, asks = dict(room.pools), runner.job.worker.pooled
    added: dict[str, str] = {}
    for name in sorted(taking, key=lambda name: (name not in servers, name not in hosts, name)):
        number = room.index[name]
        count, pool = min(missing - len(added), capacities.by_node[number]), room.nodes[number].pool
        if asks and pool is not None:
            count = min(count, pools.get(pool, 0) // asks)
            pools[pool] = pools.get(pool, 0) - max(0, count) * asks
        for _ in range(count):
            added[worker_task(indices.pop(0))] = name
        if len(added) >= missing:
            break
    return added


def rehome(room: FreeRoom, runner: Running, task: str, takes: Callable[[str], bool] = lambda node: True) -> str | None:
    """Return another node for a task whose own does not take it any more: in ScaleOut's order, of those that ``takes``
    lets pass; None when none has room.

    The room counts the job without that task.
    """
    ask = runner.job.worker if is_worker(task) else dict(runner.job.fixed)[task]
    others = {name: node for name, node in runner.tasks.items() if name != task}
    servers = {node for name, node in others.items() if is_server(name)}
    hosts = set(others.values())
    names = sorted(room.index, key=lambda name: (name not in servers, name not in hosts, name))
    fitting = (name for name in names if name != runner.tasks[task] and room.fits(room.index[name], ask))
    return next((name for name in fitting if takes(name)), None)

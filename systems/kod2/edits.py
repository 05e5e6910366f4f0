"""What changed specs of running jobs ask for: fewer workers or tasks than there are (contract kod2.md section 1). Pure.

What they ask for beyond is the policy's to find room for.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from mews.systems.kod2.model import (
    Decision,
    ElasticJob,
    Queues,
    Running,
    ScaledIn,
    ScaledOut,
    is_server,
    is_worker,
    worker_index,
    worker_task,
)


def followed(queues: Queues, now_s: float) -> tuple[list[Decision], Queues]:
    """Return what to take from running jobs at once, and the queues as they are then. Workers whose index TF_CONFIG
    does not list any more begin anew under one that it does, where they are."""
    decisions: list[Decision] = []
    runners: list[Running] = []
    for runner in queues.running:
        gone, renamed = _surplus(runner)
        if gone:
            decisions.append(ScaledIn(runner.job.key, tuple(gone), ""))
            left = {task: node for task, node in runner.tasks.items() if task not in gone}
            if renamed:
                decisions.append(ScaledOut(runner.job.key, renamed))
            runner = replace(runner, tasks={**left, **renamed}, scaled_s=now_s)
        runners.append(runner)
    return decisions, replace(queues, running=tuple(runners)) if decisions else queues


def _surplus(runner: Running) -> tuple[list[str], dict[str, str]]:
    """Return the tasks that the spec has no use for, and those of them that go on under another index: task -> node."""
    fixed = {task for task, _ in runner.job.fixed}
    gone = [task for task in runner.tasks if not is_worker(task) and task not in fixed]
    indices = runner.workers
    most = runner.job.maximum if runner.target is None else max(runner.job.minimum, runner.target)
    most = min(most, runner.job.maximum)
    if runner.held or runner.finishing or (len(indices) <= most and (not indices or indices[-1] < runner.job.maximum)):
        return gone, {}
    servers = {node for task, node in runner.tasks.items() if is_server(task)}
    order = sorted(
        (task for task in runner.tasks if is_worker(task)),
        key=lambda task: (
            worker_index(task) == 0,
            runner.tasks[task] in servers,
            runner.tasks[task],
            -worker_index(task),
        ),
    )
    surplus = order[: max(0, len(order) - most)]
    kept = order[len(surplus) :]
    unlisted = [task for task in kept if worker_index(task) >= runner.job.maximum]
    there = {worker_index(task) for task in kept}
    free = (index for index in range(runner.job.maximum) if index not in there)
    renamed = {worker_task(index): runner.tasks[task] for task, index in zip(sorted(unlisted), free, strict=False)}
    return [*gone, *surplus, *unlisted], renamed


def missing_of(runner: Running) -> ElasticJob | None:
    """Return a job that asks for what a running one lacks of its spec's minimum; None where it lacks nothing."""
    job = runner.job
    fixed = tuple((task, ask) for task, ask in job.fixed if task not in runner.tasks)
    workers = max(0, job.minimum - runner.worker_count)
    if runner.held or runner.finishing or not (fixed or workers):
        return None
    return replace(job, fixed=fixed, minimum=workers, wanted=workers, maximum=workers)


def named(runner: Running, tasks: Mapping[str, str]) -> dict[str, str]:
    """Tasks placed for what is missing, under the indices that are free."""
    there = set(runner.workers)
    free = (index for index in range(runner.job.maximum) if index not in there)
    return {(worker_task(next(free)) if is_worker(task) else task): node for task, node in tasks.items()}

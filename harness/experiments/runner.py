"""Runs an experiment's tasks in processes of their own; the rows depend neither on how many there are, nor on whether
results were kept by an earlier run that ended before its time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from mews.harness.errors import RequirementError
from mews.harness.experiments.kept import KeptResults, task_id
from mews.harness.experiments.playing import play
from mews.harness.experiments.timing import cpu_seconds
from mews.harness.worker_pool import WorkerPool
from mews.kube.system.experiment import Experiment, ExperimentPart, Part, Row, TimedPart, first_seeds


class PartProgress(Struct, frozen=True):
    """How far a part of an experiment is: of its ``tasks``, ``done`` have ended, ``kept`` of them in an earlier run."""

    part: str
    done: int
    kept: int
    tasks: int


class _TaskEnd(Struct, frozen=True):
    """The task's number, and its result as JSON."""

    number: int
    result: str


def run_experiment(
    experiment: Experiment,
    seeds: Mapping[str, range],
    *,
    processes: int = 2,
    kept: KeptResults | None = None,
    on_progress: Callable[[PartProgress], None] = lambda progress: None,
    on_tick: Callable[[], None] = lambda: None,
) -> dict[str, list[Row]]:
    """Return the rows of every part, by its name, with these seeds: where none are given, as many of the first as it
    says.

    ``kept`` has the results that need not be run for, and gets each further one as it comes. Processes are forked, and
    results come back as JSON. ``on_tick`` is called from time to time.

    Raises ScenarioFailedError for a scenario that must pass and does not, RequirementError where a process dies.
    """
    kept = kept or KeptResults()
    tables: dict[str, list[Row]] = {}
    for part in experiment.parts:
        wanted = seeds.get(part.name, first_seeds(part.seeds))
        workers = _Workers(processes, kept, on_progress, on_tick)
        tables[part.name] = list(part.rows(wanted, _results(part, part.tasks(wanted), workers)))
    return tables


class _Workers(Struct, frozen=True):
    """What ``run_experiment`` was called with."""

    processes: int
    kept: KeptResults
    on_progress: Callable[[PartProgress], None]
    on_tick: Callable[[], None]


def _results(part: Part, tasks: Sequence[Any], workers: _Workers) -> list[Any]:
    """Return them in the order of the tasks, which are made one at a time: all worlds of a large experiment fill the
    memory."""
    work, kept = _work(part), workers.kept
    names = [task_id(tasks[number]) for number in range(len(tasks))]
    texts = [kept.find(part.name, name) for name in names]
    left = [number for number, text in enumerate(texts) if text is None]
    before = done = len(tasks) - len(left)
    workers.on_progress(PartProgress(part.name, done, before, len(tasks)))

    def call(index: int) -> _TaskEnd:
        return _TaskEnd(left[index], json.dumps(work(tasks[left[index]])))

    def keep(ended: _TaskEnd) -> None:
        nonlocal done
        done += 1
        kept.add(part.name, names[ended.number], ended.result)
        workers.on_progress(PartProgress(part.name, done, before, len(tasks)))

    def lost(index: int, reason: str) -> _TaskEnd:
        raise RequirementError(f"task {left[index] + 1} of {len(tasks)} of {part.name}: {reason}")

    pool = WorkerPool(call, jobs=workers.processes, lost=lost, on_result=keep, on_tick=workers.on_tick)
    for ended in pool.run(len(left)):
        texts[ended.number] = ended.result
    # Read back also what was never in a file, so that a tuple is a list in both.
    return [json.loads(text) for text in texts if text is not None]


def _work(part: Part) -> Callable[[Any], Any]:
    if isinstance(part, ExperimentPart):
        return part.run
    if isinstance(part, TimedPart):
        return partial(cpu_seconds, part.prepare)
    return partial(play, part.keep, may_fail=part.may_fail)

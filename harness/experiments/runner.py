"""Runs an experiment's tasks in processes of their own; the rows do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import Pool
from typing import Any

from mews.harness.experiments.playing import play
from mews.harness.experiments.timing import cpu_seconds
from mews.kube.system.experiment import Experiment, ExperimentPart, Part, Row, TimedPart, first_seeds


def run_experiment(
    experiment: Experiment,
    seeds: Mapping[str, range],
    *,
    processes: int = 2,
    on_progress: Callable[[str, int, int], None] = lambda part, done, tasks: None,
) -> dict[str, list[Row]]:
    """The rows of every part, by its name, with these seeds: where none are given, as many of the first as it says.

    ``on_progress`` gets a part's name, how many of its tasks are done, and how many there are. Each process gets what
    a part does with a task by its module and name, and the task by value. Raises ScenarioFailed for a scenario that
    must pass and does not.
    """
    tables: dict[str, list[Row]] = {}
    with Pool(processes) as pool:
        for part in experiment.parts:
            wanted = seeds.get(part.name, first_seeds(part.seeds))
            tasks, results = part.tasks(wanted), []
            for result in pool.imap(_work(part), tasks):
                results.append(result)
                on_progress(part.name, len(results), len(tasks))
            tables[part.name] = list(part.rows(wanted, results))
    return tables


def _work(part: Part) -> Callable[[Any], Any]:
    if isinstance(part, ExperimentPart):
        return part.run
    if isinstance(part, TimedPart):
        return partial(cpu_seconds, part.prepare)
    return partial(play, part.keep, may_fail=part.may_fail)

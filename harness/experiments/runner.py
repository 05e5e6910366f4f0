"""Runs an experiment's tasks in processes of their own; the rows do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing import Pool

from mews.kube.system.experiment import Experiment, Row


def run_experiment(experiment: Experiment, seeds: Mapping[str, int], *, processes: int = 2) -> dict[str, list[Row]]:
    """The rows of every part, by its name, with so many seeds each (a part's own number where none is given).

    Each process gets a part's ``run`` by its module and name, and the task by value.
    """
    tables: dict[str, list[Row]] = {}
    with Pool(processes) as pool:
        for part in experiment.parts:
            wanted = seeds.get(part.name, part.seeds)
            results = pool.map(part.run, part.tasks(wanted), chunksize=1)
            tables[part.name] = list(part.rows(wanted, results))
    return tables

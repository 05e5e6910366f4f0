"""The experiment as data: its parts, what each runs, and the rows that come of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from msgspec.structs import replace

from mews.kube.system.experiment import Comparison, Experiment, ExperimentPart, Row, Tables
from mews.systems.kod2.experiment.cells import BATCHES, CORES_GFLOPS, DEADLINES_S, MODELS, Assumptions, cells
from mews.systems.kod2.experiment.figures import figures
from mews.systems.kod2.experiment.report import PANEL_B, markdown, model_change
from mews.systems.kod2.experiment.run import VARIANTS, intervals_of, mean_of, reduction, run_cell

SIZES: dict[str, tuple[int, ...]] = {"2-5": (2, 3, 4, 5), "3-6": (3, 4, 5, 6), "4-8": (4, 5, 6, 7, 8)}
LARGE, MEDIUM = 128, 64
"""The batch sizes at which the paper compares completion times, and utilisation."""

Task = tuple[str, int, int, tuple[str, ...], Assumptions]
Numbers = Mapping[str, Mapping[str, Any]]


def cell_tasks(seeds: range) -> list[Task]:
    """Return every cell with every seed, in all ways to schedule."""
    names, given = tuple(VARIANTS), Assumptions()
    return [(model, batch, seed, names, given) for model, batch in cells() for seed in seeds]


def cell_rows(seeds: range, results: Sequence[Numbers]) -> list[Row]:
    """Return every cell and variant: rows with model, batch, variant, the means over the seeds and how sure they
    are."""
    rows: list[Row] = []
    for number, (model, batch) in enumerate(cells()):
        of_cell = results[number * len(seeds) : (number + 1) * len(seeds)]
        for name in VARIANTS:
            runs = [run[name] for run in of_cell]
            rows.append({"model": model, "batch": batch, "variant": name, **mean_of(runs), **intervals_of(runs)})
    return rows


def _assumed() -> list[tuple[str, float, Assumptions]]:
    """Return how many workers jobs want, when a job that hangs is ended, and both as assumptions."""
    return [
        (size, deadline_s, replace(Assumptions(), workers=workers, deadline_s=deadline_s))
        for size, workers in SIZES.items()
        for deadline_s in DEADLINES_S
    ]


def sensitivity_tasks(seeds: range) -> list[Task]:
    """Return the elastic run and the random baseline at both batch sizes, under each pair of assumptions."""
    return [
        (model, batch, seed, ("kod2", "random"), given)
        for _, _, given in _assumed()
        for batch in (LARGE, MEDIUM)
        for model in MODELS
        for seed in seeds
    ]


def sensitivity_rows(seeds: range, results: Sequence[Numbers]) -> list[Row]:
    """Return how the reduction at batch 128 and the utilisation at batch 64 hang on the two assumptions."""
    each = len(MODELS) * len(seeds)
    rows: list[Row] = []
    for number, (size, deadline_s, _) in enumerate(_assumed()):
        large = results[2 * number * each : (2 * number + 1) * each]
        medium = results[(2 * number + 1) * each : (2 * number + 2) * each]
        rows.append({"workers": size, "deadline_s": deadline_s, **_effect(_means(large), _means(medium))})
    return rows


def _means(results: Sequence[Numbers]) -> dict[str, dict[str, Any]]:
    return {name: mean_of([run[name] for run in results]) for name in ("kod2", "random")}


def _effect(large: Numbers, medium: Numbers) -> dict[str, float]:
    return {
        "reduction": reduction(large["kod2"]["jct_s"], large["random"]["jct_s"]),
        "reduction_all": reduction(large["kod2"]["jct_all_s"], large["random"]["jct_all_s"]),
        "dead": large["random"]["dead"],
        "utilisation": medium["kod2"]["utilisation_in_span"] / medium["random"]["utilisation_in_span"] - 1.0,
    }


def speed_tasks(seeds: range) -> list[Task]:
    """Return all cells, the elastic run and the random baseline, for each speed of a core and each deadline."""
    return [
        (model, batch, seed, ("kod2", "random"), replace(Assumptions(), core_gflops=core, deadline_s=deadline_s))
        for core in CORES_GFLOPS
        for deadline_s in DEADLINES_S
        for model, batch in cells()
        for seed in seeds
    ]


def speed_rows(seeds: range, results: Sequence[Numbers]) -> list[Row]:
    """Return in how many cells the elastic run is faster, and by how much where the paper says a number."""
    left, rows = iter(results), list[Row]()
    for core in CORES_GFLOPS:
        for deadline_s in DEADLINES_S:
            means = {cell: _means([next(left) for _ in seeds]) for cell in cells()}
            row: dict[str, Any] = {"core_gflops": core, "deadline_s": deadline_s, "cells": len(means)}
            for key, name in (("jct_s", "completed"), ("jct_all_s", "all")):
                saved = {cell: reduction(of["kod2"][key], of["random"][key]) for cell, of in means.items()}
                row[f"faster_{name}"] = sum(share > 0 for share in saved.values())
                saving = saved[PANEL_B, LARGE]
                row[f"change_{name}"] = None if isnan(saving) else -saving
            rows.append(row)
    return rows


def _report(tables: Tables, seeds: Mapping[str, int]) -> str:
    return markdown(tables["rows"], tables["sensitivity"], tables["speed"], seeds=seeds["rows"])


def _comparisons(tables: Tables) -> list[Comparison]:
    """Return the changes against the random baseline that the paper says, of the same model at the same batch."""
    return [
        Comparison(f"{name}, {PANEL_B}, batch {batch}", model_change(tables["rows"], PANEL_B, batch, key), paper=paper)
        for name, paper, batch, key in (
            ("completion time of completed jobs", -0.84, LARGE, "jct_s"),
            ("completion time of all jobs", None, LARGE, "jct_all_s"),
            ("CPU utilisation", 0.92, MEDIUM, "utilisation_in_span"),
        )
    ]


EXPERIMENT = Experiment(
    name="kod2",
    summary="section 5 of the KOD2 paper through the operator's own policy: 20 cells, two baselines, three ablations",
    parts=(
        ExperimentPart("rows", "every cell in every way to schedule", 30, cell_tasks, run_cell, cell_rows),
        ExperimentPart(
            "sensitivity",
            "how much hangs on the sizes of jobs and on when one that hangs is ended",
            30,
            sensitivity_tasks,
            run_cell,
            sensitivity_rows,
        ),
        ExperimentPart(
            "speed",
            "how much hangs on how fast a core is and on when a job that hangs is ended",
            30,
            speed_tasks,
            run_cell,
            speed_rows,
        ),
    ),
    own_report=_report,
    figures=figures,
    comparisons=_comparisons,
    about={"batches": list(BATCHES)},
)
"""20 cells (4 models x 5 batch sizes) of 10 jobs, the elastic operator in both modes, two baselines, three ablations
and a sweep of the starvation limit, beside the paper's figures."""

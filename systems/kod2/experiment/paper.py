"""Figs. 4, 7 and 8 of the KOD2 paper, each by itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import isnan, nan
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Axis, Comparison, Experiment, ExperimentPart, Figure, Panel, Row, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.kod2.experiment.cells import BATCHES, CORES_GFLOPS, DEADLINES_S, MODELS, Assumptions, cells, shape_of
from mews.systems.kod2.experiment.report import PANEL_B
from mews.systems.kod2.experiment.run import GRID_S, VARIANTS, run_cell, sampled, simulate
from mews.systems.kod2.training import speed

ASSUMED = (
    "Work per image, parameters, network, requests and when a job that hangs is ended (after three hours) are assumed, "
    "since the paper gives none of them: docs/kod2.md."
)

# Fig. 4 ---------------------------------------------------------------------------------------------------------------

FIG4_BATCH, FIG4_CORES = 256, 2
WORKERS = tuple(range(1, 9))


def fig4_tasks(seeds: range) -> list[str]:
    """Return the models; nothing here is left to chance."""
    return list(MODELS)


def fig4_run(model: str) -> list[dict[str, Any]]:
    """Training time by the number of workers, spread over three nodes of which one has the server."""
    shape = shape_of(model, FIG4_BATCH, FIG4_CORES, Assumptions())
    found = []
    for workers in WORKERS:
        near = -(-workers // 3)
        rate = speed(shape, near=near, far=workers - near, servers=1)
        found.append({"model": model, "workers": workers, "train_s": shape.steps / rate})
    return found


def flat(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return all rows."""
    return [row for result in results for row in result]


def _train_s(rows: Sequence[Row], model: str) -> list[float]:
    return [row["train_s"] for row in picked(rows, model=model)]


def fig4_comparisons(tables: Tables) -> list[Comparison]:
    """Return how far the time falls from one worker to eight, and whether it falls all the way."""
    rows = tables["rows"]
    found = [
        Comparison(f"{m}: time with 8 workers over 1", _train_s(rows, m)[-1] / _train_s(rows, m)[0]) for m in MODELS
    ]
    falls = [all(fewer_s >= more_s for fewer_s, more_s in pairwise(_train_s(rows, m))) for m in MODELS]
    return [
        *found,
        Comparison("models whose time falls with every worker", float(sum(falls)), paper=float(len(MODELS))),
    ]


def fig4_figures(tables: Tables) -> list[Figure]:
    """Return a panel a model."""
    at = tuple(float(workers) for workers in WORKERS)
    panels = tuple(
        Panel(model, (Series(model, tuple(_train_s(tables["rows"], model)), at=at),), x_label="workers")
        for model in MODELS
    )
    return [Figure("kod2-fig4", "lines", "training time, s", panels, same_scale=False)]


FIG4_NOTES = (
    f"One pass at batch {FIG4_BATCH}, workers of {FIG4_CORES} cores on three nodes, one server. Of the paper's "
    "figure only the trend is known: more workers, less time, until the server is busy.",
    ASSUMED,
)

FIG4 = Experiment(
    name="kod2-fig4",
    summary="training time against the number of workers, batch 256, four models",
    parts=(ExperimentPart("rows", "every model with 1 to 8 workers", 1, fig4_tasks, fig4_run, flat),),
    title="Fig. 4: training time and number of workers",
    notes=FIG4_NOTES,
    figures=fig4_figures,
    comparisons=fig4_comparisons,
)
"""Fig. 4 of the KOD2 paper."""

# Fig. 7 ---------------------------------------------------------------------------------------------------------------

PANEL_B_BATCH = 128
"""At which the paper says -84 % of Fig. 7(b)."""
SHOWN = {"kod2": "KOD2", "random": "tf-operator, random", "default": "tf-operator, default"}
Fig7Task = tuple[str, int, int, tuple[str, ...], Assumptions]


def fig7_tasks(given: Assumptions, seeds: range) -> list[Fig7Task]:
    """Return every cell with every seed, the operator and both baselines."""
    return [(m, batch, seed, tuple(SHOWN), given) for m, batch in cells() for seed in seeds]


def fig7_rows(given: Assumptions, seeds: range, results: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[Row]:
    """Return one a run."""
    found: list[Row] = []
    for (model, batch, seed, names, _), result in zip(fig7_tasks(given, seeds), results, strict=True):
        for name in names:
            kept = {key: result[name][key] for key in ("jct_s", "jct_all_s", "dead", "end_s")}
            found.append({"model": model, "batch": batch, "seed": seed, "variant": name, **kept})
    return found


def _jct(rows: Sequence[Row], model: str, batch: int, variant: str, key: str) -> list[float]:
    cell = picked(rows, model=model, batch=batch, variant=variant)
    return [row[key] for row in cell if row[key] is not None]


def change(rows: Sequence[Row], model: str, batch: int, key: str) -> float:
    """Return that of the mean completion time, against the random baseline; nan where no job of one of the two was
    completed."""
    ours, theirs = (_jct(rows, model, batch, variant, key) for variant in ("kod2", "random"))
    return fmean(ours) / fmean(theirs) - 1.0 if ours and theirs else nan


def fig7_comparisons(tables: Tables) -> list[Comparison]:
    """Fig. 7(b) at batch 128; the largest reduction there; in how many cells it is faster; every bar."""
    rows = tables["rows"]
    found = list(fig7_curve(tables))
    for key, jobs in (("jct_s", "completed jobs"), ("jct_all_s", "all jobs")):
        changes = {cell: change(rows, *cell, key) for cell in cells()}
        best = min(value for (_, batch), value in changes.items() if batch == PANEL_B_BATCH)
        faster = sum(all(changes[model, batch] < 0 for batch in BATCHES) for model in MODELS)
        mean = sum(fmean(changes[model, batch] for batch in BATCHES) < 0 for model in MODELS)
        found += [
            Comparison(f"largest change of the mean JCT of all models at batch 128, {jobs}", best),
            Comparison(f"all models faster ({jobs}): models faster at every batch", float(faster), paper=4.0),
            Comparison(f"all models faster ({jobs}): models faster on average", float(mean), paper=4.0),
        ]
    bars = [
        compared(f"mean JCT, s: {model}, batch {batch}, {label}, all jobs", _jct(rows, model, batch, v, "jct_all_s"))
        for model, batch in cells()
        for v, label in SHOWN.items()
    ]
    return [*found, *bars]


def fig7_curve(tables: Tables) -> list[Comparison]:
    """Return the paper's -84 % beside the same model at the same batch; and the share of cells in which KOD2 is
    faster."""
    rows = tables["rows"]
    found = []
    for key, jobs, paper in (("jct_s", "completed jobs", -0.84), ("jct_all_s", "all jobs", None)):
        changes = {cell: change(rows, *cell, key) for cell in cells()}
        there = changes[PANEL_B, PANEL_B_BATCH]
        found += [
            Comparison(
                f"change of the mean JCT, {PANEL_B}, batch {PANEL_B_BATCH}, {jobs}",
                None if isnan(there) else there,
                paper=paper,
            ),
            Comparison(f"share of cells in which KOD2 is faster, {jobs}", fmean(v < 0 for v in changes.values())),
        ]
    return found


def fig7_figures(tables: Tables) -> list[Figure]:
    """Return a panel a batch size, bars by model: completed jobs, and all."""
    found = []
    for key, name in (("jct_s", "completed"), ("jct_all_s", "all")):
        panels = []
        for batch in BATCHES:
            series = []
            for variant, label in SHOWN.items():
                values = [_jct(tables["rows"], model, batch, variant, key) for model in MODELS]
                means = tuple(fmean(each) if each else 0.0 for each in values)
                series.append(Series(label, means, tuple(half_width(v) if len(v) > 1 else 0.0 for v in values)))
            panels.append(Panel(f"batch {batch}", tuple(series), places=tuple(MODELS)))
        found.append(Figure(f"kod2-fig7-{name}", "bars", f"mean JCT of {name} jobs, s", tuple(panels)))
    return found


FIG7_NOTES = (
    "Ten jobs a cell, one every 30 s. Completed jobs: a baseline's job that hangs counts for nothing; all jobs: it "
    "counts with the time until it was ended.",
    "The paper's -84 % is of Fig. 7(b), the second model, at batch 128.",
    ASSUMED,
    "{rows} seeds.",
)

FIG7_AXES = (
    Axis("core", "GFLOP/s of a core", Assumptions().core_gflops, CORES_GFLOPS, 1.0, 10_000.0, logarithmic=True),
    Axis("deadline", "seconds after which a job that hangs is ended", Assumptions().deadline_s, DEADLINES_S, 60.0, 1e6),
)


def _fig7(base: Assumptions, values: Mapping[str, float]) -> Experiment:
    """Return the experiment under these assumptions."""
    given = replace(
        base,
        core_gflops=values.get("core", base.core_gflops),
        deadline_s=values.get("deadline", base.deadline_s),
    )
    return Experiment(
        name="kod2-fig7",
        summary="mean completion time of 20 cells: KOD2 against tf-operator with two baselines",
        parts=(
            ExperimentPart("rows", "every cell", 30, partial(fig7_tasks, given), run_cell, partial(fig7_rows, given)),
        ),
        title="Fig. 7: average job completion time",
        notes=(
            FIG7_NOTES[0],
            f"A core computes {given.core_gflops:g} GFLOP/s; a job that hangs is ended after {given.deadline_s:g} s "
            "(assumed).",
            *FIG7_NOTES[1:],
        ),
        figures=fig7_figures,
        comparisons=fig7_comparisons,
        axes=FIG7_AXES,
        at=partial(_fig7, given),
        curve=fig7_curve,
        curve_label="change, or share of cells",
    )


FIG7 = _fig7(Assumptions(), {})
"""Fig. 7 of the KOD2 paper."""

# Fig. 8 ---------------------------------------------------------------------------------------------------------------

FIG8_BATCH = 64
AROUND = 10
"""Minutes before and after a death over which utilisation is compared."""


def fig8_tasks(seeds: range) -> list[tuple[str, int]]:
    """Return every model with every seed."""
    return [(model, seed) for model in MODELS for seed in seeds]


def fig8_run(task: tuple[str, int]) -> dict[str, Any]:
    """Busy cores by the minute, with KOD2 and with the random baseline, and when jobs of that died."""
    model, seed = task
    ours, theirs = (simulate(model, FIG8_BATCH, seed, VARIANTS[name], Assumptions()) for name in ("kod2", "random"))
    deaths = sorted(life.ended_s for life in theirs.lives.values() if life.dead and life.ended_s is not None)
    span_s = ours.end_s
    busy = sampled(theirs)
    return {
        "model": model,
        "seed": seed,
        "utilisation": ours.utilisation(span_s),
        "baseline": theirs.utilisation(span_s),
        "end_s": ours.end_s,
        "later_s": theirs.end_s - span_s,
        "deaths": len(deaths),
        **_shape(busy, [int(death_s / GRID_S) for death_s in deaths]),
        "busy": sampled(ours),
        "baseline_busy": busy,
    }


def _shape(busy: Sequence[float], deaths: Sequence[int]) -> dict[str, float | None]:
    """Return those of the baseline's curve: its first minutes; before and after the first death that work goes on
    after; the end."""
    start = fmean(busy[:AROUND])
    for death in deaths:
        after = busy[death + 1 : death + 1 + AROUND]
        if after and fmean(after) > 0:
            before = fmean(busy[max(death - AROUND, 0) : death] or [0.0])
            left = busy[death + 1 + AROUND :]
            return {"start": start, "before": before, "after": fmean(after), "then": fmean(left) if left else 0.0}
    return {"start": start, "before": None, "after": None, "then": None}


def fig8_rows(seeds: range, results: Sequence[Row]) -> list[Row]:
    """Return one a run."""
    return list(results)


def fig8_comparisons(tables: Tables) -> list[Comparison]:
    """Return how much more of the cores is busy, and the curve's four marks."""
    rows = tables["rows"]
    more = []
    for model in MODELS:
        cell = picked(rows, model=model)
        gain = fmean(r["utilisation"] for r in cell) / fmean(r["baseline"] for r in cell) - 1.0
        more.append(Comparison(f"change of CPU utilisation: {model}", gain, paper=0.92 if model == "VGG-16" else None))
    dead = [row for row in rows if row["after"] is not None]
    jumps = [float(row["after"] > row["before"]) for row in dead]
    falls = [float(row["then"] < row["after"]) for row in dead]
    start = [row["start"] / max(row["baseline_busy"]) for row in rows if max(row["baseline_busy"])]
    tail = [row["later_s"] / 60.0 for row in rows]
    return [
        *more,
        compared("baseline, low start: first ten minutes over its peak", start),
        Comparison("baseline, runs in which work goes on after a job's death", float(len(dead))),
        compared("baseline, jump: share of these whose utilisation rises after it", jumps, paper=1.0),
        compared("baseline, fall: share of these whose utilisation falls again", falls, paper=1.0),
        compared("baseline, tail: minutes that the whole work ends later", tail, paper=30.0),
    ]


def fig8_figures(tables: Tables) -> list[Figure]:
    """Return a panel a model: the means over the seeds; and one run with a jump, as the paper shows one run each."""
    means, single = [], []
    for model in MODELS:
        cell = picked(tables["rows"], model=model)
        one = next((row for row in cell if row["after"] is not None), cell[0])
        means.append(_panel(model, cell))
        single.append(_panel(f"{model}, seed {one['seed']}", [one]))
    return [
        Figure(name, "lines", "busy cores, %", tuple(panels))
        for name, panels in (("kod2-fig8", single), ("kod2-fig8-means", means))
    ]


def _panel(title: str, rows: Sequence[Row]) -> Panel:
    series = (_curve("KOD2", rows, "busy"), _curve("tf-operator", rows, "baseline_busy"))
    return Panel(title, series, x_label="minutes")


def _curve(label: str, rows: Sequence[Row], key: str) -> Series:
    length = max(len(row[key]) for row in rows)
    return Series(label, tuple(100 * fmean((row[key] + [0.0] * length)[at] for row in rows) for at in range(length)))


FIG8_NOTES = (
    f"Busy cores of 30 at batch {FIG8_BATCH}, over the time that the elastic run takes. The paper's curves of the "
    "baseline start low, jump when a job is ended without completion, fall again, and end half an hour to over an "
    "hour later. {rows} seeds; the first figure shows one run each.",
    ASSUMED,
)

FIG8 = Experiment(
    name="kod2-fig8",
    summary="CPU utilisation over time at batch 64: low start, jump after a death, fall, tail",
    parts=(ExperimentPart("rows", "every model", 15, fig8_tasks, fig8_run, fig8_rows),),
    title="Fig. 8: average CPU utilisation over time",
    notes=FIG8_NOTES,
    figures=fig8_figures,
    comparisons=fig8_comparisons,
)
"""Fig. 8 of the KOD2 paper."""

"""Fig. 8: the mean wait of Workloads 1 to 4 under three settings of the testbed, on the components themselves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Comparison, Experiment, Figure, Panel, Row, ScenarioPart, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.kubecomp.experiment import runs
from mews.systems.kubecomp.experiment.workloads import WORKLOADS

NOTES = (
    "Workloads 1 and 3 are the measured arrivals, replayed; 2 and 4 are drawn from Table II for each seed, the same "
    "for all settings. The pool is the published implementation (`mode: public`). A mean over seeds counts each "
    "outcome of the first job's coin toss between two empty nodes once.",
    "4-4 can never run Workload 4's job E: its mean is over the other 24 jobs, which did not wait behind it.",
    "{runs} seeds each.",
)


def wait_s(rows: Sequence[Row], workload: str, setting: str) -> float:
    """Return the mean wait of a workload in a setting."""
    return fmean(runs.tossed(picked(rows, workload=workload, setting=setting), "mean_wait_s"))


def reductions(rows: Sequence[Row]) -> dict[runs.Cell, float]:
    """Return them by which share pooling shortens the wait of each workload against each fixed split."""
    return {
        (workload, setting): 1.0 - wait_s(rows, workload, "pool") / wait_s(rows, workload, setting)
        for workload, setting in runs.CELLS
        if setting != "pool"
    }


def comparisons(tables: Tables) -> list[Comparison]:
    """Return a row for each bar, then what the paper says of them."""
    rows = tables["runs"]
    found = []
    for workload, setting in runs.CELLS:
        cell = picked(rows, workload=workload, setting=setting)
        measured = next((row["measured_wait_s"] for row in cell), None)
        each = compared("", [row["mean_wait_s"] for row in cell])
        name = f"mean wait, s: {workload}, {setting}"
        ours = wait_s(rows, workload, setting)
        found.append(Comparison(name, ours, None, measured, each.low, each.high))
    less = reductions(rows)
    pool = wait_s(rows, "W4", "pool")
    return [
        *found,
        Comparison("largest reduction of the wait by pooling", max(less.values()), paper=0.89),
        Comparison("W4: how much longer the wait is with 0-8", wait_s(rows, "W4", "0-8") / pool - 1.0, paper=0.25),
        Comparison("W4: jobs that 4-4 cannot run, of 25", float(WORKLOADS["W4"]["E"]), paper=1.0),
        *(Comparison(f"{w}: wait with {s} over that of the pool", 1.0 / (1.0 - less[w, s])) for w, s in less),
    ]


def figures(tables: Tables) -> list[Figure]:
    """Bars by workload, as in the paper."""
    rows = tables["runs"]
    series = []
    for setting in runs.SETTINGS:
        cells = [[r["mean_wait_s"] for r in picked(rows, workload=w, setting=setting)] for w in WORKLOADS]
        spread = tuple(half_width(values) if len(values) > 1 else 0.0 for values in cells)
        series.append(Series(setting, tuple(wait_s(rows, w, setting) for w in WORKLOADS), spread))
    panel = Panel("mean wait by workload", tuple(series), places=tuple(WORKLOADS))
    return [Figure("kubecomp-fig8", "bars", "mean wait, s", (panel,))]


FIG8 = Experiment(
    name="kubecomp-fig8",
    summary="mean wait of Workloads 1 to 4: pool, even split, all GPUs on one node",
    parts=(
        ScenarioPart("runs", "every workload in every setting", runs.SEEDS, runs.tasks, runs.keep, runs.rows, True),
    ),
    title="Fig. 8: average wait under different settings",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""Fig. 8 of the KubeComp paper."""

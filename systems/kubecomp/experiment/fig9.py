"""Fig. 9: the distribution of GPUs in use under three settings of the testbed, on the components themselves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Comparison, Experiment, Figure, Panel, Row, ScenarioPart, Series, Tables
from mews.systems.kubecomp.experiment import runs
from mews.systems.kubecomp.experiment.workloads import WORKLOADS

GPUS = 8
NOTES = (
    "The share of the time, from the first arrival to the last end, in which at most so many GPUs were held by pods: "
    "the further right, the better they were used. Workloads as in Fig. 8; measured values are of the one run each.",
    "{runs} seeds each.",
)


def cumulative(rows: Sequence[Row]) -> tuple[float, ...]:
    """Share of the time with at most 0, 1, … 8 GPUs in use, the mean over runs."""
    return tuple(fmean(_share(row["gpu_used_cdf"], gpus) for row in rows) for gpus in range(GPUS + 1))


def _share(steps: Sequence[Sequence[float]], gpus: int) -> float:
    return max((share for count, share in steps if count <= gpus), default=0.0)


def comparisons(tables: Tables) -> list[Comparison]:
    """Mean numbers in use, and in how many workloads the pool's is the largest."""
    rows = tables["runs"]
    means = {
        cell: [r["mean_gpus_used"] for r in picked(rows, workload=cell[0], setting=cell[1])] for cell in runs.CELLS
    }
    found = [
        compared(f"mean GPUs in use: {w}, {s}", values, measured=runs.MEASURED.get((w, s), (None, None))[1])
        for (w, s), values in means.items()
    ]
    best = 0
    for workload in WORKLOADS:
        fixed = max(fmean(means[workload, setting]) for setting in ("4-4", "0-8"))
        best += fmean(means[workload, "pool"]) >= 0.98 * fixed
    return [*found, Comparison("workloads in which the pool uses most GPUs (2 % allowed)", float(best), paper=4.0)]


def figures(tables: Tables) -> list[Figure]:
    """Return a panel a workload, as in the paper."""
    rows = tables["runs"]
    panels = [
        Panel(
            workload,
            tuple(Series(s, cumulative(picked(rows, workload=workload, setting=s))) for s in runs.SETTINGS),
            x_label="GPUs in use",
        )
        for workload in WORKLOADS
    ]
    return [Figure("kubecomp-fig9", "steps", "share of the time", tuple(panels))]


FIG9 = Experiment(
    name="kubecomp-fig9",
    summary="distribution of the GPUs in use under Workloads 1 to 4: pool, even split, all GPUs on one node",
    parts=(
        ScenarioPart("runs", "every workload in every setting", runs.SEEDS, runs.tasks, runs.keep, runs.rows, True),
    ),
    title="Fig. 9: distribution of used GPUs",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""Fig. 9 of the KubeComp paper."""

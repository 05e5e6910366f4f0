"""Fig. 10: mean completion times on the testbed's components and on the simulator. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Comparison, Experiment, Figure, Panel, Row, ScenarioPart, Series, Tables
from mews.systems.kubecomp.experiment import runs
from mews.systems.kubecomp.experiment.workloads import WORKLOADS

NOTES = (
    "Completion time: from the planned arrival to the end. Machine: the components on the emulated testbed; simulator: "
    "the same jobs, first come first served, placed as soon as something frees, with what starting a pod and a "
    "reconfiguration cost on the testbed, each submitted when the one before it runs, as the testbed's driver did. "
    "Beside the median difference stand the smallest and the largest. Workloads as in Fig. 8.",
    "{runs} seeds each.",
)


def of(rows: Sequence[Row], workload: str, setting: str, key: str) -> float:
    """Return a mean over a cell's runs, each outcome of the first toss counted once."""
    return fmean(runs.tossed(picked(rows, workload=workload, setting=setting), key))


def differences(rows: Sequence[Row]) -> dict[runs.Cell, float]:
    """Return them by how much the simulator is off, as a share of the machine's."""
    return {(w, s): of(rows, w, s, "simulated_jct_s") / of(rows, w, s, "mean_jct_s") - 1.0 for w, s in runs.CELLS}


def comparisons(tables: Tables) -> list[Comparison]:
    """Return both bars of each cell, and how far they are apart."""
    rows = tables["runs"]
    found = []
    for w, s in runs.CELLS:
        cell = picked(rows, workload=w, setting=s)
        measured = runs.MEASURED.get((w, s), (None, None))[0]
        found.append(compared(f"mean JCT, s: {w}, {s}, machine", [r["mean_jct_s"] for r in cell], measured=measured))
        found.append(compared(f"mean JCT, s: {w}, {s}, simulator", [r["simulated_jct_s"] for r in cell]))
    name = "machine against simulator: median difference"
    apart = [abs(value) for value in differences(rows).values()]
    near = float(sum(each < 0.05 for each in apart))
    return [
        *found,
        Comparison(name, median(apart), paper=0.05, low=min(apart), high=max(apart)),
        Comparison("cells in which they differ by less than 5 %", near, len(apart)),
    ]


def figures(tables: Tables) -> list[Figure]:
    """Return a panel a workload, both bars by setting."""
    rows = tables["runs"]
    panels = []
    for workload in WORKLOADS:
        series = tuple(
            Series(label, tuple(of(rows, workload, setting, key) for setting in runs.SETTINGS))
            for label, key in (("machine", "mean_jct_s"), ("simulator", "simulated_jct_s"))
        )
        panels.append(Panel(workload, series, places=runs.SETTINGS))
    return [Figure("kubecomp-fig10", "bars", "mean completion time, s", tuple(panels))]


FIG10 = Experiment(
    name="kubecomp-fig10",
    summary="mean completion time of Workloads 1 to 4: the components against the simulator",
    parts=(
        ScenarioPart("runs", "every workload in every setting", runs.SEEDS, runs.tasks, runs.keep, runs.rows, True),
    ),
    title="Fig. 10: average completion time on machine and simulator",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""Fig. 10 of the KubeComp paper."""

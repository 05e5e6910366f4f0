"""What KubeComp's components cost the processor, each 30 s, in wall-clock time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import (
    Comparison,
    Experiment,
    Figure,
    Panel,
    PlayedScenario,
    Row,
    ScenarioPart,
    ScenarioTask,
    Series,
    Tables,
)
from mews.systems.kubecomp.experiment.workloads import types

EVERY_S = 30.0
"""As the paper's Prometheus did."""

PAPER: Mapping[str, float] = {"device-manager": 1.7e-3, "reconfig-manager": 9e-4, "scheduler": 1.4e-2}
"""Component -> the share of one CPU that the paper found it stay below."""

JOBS = ("E", "C", "D", "A", "B", "D")
JOB_S, APART_S = 20, 50
"""Six jobs within five minutes: the first asks for all eight GPUs, of which each node has four."""


def document() -> dict[str, Any]:
    """Return the scenario: the testbed under a short workload."""
    jobs = [
        {"job": f"{kind.lower()}{number}", "type": kind, "arrival": number * APART_S}
        for number, kind in enumerate(JOBS)
    ]
    return {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": "overhead"},
        "hardware": "testbed",
        "stack": {"kubecomp": {}},
        "bounds": {"scheduled_s": None},
        "timeout": "9m",
        "workload": {"types": types(), "duration": JOB_S, "jobs": jobs},
        "steps": [{"wait": {"settled": {}}, "timeout": "3m"}, {"workload": "run"}],
    }


def tasks(seeds: range) -> list[ScenarioTask]:
    """Return one run a seed."""
    return [ScenarioTask(document(), seed, about={"seed": seed}, cpu_every_s=EVERY_S) for seed in seeds]


def keep(task: ScenarioTask, played: PlayedScenario) -> list[dict[str, Any]]:
    """Return every interval of every component; those of one kind on several nodes each by itself."""
    found = []
    for name, shares in sorted(played.cpu.items()):
        kind = name.partition("/")[0]
        for number, share in enumerate(shares):
            row = {**task.about, "component": kind, "instance": name, "interval": number, "cpu": share}
            found.append({**row, "moved_gpus": played.metrics.get("moved_gpus")})
    return [row for row in found if row["component"] in PAPER]


def rows(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return one an interval and instance."""
    return [row for result in results for row in result]


def comparisons(tables: Tables) -> list[Comparison]:
    """Mean and largest share of each component."""
    table = tables["intervals"]
    found = []
    for component, below in PAPER.items():
        values = [row["cpu"] for row in picked(table, component=component)]
        found.append(compared(f"CPUs, mean of {EVERY_S:.0f} s: {component}", values, paper=below))
        found.append(Comparison(f"CPUs, most in {EVERY_S:.0f} s: {component}", max(values, default=None), paper=below))
    return found


def figures(tables: Tables) -> list[Figure]:
    """Shares over time."""
    table = tables["intervals"]
    instances = dict.fromkeys(row["instance"] for row in picked(table, seed=1))
    series = []
    for name in instances:
        of_one = picked(table, instance=name, seed=1)
        at = tuple(EVERY_S * row["interval"] for row in of_one)
        series.append(Series(name, tuple(row["cpu"] for row in of_one), at=at))
    panel = Panel(f"each {EVERY_S:.0f} s", tuple(series), x_label="seconds")
    return [Figure("kubecomp-overhead", "lines", "CPUs", (panel,))]


def found(tables: Tables, seeds: Mapping[str, int]) -> tuple[str, ...]:
    """Return what was run, and for what its CPU time stands."""
    table = tables["intervals"]
    moved = max((row["moved_gpus"] or 0 for row in table), default=0)
    return (
        "Wall-clock time: the corrected components on the emulated testbed, six jobs within five minutes, for which "
        f"{moved} GPUs were moved. CPU time is measured on the loop that all of them run on in one process; what they "
        "hand to threads is not in it. The paper's are upper bounds for programs in Go.",
    )


OVERHEAD = Experiment(
    name="kubecomp-overhead",
    summary="CPU use of each component, each 30 s of wall-clock time (takes six minutes)",
    parts=(ScenarioPart("intervals", "a short workload on the testbed", 1, tasks, keep, rows),),
    title="Overhead: CPU use of the components",
    found=found,
    figures=figures,
    comparisons=comparisons,
)
"""Section VI-D of the KubeComp paper."""

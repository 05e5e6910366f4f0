"""Table III: how the duration of each phase of a reconfiguration hangs on the number of GPUs that it moves. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation, fmean
from typing import Any

from mews.kube.system.comparing import compared
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
from mews.systems.kubecomp.metrics import Phase
from mews.systems.kubecomp.results import detection_seconds

GPUS = 8
"""As many as the testbed has: a pod that asks for m of them, on the node that has none, has m moved."""

TOTAL = "total"
PAPER_R: Mapping[str, float] = {
    Phase.NODE_SELECTION: 0.0021,
    Phase.AVAILABILITY_UPDATE: 0.0010,
    Phase.ALLOCATION_RETRIEVAL: 0.0357,
    Phase.REALLOCATION: 0.992,
    Phase.DETECTION_BINDING: 0.0815,
    TOTAL: 0.970,
}
"""Table III, in the paper's order."""

MEASURED_S: Mapping[str, float] = {
    Phase.AVAILABILITY_UPDATE: 3.267,
    Phase.ALLOCATION_RETRIEVAL: 3.325,
    Phase.REALLOCATION: 20.885,
}
"""Means of the published timings (73, 74, 72 of them); reallocation: of one GPU, detach and attach."""

INPUTS: Mapping[str, str] = {
    Phase.NODE_SELECTION: "input",
    Phase.AVAILABILITY_UPDATE: "input",
    Phase.ALLOCATION_RETRIEVAL: "input",
    Phase.REALLOCATION: "input by GPU",
    Phase.DETECTION_BINDING: "result",
    TOTAL: "result",
}
"""Which rows of the table say what was put in. The first three durations are drawn whatever m is, from what was
measured (the first: of our own plugin), so that their R is near 0 by construction; a GPU's move is drawn from the
measured ones, so that R of their sum is near 1. What scheduler, kubelet and device manager do then is played."""

NOTES = (
    "Rows that are inputs have durations that were measured: their R repeats what was put in, 0 where a phase is drawn "
    "whatever m is, 1 where one is drawn for each GPU. Detection and binding, and so the total, are results.",
    "One pod a run asks for m = 1 to 8 GPUs on the node that has none, as published (`mode: public`): Reconfig-Mgr "
    "moves them one by one. The paper does not say over which m it took its coefficients. An event that comes again "
    "while the GPUs are under way is served as a reconfiguration of its own: the rows are those that moved something.",
    "Detection and binding: from the chassis' last answer until the pod is bound. Node selection: what it costs by "
    "the machine's clock, played in virtual time.",
)


def document(gpus: int) -> dict[str, Any]:
    """Return the scenario: one pod for that many GPUs on the node without any."""
    container = {
        "name": "main",
        "image": "mews/train",
        "resources": {"limits": {"falcon.com/gpu": str(gpus)}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": "default"},
        "spec": {
            "schedulerName": "kubecomp-scheduler",
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": "host-1"},
            "containers": [container],
        },
    }
    return {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": f"moves-{gpus}"},
        "hardware": "testbed-0-8",
        "stack": {"profile": "testbed", "kubecomp": {"mode": "public"}},
        "timeout": "1h",
        "steps": [
            {"wait": {"settled": {}}},
            {"apply": pod},
            {"wait": {"pod": {"name": "asks", "phase": "Running"}}, "timeout": "30m"},
        ],
    }


def tasks(seeds: range) -> list[ScenarioTask]:
    """Return a run for every number of GPUs and every seed."""
    return [
        ScenarioTask(document(gpus), (seed - 1) * GPUS + gpus, about={"asked": gpus, "seed": seed})
        for gpus in range(1, GPUS + 1)
        for seed in seeds
    ]


def keep(task: ScenarioTask, played: PlayedScenario) -> list[dict[str, Any]]:
    """Return the reconfigurations of a run; the one that the pod was bound after also has the last phase, and the
    total.

    Raises ValueError for a run that ended otherwise than with the pod running or waiting for good.
    """
    if played.verdict not in ("passed", "failed"):
        raise ValueError(f"{task.about}: {played.verdict}: {played.reason}")
    found = []
    detected = detection_seconds(played.lines)
    entries = played.metrics["reconfiguration_phases"]
    for number, entry in enumerate(entries):
        row = {**task.about, "moved_gpus": entry["moved_gpus"], "bound": bool(detected)}
        row |= {phase: entry.get(phase) for phase in PAPER_R if phase != TOTAL}
        if number == len(entries) - 1:
            row[Phase.DETECTION_BINDING] = detected.get(f"pod/{entry['pod']}")
        parts = [row[phase] for phase in PAPER_R if phase != TOTAL]
        row[TOTAL] = None if None in parts else sum(parts)
        found.append({str(key): value for key, value in row.items()})
    return found


def rows(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return one a reconfiguration."""
    return [row for result in results for row in result]


def r_of(table: Sequence[Row], phase: str) -> float | None:
    """Pearson's coefficient of a phase's duration and the GPUs moved; None where one of them does not vary."""
    pairs = [(row["moved_gpus"], row[phase]) for row in table if row[phase] is not None]
    try:
        return correlation([moved for moved, _ in pairs], [duration_s for _, duration_s in pairs])
    except StatisticsError:
        return None


def comparisons(tables: Tables) -> list[Comparison]:
    """Return the six coefficients, and the levels of the phases."""
    table = tables["reconfigurations"]
    found = [
        Comparison(f"R, {phase} ({INPUTS[phase]})", r_of(table, phase), paper=paper) for phase, paper in PAPER_R.items()
    ]
    for phase in PAPER_R:
        values = [row[phase] for row in table if row[phase] is not None]
        if phase == Phase.REALLOCATION:
            values = [row[phase] / row["moved_gpus"] for row in table]
        each = " a GPU" if phase == Phase.REALLOCATION else ""
        found.append(compared(f"seconds{each}, {phase}", values, measured=MEASURED_S.get(phase)))
    return found


def figures(tables: Tables) -> list[Figure]:
    """Return every phase's durations by the number of GPUs moved."""
    table = tables["reconfigurations"]
    panels = []
    for phase in PAPER_R:
        there = [row for row in table if row[phase] is not None]
        series = Series(phase, tuple(row[phase] for row in there), at=tuple(float(row["moved_gpus"]) for row in there))
        panels.append(Panel(phase.replace("_", " "), (series,), x_label="GPUs moved"))
    return [Figure("kubecomp-table3", "points", "seconds", tuple(panels), same_scale=False)]


def found(tables: Tables, seeds: Mapping[str, int]) -> tuple[str, ...]:
    """Return how many reconfigurations there were, and what became of pods that were never bound."""
    table = tables["reconfigurations"]
    moved = fmean(row["moved_gpus"] for row in table) if table else 0.0
    played = seeds["reconfigurations"]
    about = f"{len(table)} reconfigurations over {played} seeds, {moved:.1f} GPUs each on average."
    never = {(row["asked"], row["seed"]) for row in table if not row["bound"]}
    if never:
        about += (
            f" {len(never)} of the {played * GPUS} pods were never bound: an attach whose connection is cut is not "
            "tried again, and leaves its GPU on no host."
        )
    return (about,)


TABLE3 = Experiment(
    name="kubecomp-table3",
    summary="the duration of each phase of a reconfiguration against the GPUs that it moves",
    parts=(ScenarioPart("reconfigurations", "m GPUs to the node without", 100, tasks, keep, rows, may_fail=True),),
    title="Table III: phases against GPUs moved",
    notes=NOTES,
    found=found,
    figures=figures,
    comparisons=comparisons,
)
"""Table III of the KubeComp paper."""

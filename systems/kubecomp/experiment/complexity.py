"""How the phases of a reconfiguration grow: computing time with the nodes n, emulated time with GPUs moved m. Pure.

Section V-B of the paper: O(n) for node selection and the update of GPU availability, O(1) for retrieval, O(n) + O(m)
for reallocation, bounded detection and binding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, linear_regression
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
    TimedPart,
)
from mews.systems.kubecomp import policy
from mews.systems.kubecomp.experiment import table3
from mews.systems.kubecomp.metrics import Phase
from mews.systems.kubecomp.policy import Claim, Gpu, NodeHoldings

NODES = (10, 30, 100, 300, 1000, 3000)
GPUS_PER_NODE = 4
SELECTION, UPDATE, SCORING = "node selection", "GPU availability update", "scoring of the candidates"
TIMED = (SELECTION, UPDATE, SCORING)

TimedTask = tuple[str, int]


def timed_tasks(seeds: range) -> list[TimedTask]:
    """Return a row for each decision at each number of nodes."""
    return [(decision, nodes) for decision in TIMED for nodes in NODES]


def prepare(task: TimedTask) -> Callable[[], object]:
    """Return the decision, over that many nodes of one pool with four GPUs each, of which half are held."""
    decision, count = task
    names = [f"node-{number:04}" for number in range(count)]
    gpus = [Gpu(f"{name}-{slot}", name, "1") for name in names for slot in range(GPUS_PER_NODE)]
    if decision == SELECTION:
        return lambda: _select(names)
    holdings = {name: NodeHoldings({f"{name}-{slot}": f"default/{name}" for slot in (0, 1)}, True) for name in names}
    claims = {name: (Claim(f"default/{name}", name, 2, True),) for name in names}
    if decision == UPDATE:
        return lambda: policy.candidates(gpus, names[0], holdings=holdings, claims=claims)
    found = policy.candidates(gpus, names[0], holdings=holdings, claims=claims)
    return lambda: policy.plan(found, 1)


def _select(names: Sequence[str]) -> dict[str, int]:
    """PreFilter's sum, Filter, equation 1 and its normalisation over nodes of which half their GPUs are asked for."""
    free = policy.pool_free(GPUS_PER_NODE * len(names), [2 for _ in names])
    assert policy.prefilter_message("asks", 3, {"0": free}) is None, "the pool has enough"
    there = [name for name in names if policy.pool_fits(3, free)]
    return policy.normalise({name: policy.score(3, policy.available(GPUS_PER_NODE, [2])) for name in there})


def timed_rows(seeds: range, results: Sequence[float]) -> list[Row]:
    """Return one a decision and number of nodes."""
    return [
        {"decision": decision, "nodes": nodes, "cpu_s": spent_s}
        for (decision, nodes), spent_s in zip(timed_tasks(seeds), results, strict=True)
    ]


def tasks(seeds: range) -> list[ScenarioTask]:
    """Return one to eight GPUs moved, by the corrected components, which move them in one reconfiguration."""
    found = []
    for task in table3.tasks(seeds):
        changes = {"stack.kubecomp.mode": "corrected"}
        found.append(ScenarioTask(task.scenario, task.seed, changes, task.about))
    return found


def keep(task: ScenarioTask, played: PlayedScenario) -> dict[str, Any]:
    """Emulated seconds by phase."""
    return {**task.about, "moved_gpus": played.metrics["moved_gpus"], **played.metrics["phase_seconds"]}


def rows(seeds: range, results: Sequence[Row]) -> list[Row]:
    """Return one a run."""
    return list(results)


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return the power with which y grows with x, by least squares of their logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    return linear_regression(xs, ys).slope


def _means(table: Sequence[Row], phase: str) -> list[tuple[float, float]]:
    moved = sorted({row["moved_gpus"] for row in table})
    return [(float(m), fmean(row[phase] for row in picked(table, moved_gpus=m))) for m in moved]


def comparisons(tables: Tables) -> list[Comparison]:
    """Exponents beside those of the paper's bounds, and seconds for each GPU more."""
    timed, moved = tables["nodes"], tables["moved"]
    found = []
    for decision in TIMED:
        points = [(float(row["nodes"]), row["cpu_s"]) for row in picked(timed, decision=decision)]
        upper = [point for point in points if point[0] >= 100]
        found.append(Comparison(f"{decision}: exponent of n, from 100 nodes on", exponent(upper or points), paper=1.0))
    found.append(Comparison("reallocation: exponent of m", exponent(_means(moved, Phase.REALLOCATION)), paper=1.0))
    for phase in (Phase.ALLOCATION_RETRIEVAL, Phase.DETECTION_BINDING):
        points = _means(moved, phase)
        slope = linear_regression([m for m, _ in points], [seconds for _, seconds in points]).slope
        found.append(Comparison(f"{phase}: seconds for each GPU more", slope, paper=0.0))
    a_gpu = [row[Phase.REALLOCATION] / row["moved_gpus"] for row in moved]
    return [*found, compared("reallocation: seconds a GPU, corrected", a_gpu)]


def figures(tables: Tables) -> list[Figure]:
    """Computing time against nodes, emulated time against GPUs moved."""
    timed, moved = tables["nodes"], tables["moved"]
    at = tuple(map(float, NODES))
    lines = [Series(d, tuple(1000 * row["cpu_s"] for row in picked(timed, decision=d)), at=at) for d in TIMED]
    phases = []
    for phase in (Phase.ALLOCATION_RETRIEVAL, Phase.REALLOCATION, Phase.DETECTION_BINDING):
        points = _means(moved, phase)
        phases.append(Series(phase, tuple(y for _, y in points), at=tuple(x for x, _ in points)))
    by_nodes = Panel("decisions", tuple(lines), x_label="nodes")
    by_moved = Panel("phases", tuple(phases), x_label="GPUs moved")
    return [
        Figure("kubecomp-complexity-n", "lines", "CPU, ms", (by_nodes,)),
        Figure("kubecomp-complexity-m", "lines", "emulated seconds", (by_moved,)),
    ]


NOTES = (
    "Section V-B: node selection and the update of GPU availability are O(n), retrieval O(1), reallocation O(n) + "
    "O(m), detection and binding bounded. With n, the decisions themselves are timed (CPU seconds of this machine, "
    "four GPUs a node); with m, the corrected components move one to eight GPUs on the testbed, in emulated time.",
    "{moved} seeds.",
)

COMPLEXITY = Experiment(
    name="kubecomp-complexity",
    summary="time of the phases against the number of nodes and of GPUs moved",
    parts=(
        TimedPart("nodes", "each decision at up to 3,000 nodes", 1, timed_tasks, prepare, timed_rows),
        ScenarioPart("moved", "m GPUs to the node without", 5, tasks, keep, rows),
    ),
    title="Complexity: phases against nodes and GPUs moved",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""Section V-B of the KubeComp paper."""

"""Fig. 13: GPUs moved under each policy of equation 1, on the simulator alone. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Axis, Comparison, Experiment, ExperimentPart, Figure, Panel, Row, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.kubecomp.experiment.simulator import MOVE_S, NODE_CPUS, Simulation, nodes_of
from mews.systems.kubecomp.experiment.workloads import GPUS, drawn
from mews.systems.kubecomp.policy import Policy

SEEDS = 50
INTERVALS_S = (30, 60, 120)
POLICIES = (Policy.NONE, Policy.BEST_FIT, Policy.LEAST_DEMAND, Policy.BOTH)
EACH = 10
NODES, GPUS_PER_NODE = 5, 6
AXES = (Axis("move", "seconds to move a GPU", MOVE_S, (0.0, 10.0, MOVE_S, 60.0), 0.0, 3600.0),)

Task = tuple[float, int, int]


def tasks(move_s: float, seeds: range) -> list[Task]:
    """Return every interval with every seed."""
    return [(move_s, interval_s, seed) for interval_s in INTERVALS_S for seed in seeds]


def run(task: Task) -> list[dict[str, Any]]:
    """Return the same jobs under each policy."""
    move_s, interval_s, seed = task
    jobs = drawn(dict.fromkeys(GPUS, EACH), f"fig13/{seed}", interval_s=interval_s)
    found = []
    for policy in POLICIES:
        rng = random.Random(f"fig13/{interval_s}/{seed}/{policy.value}")
        done = Simulation(nodes_of((GPUS_PER_NODE,) * NODES), jobs, True, rng, policy, move_s).run()
        wait_s = fmean(job.wait_s or 0.0 for job in done)
        row = {"interval_s": interval_s, "policy": policy.value, "seed": seed}
        found.append({**row, "moved_gpus": sum(job.moved for job in done), "mean_wait_s": wait_s})
    return found


def flat(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return one row a run."""
    return [row for result in results for row in result]


def _moves(rows: Sequence[Row], interval_s: int, policy: Policy) -> list[float]:
    return [float(row["moved_gpus"]) for row in picked(rows, interval_s=interval_s, policy=policy.value)]


def comparisons(tables: Tables) -> list[Comparison]:
    """Return a row for each bar, and at how many intervals each policy moves fewer than none, and both fewest."""
    rows = tables["rows"]
    means = {(i, p): fmean(_moves(rows, i, p)) for i in INTERVALS_S for p in POLICIES}
    bars = [compared(f"GPUs moved: every {i} s, {p.value}", _moves(rows, i, p)) for i, p in means]
    fewer = [
        Comparison(
            f"intervals at which {policy.value} moves fewer than none",
            float(sum(means[i, policy] < means[i, Policy.NONE] for i in INTERVALS_S)),
            paper=float(len(INTERVALS_S)),
        )
        for policy in POLICIES[1:]
    ]
    fewest = sum(means[i, Policy.BOTH] <= min(means[i, p] for p in POLICIES) for i in INTERVALS_S)
    return [
        *bars,
        *fewer,
        Comparison("intervals at which both move fewest", float(fewest), paper=float(len(INTERVALS_S))),
    ]


def figures(tables: Tables) -> list[Figure]:
    """Bars by interval."""
    rows = tables["rows"]
    series = []
    for policy in POLICIES:
        cells = [_moves(rows, interval_s, policy) for interval_s in INTERVALS_S]
        means = tuple(fmean(values) for values in cells)
        series.append(Series(policy.value, means, tuple(half_width(v) if len(v) > 1 else 0.0 for v in cells)))
    places = tuple(f"{interval_s} s" for interval_s in INTERVALS_S)
    panel = Panel("GPUs moved by interval of jobs", tuple(series), places=places)
    return [Figure("kubecomp-fig13", "bars", "GPUs moved", (panel,))]


def curve(tables: Tables) -> list[Comparison]:
    """GPUs moved under each policy and interval."""
    rows = tables["rows"]
    return [compared(f"{p.value}, every {i} s", _moves(rows, i, p)) for p in POLICIES for i in INTERVALS_S]


def _at(values: Mapping[str, float]) -> Experiment:
    """Return the experiment under these assumptions."""
    move_s = values.get("move", MOVE_S)
    return Experiment(
        name="kubecomp-fig13",
        summary="GPUs moved under each policy of equation 1 and three intervals of jobs",
        parts=(ExperimentPart("rows", "every interval under every policy", SEEDS, partial(tasks, move_s), run, flat),),
        title="Fig. 13: GPUs moved under policies and job intervals",
        notes=(
            "Five nodes with six GPUs each in one pool; 50 jobs, ten of each type, that arrive by chance every 30, 60 "
            "or 120 s on average. The same jobs under each policy.",
            f"A node has {NODE_CPUS} CPUs; a GPU takes {move_s:g} s to move. Means over seeds with 95 % intervals.",
            "{rows} seeds.",
        ),
        figures=figures,
        comparisons=comparisons,
        axes=AXES,
        at=_at,
        curve=curve,
        curve_label="GPUs moved",
    )


FIG13 = _at({})
"""Fig. 13 of the KubeComp paper."""

"""Fig. 11: mixes of one-GPU and eight-GPU jobs, on the simulator alone, with both costs of a move. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from msgspec import Struct

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Axis, Comparison, Experiment, ExperimentPart, Figure, Panel, Row, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.kubecomp.experiment.simulator import MOVE_S, NODE_CPUS, Simulation, nodes_of
from mews.systems.kubecomp.experiment.workloads import INTERVAL_S, drawn

SEEDS = 50
SPLITS: Mapping[str, tuple[int, ...]] = {
    "pool": (6, 6, 6, 6),
    "6-6-6-6": (6, 6, 6, 6),
    "4-4-8-8": (4, 4, 8, 8),
    "8-8-8-0": (8, 8, 8, 0),
}
MIXES: Mapping[str, Mapping[str, int]] = {
    "100 % A": {"A": 50},
    "90 %": {"A": 45, "E": 5},
    "75 %": {"A": 37, "E": 13},
    "50 %": {"A": 25, "E": 25},
    "25 %": {"A": 12, "E": 38},
    "100 % E": {"E": 50},
}
"""Of 50 jobs each; the paper gives neither how many nor in which mixes."""
ALLOWED = 1.02
"""A wait that is so many times the least counts as the least."""
AXES = (
    Axis("move", "seconds to move a GPU", MOVE_S, (0.0, 5.0, 10.0, MOVE_S, 40.0), 0.0, 3600.0),
    Axis("interval", "seconds between two jobs", INTERVAL_S, (30.0, 45.0, INTERVAL_S, 90.0, 120.0), 1.0, 3600.0),
)


class Fig11Assumptions(Struct, frozen=True):
    """What a move costs, each cost a set of bars of its own, and how often jobs come, in seconds."""

    moves: tuple[float, ...] = (MOVE_S, 0.0)
    interval: float = INTERVAL_S


Task = tuple[Fig11Assumptions, str, int]


def tasks(assumed: Fig11Assumptions, seeds: range) -> list[Task]:
    """Return every mix with every seed."""
    return [(assumed, mix, seed) for mix in MIXES for seed in seeds]


def run(task: Task) -> list[dict[str, Any]]:
    """Return all settings with the same jobs; a setting whose nodes can never run job E has no wait. The same chance
    decides whatever a move costs."""
    assumed, mix, seed = task
    jobs = drawn(MIXES[mix], f"fig11/{mix}/{seed}", interval_s=assumed.interval)
    found = []
    for move_s in assumed.moves:
        for setting, split in SPLITS.items():
            rng = random.Random(f"fig11/{mix}/{seed}/{setting}")
            done = Simulation(nodes_of(split), jobs, setting == "pool", rng, move_s=move_s).run()
            waits = [job.wait_s for job in done if job.wait_s is not None]
            row = {"mix": mix, "move_s": move_s, "setting": setting, "seed": seed}
            wait_s = fmean(waits) if len(waits) == len(done) else None
            found.append({**row, "mean_wait_s": wait_s, "moved_gpus": sum(job.moved for job in done)})
    return found


def flat(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return one row a run."""
    return [row for result in results for row in result]


def _waits(rows: Sequence[Row], move_s: float, mix: str, setting: str) -> list[float]:
    found = picked(rows, mix=mix, setting=setting, move_s=move_s)
    return [row["mean_wait_s"] for row in found if row["mean_wait_s"] is not None]


def _moves(rows: Sequence[Row]) -> list[float]:
    """Return the costs that were played, in their order."""
    return list(dict.fromkeys(row["move_s"] for row in rows))


def over_best(rows: Sequence[Row], move_s: float, mix: str) -> float:
    """Return the pool's mean wait over the least of the fixed splits that can run the mix; 1 where both wait for
    nothing."""
    fixed = [_waits(rows, move_s, mix, setting) for setting in SPLITS if setting != "pool"]
    least_s, pool_s = min(fmean(waits) for waits in fixed if waits), fmean(_waits(rows, move_s, mix, "pool"))
    return pool_s / least_s if least_s else 1.0 if not pool_s else float("inf")


def comparisons(tables: Tables) -> list[Comparison]:
    """Return how often the pool waits least, for each cost of a move, and each bar."""
    rows = tables["rows"]
    first = [
        Comparison(
            f"mixes in which the pool waits least (2 % allowed), {move_s:g} s a move",
            float(sum(over_best(rows, move_s, mix) <= ALLOWED for mix in MIXES)),
            paper=float(len(MIXES)),
        )
        for move_s in _moves(rows)
    ]
    bars = [
        compared(f"mean wait, s: {mix}, {setting}, {move_s:g} s a move", _waits(rows, move_s, mix, setting))
        for move_s in _moves(rows)
        for mix in MIXES
        for setting in SPLITS
    ]
    return [*first, *bars]


def curve(tables: Tables) -> list[Comparison]:
    """Return them for each mix the pool's wait over that of the best fixed split, with the first of the costs."""
    rows = tables["rows"]
    return [
        Comparison(f"pool over the best fixed split, {mix}", over_best(rows, _moves(rows)[0], mix)) for mix in MIXES
    ]


def figures(tables: Tables) -> list[Figure]:
    """Bars by mix, a panel for each cost of a move."""
    rows = tables["rows"]
    return [Figure("kubecomp-fig11", "bars", "mean wait, s", tuple(_panel(rows, move_s) for move_s in _moves(rows)))]


def _panel(rows: Sequence[Row], move_s: float) -> Panel:
    series = []
    for setting in SPLITS:
        cells = [_waits(rows, move_s, mix, setting) for mix in MIXES]
        means = tuple(fmean(values) if values else 0.0 for values in cells)
        series.append(Series(setting, means, tuple(half_width(v) if len(v) > 1 else 0.0 for v in cells)))
    return Panel(f"mix of A and E, {move_s:g} s a move", tuple(series), places=tuple(MIXES))


def _at(base: Fig11Assumptions, values: Mapping[str, float]) -> Experiment:
    """Return the experiment under these assumptions."""
    assumed = Fig11Assumptions(
        (values["move"],) if "move" in values else base.moves,
        values.get("interval", base.interval),
    )
    costs = " and ".join(f"{move_s:g}" for move_s in assumed.moves)
    return Experiment(
        name="kubecomp-fig11",
        summary="mean wait under mixes of one-GPU and eight-GPU jobs: pool against fixed splits",
        parts=(ExperimentPart("rows", "every mix in every setting", SEEDS, partial(tasks, assumed), run, flat),),
        title="Fig. 11: average wait under mixes of jobs A and E",
        notes=(
            f"Four nodes, a pool of 24 GPUs; 50 jobs of types A and E, one every {assumed.interval:g} s on average "
            "(assumed). 6-6-6-6 can never run job E: it has no bar where there is one.",
            f"A node has {NODE_CPUS} CPUs. A GPU takes {costs} s to move: {MOVE_S:g} s were measured, and the paper "
            "does not say whether its simulator counts them. Means over seeds with 95 % intervals.",
            "{rows} seeds.",
        ),
        figures=figures,
        comparisons=comparisons,
        axes=AXES,
        at=partial(_at, assumed),
        curve=curve,
        curve_label="pool's wait over the best fixed split's",
    )


FIG11 = _at(Fig11Assumptions(), {})
"""Fig. 11 of the KubeComp paper."""

"""``mews experiment attach-before-bind``: three ways to hand a GPU over to the node that it was attached to. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, overload

from msgspec import to_builtins

from mews.kube.system.comparing import picked
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
from mews.kube.system.statistics import interval
from mews.systems.pooldra.experiment.measures import measured
from mews.systems.pooldra.experiment.report import report
from mews.systems.pooldra.experiment.world import COUNTED_POD, HAND_OVERS, LOADS, scenario

SEEDS = 400
_RESAMPLES = 200
_Run = Mapping[str, Any]
Cell = tuple[str, float, str]
"""Hand-over, load, and whether there are faults: ``off`` or ``on``."""

CELLS: tuple[Cell, ...] = tuple((way, load, faults) for faults in ("off", "on") for load in LOADS for way in HAND_OVERS)


def tasks(seeds: range) -> Sequence[ScenarioTask]:
    """Return every cell with every seed: the three ways get the same pods and the same faults."""
    return _Worlds(seeds)


class _Worlds(Sequence[ScenarioTask]):
    """All cells of the first seed, then of the next: what has run by some time is as much of each cell. A world is made
    when it is asked for, since ten thousand of them fill the memory."""

    def __init__(self, seeds: range) -> None:
        self._seeds = seeds

    def __len__(self) -> int:
        return len(self._seeds) * len(CELLS)

    @overload
    def __getitem__(self, number: int) -> ScenarioTask: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[ScenarioTask]: ...

    def __getitem__(self, number: int | slice) -> ScenarioTask | Sequence[ScenarioTask]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        round_, cell = divmod(range(len(self))[number], len(CELLS))
        way, load, faults = CELLS[cell]
        seed = self._seeds[round_]
        about = {"hand_over": way, "load": load, "faults": faults, "seed": seed}
        return ScenarioTask(scenario(way, load, with_faults=faults == "on", seed=seed), seed, about=about)


def keep(task: ScenarioTask, played: PlayedScenario) -> dict[str, Any]:
    """Return the measures of a run."""
    found: dict[str, Any] = to_builtins(measured(played.lines, f"{COUNTED_POD}-"))
    return {**task.about, "verdict": played.verdict, "reason": played.reason, **found}


def rows(seeds: range, results: Sequence[_Run]) -> list[Row]:
    """Return one a cell. Each rate with its 95 % interval over the runs; a quantile's is that of redrawn runs."""
    found: list[Row] = []
    for way, load, faults in CELLS:
        runs = picked(results, hand_over=way, load=load, faults=faults)
        found.append({"hand_over": way, "load": load, "faults": faults, **_cell(runs)})
    return found


def _cell(runs: Sequence[_Run]) -> dict[str, Any]:
    pods, moves = sum(run["pods"] for run in runs), sum(run["moves"] for run in runs)
    return {
        "runs": len(runs),
        "failed": sum(run["verdict"] != "passed" for run in runs),
        "pods": pods,
        "lost": sum(run["lost"] for run in runs),
        **_interval("lost_per_1000_pods", [1000 * run["lost"] / max(run["pods"], 1) for run in runs]),
        "doubled": sum(run["doubled"] for run in runs),
        "violations": sum(run["violations"] for run in runs),
        **_interval("in_vain_per_1000_moves", [1000 * run["in_vain"] / max(run["moves"], 1) for run in runs]),
        **_interval("moves_per_pod", [run["moves"] / max(run["pods"], 1) for run in runs]),
        **_quantile("wait_p50_s", runs, 0.5),
        **_quantile("wait_p99_s", runs, 0.99),
        "moves": moves,
    }


def _interval(name: str, values: Sequence[float]) -> dict[str, float]:
    if len(values) < 2:
        return {name: values[0] if values else 0.0}
    mean, low, high = interval(values)
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that so many are at most."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def _quantile(name: str, runs: Sequence[_Run], share: float) -> dict[str, float]:
    """Runs are redrawn whole, since the pods of one wait for each other."""
    waits = [run["waits_s"] for run in runs]
    rng = random.Random(f"attach-before-bind/{name}")
    drawn = sorted(quantile(list(chain(*rng.choices(waits, k=len(waits)))), share) for _ in range(_RESAMPLES) if waits)
    found = {name: quantile(list(chain(*waits)), share)}
    if len(runs) > 1:
        found |= {f"{name}_low": quantile(drawn, 0.025), f"{name}_high": quantile(drawn, 0.975)}
    return found


_SHOWN: Mapping[str, str] = {
    "lost_per_1000_pods": "claims that lost their GPU, per 1000 pods",
    "in_vain_per_1000_moves": "GPUs moved in vain, per 1000 moves",
    "moves_per_pod": "moves per pod",
    "wait_p50_s": "median from creation to running, s",
    "wait_p99_s": "99th percentile from creation to running, s",
}


def comparisons(tables: Tables) -> list[Comparison]:
    """Return a row for each measure of each cell."""
    found = []
    for row in tables["cells"]:
        where = f"{row['hand_over']}, load {row['load']:g}, faults {row['faults']}"
        for key, words in _SHOWN.items():
            name = f"{words}: {where}"
            found.append(Comparison(name, row[key], low=row.get(f"{key}_low"), high=row.get(f"{key}_high")))
        found.append(Comparison(f"GPUs given twice: {where}", float(row["doubled"])))
    return found


def figures(tables: Tables) -> list[Figure]:
    """Return a figure a measure: panels without and with faults, a line for each way."""
    table = tables["cells"]
    found = []
    for key, words in _SHOWN.items():
        panels = []
        for faults in ("off", "on"):
            series = [_series(picked(table, hand_over=way, faults=faults), way, key) for way in HAND_OVERS]
            panels.append(Panel(f"faults {faults}", tuple(series), x_label="load"))
        found.append(Figure(f"attach-before-bind-{key.replace('_', '-')}", "lines", words, tuple(panels)))
    return found


def _series(cells: Sequence[Row], way: str, key: str) -> Series:
    spread = tuple((row.get(f"{key}_high", row[key]) - row.get(f"{key}_low", row[key])) / 2 for row in cells)
    return Series(way, tuple(row[key] for row in cells), spread, tuple(row["load"] for row in cells))


ATTACH_BEFORE_BIND = Experiment(
    name="attach-before-bind",
    summary="three ways to hand a GPU over to the node it was attached to: waits, lost claims, moves in vain",
    parts=(ScenarioPart("cells", "every way, load and setting of faults", SEEDS, tasks, keep, rows, True),),
    title="Attach before bind: what becomes of the claim after the attach",
    own_report=report,
    figures=figures,
    comparisons=comparisons,
)
"""The experiment on binding conditions (KEP-5007)."""

"""Pods that are refused: by the sum of a node's memory, and by each of its devices. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Comparison, Experiment, ExperimentPart, Figure, Panel, Row, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.gpushare.policy import SharedGpu, best_fit

GPUS, GIB = 4, 15
PODS = 200
SIZES = (2, 3, 4, 5, 6, 8, 10)
LIFE_S, INTERVAL_S = 600.0, 60.0
"""Ten pods at once on average, of 5.4 GiB: nine tenths of the node's 60."""

Choose = Callable[[int, Sequence[SharedGpu], Mapping[str, int]], SharedGpu | None]


def _emptiest(request: int, gpus: Sequence[SharedGpu], free: Mapping[str, int]) -> SharedGpu | None:
    found = max(gpus, key=lambda gpu: (free[gpu.uuid], -gpu.index))
    return found if free[found.uuid] >= request else None


WAYS: Mapping[str, tuple[bool, Choose]] = {
    "sum": (True, best_fit),
    "per device, best fit": (False, best_fit),
    "per device, emptiest": (False, _emptiest),
}
"""Whether a pod goes to the node because its sum is enough, and which GPU it gets there."""

OUTCOMES = {
    "placed": "placed on a GPU that can hold it",
    "broken": "sent to the node, and no GPU can hold it",
    "refused": "refused, though the sum is enough",
    "full": "refused, the sum is too small",
}


def tasks(seeds: range) -> list[int]:
    """Return a sequence of pods a seed."""
    return list(seeds)


def run(seed: int) -> list[dict[str, Any]]:
    """Return the same pods in every way: what became of each."""
    return [{"way": way, "seed": seed, **_outcomes(seed, by_sum, choose)} for way, (by_sum, choose) in WAYS.items()]


def _outcomes(seed: int, by_sum: bool, choose: Choose) -> dict[str, int]:
    rng = random.Random(f"binpack/{seed}")
    gpus = [SharedGpu(index, f"GPU-{index}", GIB) for index in range(GPUS)]
    free = {gpu.uuid: gpu.memory for gpu in gpus}
    living: list[tuple[float, str, int]] = []
    counts, now_s = dict.fromkeys(OUTCOMES, 0), 0.0
    for _ in range(PODS):
        now_s += rng.expovariate(1 / INTERVAL_S)
        size, ends_s = rng.choice(SIZES), now_s + rng.expovariate(1 / LIFE_S)
        for _, uuid, freed in [each for each in living if each[0] <= now_s]:
            free[uuid] += freed
        living = [each for each in living if each[0] > now_s]
        gpu = choose(size, gpus, free)
        if gpu is not None:
            counts["placed"] += 1
            free[gpu.uuid] -= size
            living.append((ends_s, gpu.uuid, size))
        elif sum(free.values()) < size:
            counts["full"] += 1
        else:
            counts["broken" if by_sum else "refused"] += 1
    return counts


def rows(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return one a way and seed."""
    return [row for result in results for row in result]


def _shares(table: Sequence[Row], way: str, outcome: str) -> list[float]:
    return [100.0 * row[outcome] / PODS for row in picked(table, way=way)]


def comparisons(tables: Tables) -> list[Comparison]:
    """Return what became of a hundred pods, each way."""
    table = tables["rows"]
    return [compared(f"{way}: {text}, %", _shares(table, way, key)) for way in WAYS for key, text in OUTCOMES.items()]


def figures(tables: Tables) -> list[Figure]:
    """Return what went wrong, by way."""
    table = tables["rows"]
    series = []
    for outcome in ("broken", "refused"):
        cells = [_shares(table, way, outcome) for way in WAYS]
        spread = tuple(half_width(each) if len(each) > 1 else 0.0 for each in cells)
        series.append(Series(OUTCOMES[outcome], tuple(map(fmean, cells)), spread))
    return [Figure("gpushare-binpack", "bars", "pods, %", (Panel("by way", tuple(series), places=tuple(WAYS)),))]


NOTES = (
    f"A node with {GPUS} GPUs of {GIB} GiB; {PODS} pods of {SIZES[0]} to {SIZES[-1]} GiB come every "
    f"{INTERVAL_S:.0f} s on average and stay {LIFE_S:.0f} s on average; one that is not placed goes away (assumed: "
    "the design gives cases and no numbers).",
    "By sum, as the default scheduler does, a pod goes to the node although none of its GPUs may hold it: it fails "
    "there. Per device, as the extender does, it is refused and can wait; best fit is the extender's own policy. "
    "{rows} seeds.",
)

BINPACK = Experiment(
    name="gpushare-binpack",
    summary="pods refused or broken where a node is judged by its sum, and by each of its devices",
    parts=(ExperimentPart("rows", "every way with the same pods", 50, tasks, run, rows),),
    title="Binpacking: sum against per device",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""Why the extender looks at each device."""

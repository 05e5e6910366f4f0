"""What parts of GPUs are worth: pods that a node takes, and how much of its GPUs is asked for. Pure."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Comparison, Experiment, ExperimentPart, Figure, Panel, Row, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.koordinator.devices import DevicePlace, NodeDeviceReport
from mews.systems.koordinator.experiment.nodes import pcie_only
from mews.systems.koordinator.names import CORE, GPU, RATIO
from mews.systems.koordinator.policy import NoDevices, allocate
from mews.systems.koordinator.requests import ask_of
from mews.systems.koordinator.usage import NodeUse, PodUse

GPUS = 8
SHARES = (10, 20, 30, 50, 70, 100)
"""Hundredths of a GPU that a pod needs, each as likely."""

FEW = 10
"""After so many pods it is asked how many GPUs are still whole."""

WAYS = ("whole", "minor", "leastAllocated", "spread")
METRICS = {
    "placed": "pods placed before the first is refused",
    "asked": "share of the GPUs in use that is needed then, %",
    "whole_left": f"GPUs still whole after {FEW} pods",
}


def tasks(seeds: range) -> list[int]:
    """Return a sequence of pods a seed."""
    return list(seeds)


def run(seed: int) -> list[dict[str, Any]]:
    """Return the same pods in every way, until one does not fit."""
    return [{"way": way, "seed": seed, **_filled(way, seed)} for way in WAYS]


def _filled(way: str, seed: int) -> dict[str, Any]:
    rng = random.Random(f"fraction/{seed}")
    use = NodeUse.of(_without_places(pcie_only(GPUS)) if way == "spread" else pcie_only(GPUS))
    placed, needed, whole_left = 0, 0, 0
    while True:
        share = rng.choice(SHARES)
        amount = 100 if way == "whole" else share
        ask = ask_of({CORE: amount, RATIO: amount}, {})
        assert ask is not None, "it asks for a GPU"
        given = allocate(ask, use, choice="minor" if way == "minor" else "leastAllocated")
        if isinstance(given, NoDevices):
            break
        use = use.plus(PodUse(f"pod-{placed}", f"default/pod-{placed}", given))
        placed, needed = placed + 1, needed + share
        if placed == FEW:
            whole_left = GPUS - _touched(use)
    return {"placed": placed, "asked": needed / max(_touched(use), 1), "whole_left": whole_left}


def _without_places(report: NodeDeviceReport) -> NodeDeviceReport:
    return replace(report, devices=tuple(dataclasses.replace(each, place=DevicePlace()) for each in report.devices))


def _touched(use: NodeUse) -> int:
    return sum(bool(use.users.get((GPU, device.minor))) for device in use.report.of_type(GPU))


def rows(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return one a way and seed."""
    return [row for result in results for row in result]


def _values(table: Sequence[Row], way: str, metric: str) -> list[float]:
    return [float(row[metric]) for row in picked(table, way=way)]


def comparisons(tables: Tables) -> list[Comparison]:
    """Return a row for each metric and each way to share."""
    table = tables["rows"]
    return [compared(f"{way}: {text}", _values(table, way, key)) for key, text in METRICS.items() for way in WAYS]


def figures(tables: Tables) -> list[Figure]:
    """Return a panel a metric."""
    table = tables["rows"]
    panels = []
    for metric, text in METRICS.items():
        cells = [_values(table, way, metric) for way in WAYS]
        spread = tuple(half_width(each) if len(each) > 1 else 0.0 for each in cells)
        panels.append(Panel(text, (Series(metric, tuple(map(fmean, cells)), spread),), places=WAYS))
    return [Figure("koordinator-fraction", "bars", "", tuple(panels), same_scale=False)]


NOTES = (
    f"A node with {GPUS} GPUs; pods that need {', '.join(map(str, SHARES))} hundredths of one, each as likely, "
    "come until one does not fit (assumed: the proposal gives no figures).",
    "whole: each gets a GPU of its own; minor: its part of the first GPU that has it, as the proposal's text; "
    "leastAllocated: as upstream, the default: below a switch that is used already, where the last GPU that fits is "
    "taken; spread: the same where the places of GPUs are not known, the least used GPU, which leaves fewer whole. "
    "{rows} seeds.",
)

FRACTION = Experiment(
    name="koordinator-fraction",
    summary="pods on a node and GPUs left whole: whole GPUs, parts by minor number, as upstream, and of the least used",
    parts=(ExperimentPart("rows", "every way with the same pods", 100, tasks, run, rows),),
    title="Parts of GPUs",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""What parts of GPUs are worth."""

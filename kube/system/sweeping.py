"""An experiment as a function of what its paper leaves out: one point for each value of an axis. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mews.kube.system.experiment import (
    Axis,
    Comparison,
    Experiment,
    ExperimentPart,
    Figure,
    Panel,
    Part,
    Row,
    Series,
    Tables,
)

CURVES = "curves"
"""The part, and the table, that a sweep is."""

Wanted = Mapping[str, Sequence[float]]
"""Axis -> the values at which the experiment is run, all other axes as shipped."""


def with_curves(experiment: Experiment, seeds: int) -> Experiment:
    """Return the experiment, with the shipped curves beside it."""
    wanted = {axis.name: axis.values for axis in experiment.axes}
    own_figures, own_comparisons = experiment.figures or (lambda tables: ()), experiment.comparisons
    return replace(
        experiment,
        parts=(*experiment.parts, _part(experiment, wanted, seeds)),
        figures=lambda tables: [*own_figures(tables), *curve_figures(experiment, tables)],
        comparisons=lambda tables: [*own_comparisons(tables), *_comparisons(tables)],
    )


def swept(experiment: Experiment, wanted: Wanted) -> Experiment:
    """Return the curves alone, each point with as many seeds as the experiment's first part has."""
    return replace(
        experiment,
        parts=(_part(experiment, wanted, experiment.parts[0].seeds),),
        title=f"{experiment.title}, by {', '.join(wanted)}",
        notes=(*experiment.notes[:-1], f"{{{CURVES}}} seeds a point."),
        found=lambda tables, seeds: (),
        own_report=None,
        figures=lambda tables: curve_figures(experiment, tables),
        comparisons=_comparisons,
        files={},
    )


def _called(task: tuple[Callable[[Any], Any], Any]) -> Any:
    run, of = task
    return run(of)


def _part(experiment: Experiment, wanted: Wanted, count: int) -> ExperimentPart:
    """Return every point's tasks as one part, whose rows are the points."""
    assert experiment.at is not None, f"{experiment.name} has axes and no way to set them"
    points = [(axis, value, experiment.at({axis: value})) for axis, values in wanted.items() for value in values]

    def tasks(seeds: range) -> list[tuple[Callable[[Any], Any], Any]]:
        return [(_run_of(part), task) for _, _, at in points for part in at.parts for task in part.tasks(seeds)]

    def rows(seeds: range, results: Sequence[Any]) -> list[Row]:
        found: list[Row] = []
        left = iter(results)
        for axis, value, at in points:
            tables = {p.name: list(p.rows(seeds, [next(left) for _ in p.tasks(seeds)])) for p in at.parts}
            found += [_row(axis, value, each) for each in at.curve(tables)]
        return found

    return ExperimentPart(CURVES, "every point of the curves", count, tasks, _called, rows)


def _run_of(part: Part) -> Callable[[Any], Any]:
    assert isinstance(part, ExperimentPart), f"{part.name}: only what is pure can be swept"
    return part.run


def _row(axis: str, value: float, found: Comparison) -> Row:
    return {
        "axis": axis,
        "value": value,
        "name": found.name,
        "paper": found.paper,
        "ours": found.ours,
        "low": found.low,
        "high": found.high,
    }


def _comparisons(tables: Tables) -> list[Comparison]:
    """Return the points as rows, each next to the paper's number."""
    return [
        Comparison(
            f"{row['axis']}={row['value']:g}: {row['name']}",
            row["ours"],
            paper=row["paper"],
            low=row["low"],
            high=row["high"],
        )
        for row in tables[CURVES]
    ]


def curve_figures(experiment: Experiment, tables: Tables) -> list[Figure]:
    """Return one figure, a panel for each axis that was swept, all on one scale; the paper's value as a band."""
    axes = {axis.name: axis for axis in experiment.axes}
    swept_axes = dict.fromkeys(row["axis"] for row in tables[CURVES])
    panels = tuple(_panel(axes[name], [row for row in tables[CURVES] if row["axis"] == name]) for name in swept_axes)
    return [Figure(f"{experiment.name}-curves", "lines", experiment.curve_label, panels)]


def _panel(axis: Axis, rows: Sequence[Row]) -> Panel:
    there = [row for row in rows if row["ours"] is not None]
    series = []
    for name in dict.fromkeys(row["name"] for row in there):
        line = [row for row in there if row["name"] == name]
        series.append(
            Series(
                name,
                tuple(row["ours"] for row in line),
                tuple(_half(row) for row in line),
                tuple(row["value"] for row in line),
            )
        )
    paper = [row["paper"] for row in rows if row["paper"] is not None]
    band = (min(paper) - BAND, max(paper) + BAND) if paper else None
    return Panel(axis.meaning, tuple(series), x_label=axis.name, band=band, logarithmic=axis.logarithmic)


BAND = 0.05
"""How far from the paper's value its band reaches: "about 30 %" is read off a figure."""


def _half(row: Row) -> float:
    return 0.0 if row["low"] is None else (row["high"] - row["low"]) / 2.0

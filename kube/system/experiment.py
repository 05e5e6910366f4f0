"""An experiment of a system's paper, as data and pure functions: a harness runs its tasks and writes its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Row = Mapping[str, Any]
"""One line of a table: JSON-serialisable values by column."""

Tables = Mapping[str, Sequence[Row]]
"""The rows of every part, by its name."""


@dataclass(frozen=True, slots=True)
class ExperimentPart:
    """One table of an experiment. ``tasks(seeds)`` says what is to be run for the seeds 1 to that number: values that
    can be pickled, since they run in processes of their own. ``run(task)`` is pure: the same result for the same task,
    to be pickled too. ``rows(seeds, results)`` gets the results in the order of the tasks."""

    name: str
    summary: str
    seeds: int
    tasks: Callable[[int], Sequence[Any]]
    run: Callable[[Any], Any]
    rows: Callable[[int, Sequence[Any]], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or the bars of one colour: a height per place."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a figure. ``places`` names the bars' groups; a line's points are at 0, 1, 2, …"""

    title: str
    series: tuple[Series, ...]
    places: tuple[str, ...] = ()
    x_label: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels side by side, written to ``NAME.svg``; ``same_scale``: their heights can be compared."""

    name: str
    kind: Literal["bars", "lines"]
    y_label: str
    panels: tuple[Panel, ...]
    same_scale: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A number beside the paper's. ``paper`` is what the paper says, ``measured`` what was measured elsewhere (None:
    nothing); ``low`` and ``high`` say between which values a rerun may fall."""

    name: str
    ours: float | None
    paper: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """``mews experiment NAME``. ``about`` holds what a reader of the results must know beside the rows; ``report``
    writes the tables as markdown (``seeds`` by part), ``figures`` and
    ``comparisons`` are drawn and listed from them."""

    name: str
    summary: str
    parts: tuple[ExperimentPart, ...]
    report: Callable[[Tables, Mapping[str, int]], str]
    figures: Callable[[Tables], Sequence[Figure]] | None = None
    comparisons: Callable[[Tables], Sequence[Comparison]] = lambda tables: ()
    about: Mapping[str, Any] | None = None

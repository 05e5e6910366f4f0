"""Figures as SVG. Needs matplotlib (extra ``plots``): import it only where figures are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

from mews.kube.system.experiment import Figure, Panel, Series
from mews.own_files import make_own_folder

matplotlib.use("Agg")
from matplotlib import pyplot

_WIDTHS = {"bars": (3.2, 3.2), "lines": (3.4, 3.0), "steps": (3.2, 2.8), "points": (3.0, 2.8)}
"""Inches of a panel, across and down."""
_LEGEND_IN, _LABEL_IN = 0.5, 1.6
"""Inches that a legend takes, and that one of its labels takes across."""


def draw(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write every figure into a folder, which is made; the files."""
    make_own_folder(folder)
    return [_draw(figure, folder / f"{figure.name}.svg") for figure in figures]


def _draw(figure: Figure, path: Path) -> Path:
    drawn = drawn_of(figure)
    drawn.savefig(path, metadata={"Date": None})
    pyplot.close(drawn)
    return path


def drawn_of(figure: Figure) -> Any:
    """Return the figure as matplotlib has it. If there is more than one series to tell apart, a legend is below all
    plots."""
    across, down = _WIDTHS[figure.kind]
    has_legend = max(len(panel.series) for panel in figure.panels) > 1 or any(panel.band for panel in figure.panels)
    size = (across * len(figure.panels), down + (_LEGEND_IN if has_legend else 0.0))
    same_x = figure.kind != "bars" and len({panel.x_label for panel in figure.panels}) == 1
    drawn, (axes,) = pyplot.subplots(
        1,
        len(figure.panels),
        figsize=size,
        sharey=figure.same_scale,
        sharex=figure.same_scale and same_x,
        squeeze=False,
        layout="constrained",
    )
    for axis, panel in zip(axes, figure.panels, strict=True):
        if panel.band is not None:
            axis.axhspan(*panel.band, color="0.85", label="paper")
        _PAINTERS[figure.kind](axis, panel)
    axes[0].set_ylabel(figure.y_label)
    if has_legend:
        shown = {
            label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        columns = max(1, int(size[0] / _LABEL_IN))
        drawn.legend(shown.values(), shown, loc="outside lower center", fontsize=6, ncols=columns)
    return drawn


def _bars(axis: Any, panel: Panel) -> None:
    width = 0.81 / len(panel.series)
    for shift, series in enumerate(panel.series):
        places = [number + width * shift for number in range(len(panel.places))]
        axis.bar(places, series.values, width=width, label=series.label, yerr=series.spread or None, capsize=2)
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.x_label)
    middle = width * (len(panel.series) - 1) / 2
    axis.set_xticks([number + middle for number in range(len(panel.places))], panel.places, rotation=30, fontsize=7)


def _lines(axis: Any, panel: Panel) -> None:
    for series in panel.series:
        axis.errorbar(
            _places(series), series.values, yerr=series.spread or None, label=series.label, linewidth=1, capsize=2
        )
    _name(axis, panel)
    if panel.places:
        axis.set_xticks(range(len(panel.places)), panel.places, rotation=30, fontsize=7)


def _steps(axis: Any, panel: Panel) -> None:
    for series in panel.series:
        axis.step(_places(series), series.values, where="post", label=series.label, linewidth=1)
    _name(axis, panel)


def _points(axis: Any, panel: Panel) -> None:
    for series in panel.series:
        axis.plot(_places(series), series.values, ".", label=series.label, markersize=4)
    _name(axis, panel)


def _places(series: Series) -> Sequence[float]:
    return series.at or range(len(series.values))


def _name(axis: Any, panel: Panel) -> None:
    axis.set_title(panel.title, fontsize=8)
    axis.set_xlabel(panel.x_label)
    if panel.logarithmic:
        axis.set_xscale("log")
        at = sorted({place for series in panel.series for place in series.at})
        axis.set_xticks(at, [f"{place:g}" for place in at], fontsize=6)
        axis.minorticks_off()


_PAINTERS = {"bars": _bars, "lines": _lines, "steps": _steps, "points": _points}

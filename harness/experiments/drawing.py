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


def draw(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write every figure into a folder, which is made; the files."""
    make_own_folder(folder)
    return [_draw(figure, folder / f"{figure.name}.svg") for figure in figures]


def _draw(figure: Figure, path: Path) -> Path:
    across, down = _WIDTHS[figure.kind]
    size = (across * len(figure.panels), down)
    drawn, (axes,) = pyplot.subplots(1, len(figure.panels), figsize=size, sharey=figure.same_scale, squeeze=False)
    for axis, panel in zip(axes, figure.panels, strict=True):
        _PAINTERS[figure.kind](axis, panel)
    axes[0].set_ylabel(figure.y_label)
    axes[0].legend(fontsize=6)
    drawn.tight_layout()
    drawn.savefig(path, metadata={"Date": None})
    pyplot.close(drawn)
    return path


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


_PAINTERS = {"bars": _bars, "lines": _lines, "steps": _steps, "points": _points}

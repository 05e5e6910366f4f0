"""The experiment's figures as data, after Fig. 7 and Fig. 8 of the KOD2 paper. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.system.experiment import Figure, Panel, Row, Series, Tables

_SHOWN = {"kod2": "KOD2", "random": "tf-operator, random", "default": "tf-operator, default"}


def figures(tables: Tables) -> list[Figure]:
    """Completion times by cell, and busy cores over time."""
    return [_completion(tables["rows"]), _utilisation(tables["rows"])]


def _completion(rows: Sequence[Row]) -> Figure:
    models = tuple(dict.fromkeys(str(row["model"]) for row in rows))
    panels = []
    for batch in sorted({row["batch"] for row in rows}):
        heights = {(row["model"], row["variant"]): row["jct_all_s"] or 0.0 for row in rows if row["batch"] == batch}
        series = tuple(
            Series(label, tuple(heights[model, variant] for model in models)) for variant, label in _SHOWN.items()
        )
        panels.append(Panel(f"batch {batch}", series, places=models))
    return Figure("kod2-jct", "bars", "mean completion time, s", tuple(panels))


def _utilisation(rows: Sequence[Row]) -> Figure:
    with_time = [row for row in rows if "busy" in row]
    panels = []
    for model in dict.fromkeys(str(row["model"]) for row in with_time):
        busy = {row["variant"]: row["busy"] for row in with_time if row["model"] == model}
        series = tuple(
            Series(label, tuple(100 * share for share in busy[variant])) for variant, label in _SHOWN.items()
        )
        panels.append(Panel(f"{model}, batch 64", series, x_label="minutes"))
    return Figure("kod2-cpu", "lines", "busy cores of 30, %", tuple(panels))

"""The experiment's plots, after Fig. 7 and Fig. 8 of the KOD2 paper. Needs matplotlib (extra ``plots``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

Rows = Sequence[Mapping[str, Any]]
_SHOWN = {"kod2": "KOD2", "random": "tf-operator, random", "default": "tf-operator, default"}


def plot(rows: Rows, folder: Path) -> None:
    """Write kod2-jct.svg and kod2-cpu.svg into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _completion(rows, folder / "kod2-jct.svg")
    _utilisation(rows, folder / "kod2-cpu.svg")


def _completion(rows: Rows, path: Path) -> None:
    batches = sorted({row["batch"] for row in rows})
    models = list(dict.fromkeys(row["model"] for row in rows))
    figure, (axes,) = pyplot.subplots(1, len(batches), figsize=(3.2 * len(batches), 3.2), squeeze=False)
    for axis, batch in zip(axes, batches, strict=True):
        for shift, (variant, label) in enumerate(_SHOWN.items()):
            found = [next(r for r in rows if (r["model"], r["batch"], r["variant"]) == (model, batch, variant))
                     for model in models]  # fmt: skip
            heights = [row["jct_all_s"] or 0.0 for row in found]
            axis.bar([number + 0.27 * shift for number in range(len(models))], heights, width=0.27, label=label)
        axis.set_title(f"batch {batch}")
        axis.set_xticks([number + 0.27 for number in range(len(models))], models, rotation=30, fontsize=7)
    axes[0].set_ylabel("mean completion time, s")
    axes[0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _utilisation(rows: Rows, path: Path) -> None:
    with_time = [row for row in rows if "busy" in row]
    models = list(dict.fromkeys(row["model"] for row in with_time))
    size = (3.4 * len(models), 3.0)
    figure, (axes,) = pyplot.subplots(1, len(models), figsize=size, sharey=True, squeeze=False)
    for axis, model in zip(axes, models, strict=True):
        for variant, label in _SHOWN.items():
            busy = next(r["busy"] for r in with_time if (r["model"], r["variant"]) == (model, variant))
            axis.plot(range(len(busy)), [100 * share for share in busy], label=label, linewidth=1)
        axis.set_title(f"{model}, batch 64", fontsize=8)
        axis.set_xlabel("minutes")
    axes[0].set_ylabel("busy cores of 30, %")
    axes[0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)

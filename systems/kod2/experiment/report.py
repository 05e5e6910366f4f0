"""The experiment's tables in markdown, beside the paper's figures. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


PANEL_B = "VGG-16"
"""The second of the paper's four models: -84 % is said of Fig. 7(b) at batch 128, +92 % of Fig. 8(b)."""


def markdown(rows: Rows, grid: Rows, speeds: Rows, *, seeds: int) -> str:
    """Return all tables."""
    parts = (
        _completion(rows, seeds),
        _ends(rows, seeds),
        _summary(rows),
        _ablations(rows),
        _starvation(rows),
        _grid(grid),
        _speeds(speeds),
    )
    return "\n".join(parts)


def _pick(rows: Rows, **wanted: Any) -> Mapping[str, Any]:
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


def _s(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _sure(row: Mapping[str, Any], key: str, *, unit_s: float = 1.0, places: int = 0) -> str:
    """Return a mean with half of its 95 % interval."""
    value, half = row[key], row.get(f"{key}_ci")
    if value is None:
        return "–"
    return f"{value / unit_s:.{places}f}" + ("" if half is None else f" ± {half / unit_s:.{places}f}")


def _percent(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{100 * value:+.0f} %"


def _change(ours: float | None, theirs: float | None) -> float:
    return ours / theirs - 1.0 if ours is not None and theirs else math.nan


def _cells(rows: Rows) -> list[tuple[int, str]]:
    return list(dict.fromkeys((row["batch"], row["model"]) for row in rows))


def _completion(rows: Rows, seeds: int) -> str:
    lines = [
        f"Mean completion time per cell, seconds, over {seeds} seeds, ± half of its 95 % interval; completed / all",
        "jobs, dead ones counted with the time until they were ended; in brackets dead jobs per run of ten. Changes",
        "are against the random baseline.",
        "",
        "| batch | model | KOD2 | literal | tf-operator, random | tf-operator, default | change (completed) | (all) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for batch, model in _cells(rows):
        found = {name: _pick(rows, batch=batch, model=model, variant=name) for name in _SHOWN}
        shown = [
            f"{_sure(row, 'jct_s')} / {_sure(row, 'jct_all_s')} ({_sure(row, 'dead', places=1)})"
            for row in found.values()
        ]
        done = _change(found["kod2"]["jct_s"], found["random"]["jct_s"])
        every = _change(found["kod2"]["jct_all_s"], found["random"]["jct_all_s"])
        lines.append(f"| {batch} | {model} | {' | '.join(shown)} | {_percent(done)} | {_percent(every)} |")
    return "\n".join(lines) + "\n"


_SHOWN = ("kod2", "literal", "random", "default")
_MINUTE_S = 60.0


def _ends(rows: Rows, seeds: int) -> str:
    lines = [
        f"The end of the whole work, minutes, over {seeds} seeds: KOD2's, and by how much later the baselines' last",
        "completed job / last job of all ended (a dead one when it was ended), ± half of the 95 % interval. The paper:",
        "half an hour to over an hour later.",
        "",
        "| batch | model | KOD2 | tf-operator, random, later by | tf-operator, default, later by |",
        "|---|---|---|---|---|",
    ]
    for batch, model in _cells(rows):
        end = _sure(_pick(rows, batch=batch, model=model, variant="kod2"), "end_s", unit_s=_MINUTE_S)
        later = [_later(_pick(rows, batch=batch, model=model, variant=name)) for name in ("random", "default")]
        lines.append(f"| {batch} | {model} | {end} | {' | '.join(later)} |")
    return "\n".join(lines) + "\n"


def _later(row: Mapping[str, Any]) -> str:
    return " / ".join(_sure(row, key, unit_s=_MINUTE_S) for key in ("done_later_s", "later_s"))


def _summary(rows: Rows) -> str:
    lines = [
        f"Beside the paper: the change of the mean completion time of {PANEL_B} at batch 128, which is Fig. 7(b), and",
        "of its CPU utilisation at batch 64 over the time that the elastic run takes, Fig. 8(b).",
        "",
        "| | paper | here, random | here, default |",
        "|---|---|---|---|",
    ]
    for name, paper, batch, key in (
        ("completion time, batch 128, completed jobs", "-84 %", 128, "jct_s"),
        ("completion time, batch 128, all jobs", "", 128, "jct_all_s"),
        ("CPU utilisation, batch 64", "+92 %", 64, "utilisation_in_span"),
    ):
        found = " | ".join(
            _percent(model_change(rows, PANEL_B, batch, key, against=against)) for against in ("random", "default")
        )
        lines.append(f"| {PANEL_B}, {name} | {paper} | {found} |")
    return "\n".join(lines) + "\n"


def model_change(rows: Rows, model: str, batch: int, key: str, *, against: str = "random") -> float | None:
    """Return the change of a number of one cell against a baseline; None where one of the two has none."""
    ours, theirs = (_pick(rows, batch=batch, model=model, variant=variant)[key] for variant in ("kod2", against))
    return None if math.isnan(change := _change(ours, theirs)) else change


def _mean(rows: Rows, variant: str, key: str) -> float:
    values = [row[key] for row in rows if row["variant"] == variant and row[key] is not None]
    return sum(values) / len(values) if values else math.nan


def _ablations(rows: Rows) -> str:
    lines = [
        "Ablations: means over all cells.",
        "",
        "| | completion time, s | change | workers added | removed | CPU utilisation |",
        "|---|---|---|---|---|---|",
    ]
    base = _mean(rows, "kod2", "jct_s")
    for name in ("kod2", "no-preemption", "no-scale-out", "no-affinity", "literal"):
        jct = _mean(rows, name, "jct_s")
        lines.append(
            f"| {name} | {jct:.0f} | {_percent(jct / base - 1.0)} | {_mean(rows, name, 'added'):.1f} "
            f"| {_mean(rows, name, 'removed'):.1f} | {100 * _mean(rows, name, 'utilisation'):.0f} % |"
        )
    return "\n".join(lines) + "\n"


def _starvation(rows: Rows) -> str:
    lines = [
        "STARVELIMIT, which the paper does not give (30 s assumed): means over all cells.",
        "",
        "| limit, s | completion time, s | workers removed |",
        "|---|---|---|",
    ]
    names = {"30": "kod2"} | {row["variant"].removeprefix("starve-"): row["variant"] for row in rows
                              if row["variant"].startswith("starve-")}  # fmt: skip
    for limit in sorted(names, key=float):
        jct, removed = _mean(rows, names[limit], "jct_s"), _mean(rows, names[limit], "removed")
        lines.append(f"| {'never' if limit == 'inf' else limit} | {jct:.0f} | {removed:.1f} |")
    return "\n".join(lines) + "\n"


def _grid(grid: Rows) -> str:
    lines = [
        "Sensitivity: how many workers jobs want, and when a job that hangs is ended. Change of the mean completion",
        "time at batch 128 (completed / all jobs) and of CPU utilisation at batch 64, all models, against the random",
        "baseline.",
        "",
        "| workers wanted | ended after, s | completion time | dead of ten | CPU utilisation |",
        "|---|---|---|---|---|",
    ]
    for row in grid:
        times = f"{_percent(-row['reduction'])} / {_percent(-row['reduction_all'])}"
        cpu = _percent(row["utilisation"])
        lines.append(f"| {row['workers']} | {row['deadline_s']:.0f} | {times} | {row['dead']:.1f} | {cpu} |")
    return "\n".join(lines) + "\n"


def _speeds(speeds: Rows) -> str:
    lines = [
        "Sensitivity: how fast a core is, and when a job that hangs is ended. In how many of the 20 cells KOD2 has the",
        f"lower mean completion time, and its change for {PANEL_B} at batch 128, of which the paper says -84 %;",
        "completed / all jobs, against the random baseline.",
        "",
        f"| GFLOP/s a core | ended after, s | cells in which KOD2 is faster | {PANEL_B}, batch 128 |",
        "|---|---|---|---|",
    ]
    for row in speeds:
        cells = f"{row['faster_completed']} / {row['faster_all']}"
        change = f"{_percent(row['change_completed'])} / {_percent(row['change_all'])}"
        lines.append(f"| {row['core_gflops']:g} | {row['deadline_s']:.0f} | {cells} | {change} |")
    return "\n".join(lines) + "\n"

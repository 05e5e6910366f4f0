"""docs/attach-before-bind.md, written from the tables of a run in ``attach_before_bind.json``.

``python -m tests.systems.pooldra.page DIR DIR FILE`` takes new ones from the folders of ``mews experiment
attach-before-bind`` and ``attach-before-bind-schedulers``, and from the output of ``python benchmarks/run.py prebind``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mews.systems.pooldra.experiment.report import report
from mews.systems.pooldra.experiment.schedulers import LOAD, PROGRAMS, SPEED

PAGE = Path(__file__).parents[3] / "docs" / "attach-before-bind.md"
DATA = Path(__file__).with_name("attach_before_bind.json")
_COLUMNS = ("pods", "moves", "lost", "in_vain", "doubled", "p50_s")
_PREBIND = """\
## 1,000 pods in PreBind

1,000 pods ask for one device each of one pool with 8 slices. An attach takes 20 s, and 64 run at a time. Up to
{waiting} pods waited in PreBind simultaneously. Half of the pods were bound after {p50:.0f} s of virtual time, and 99 %
after {p99:.0f} s. This took {cpu:.0f} s of CPU time and {mib:.0f} MiB. On the same API kube-scheduler 1.37 needed
{real50:.0f} s and {real99:.0f} s, with up to {real} pods in PreBind. `python benchmarks/run.py prebind` repeats this.
"""


def page(data: Mapping[str, Any]) -> str:
    """The whole page."""
    cells: str = report({"cells": data["cells"]}, {"cells": data["seeds"]})
    return "\n".join([cells, _schedulers(data["schedulers"]), _prebind(data["prebind"])])


def _schedulers(rows: list[Mapping[str, Any]]) -> str:
    runs = max(row["runs"] for row in rows)
    seeds = f"{runs} seed{'s' * (runs > 1)}"
    heading = ("hand-over", "scheduler", "passed", *(name.replace("_", " ") for name in _COLUMNS))
    lines = [
        "## The same with kube-scheduler",
        "",
        f"`mews experiment attach-before-bind-schedulers` repeats runs at load {LOAD:g} without faults, with the",
        f"included scheduler and with the unmodified kube-scheduler 1.37, with {seeds} each. They run in",
        f"wall-clock time, {SPEED:g} times as fast, as do the drivers. Schedulers look at binding conditions every 5 s",
        "of real time, so waits are longer than above.",
        *_losses(rows),
        *_agreement(rows),
        "",
        f"| {' | '.join(heading)} |",
        f"|{'---|' * len(heading)}",
    ]
    for row in rows:
        values = " | ".join(f"{row[name]:g}" for name in _COLUMNS)
        lines.append(f"| `{row['hand_over']}` | {row['scheduler']} | {row['passed']} of {row['runs']} | {values} |")
    return "\n".join(lines) + "\n"


def _losses(rows: list[Mapping[str, Any]]) -> list[str]:
    """Which ways lose claims, and why runs do not pass."""
    losing = sorted({f"`{row['hand_over']}`" for row in rows if row["lost"]})
    lost = [f"Claims were lost with {', '.join(losing)}." if losing else "No claim was lost."]
    stayed = any(row["passed"] < row["runs"] for row in rows)
    return [*lost, "A run does not pass if GPUs are still on a host 10 minutes after the last pod."] if stayed else lost


def _agreement(rows: list[Mapping[str, Any]]) -> list[str]:
    """Which ways allocate a GPU twice with which scheduler."""
    twice = {
        name: sorted(row["hand_over"] for row in rows if row["scheduler"] == name and row["doubled"])
        for name in PROGRAMS
    }
    if twice[PROGRAMS[0]] != twice[PROGRAMS[1]] or len(twice[PROGRAMS[0]]) != 1:
        return [f"GPUs are allocated twice: {twice}."]
    return [f"Both agree that GPUs are allocated twice with `{twice[PROGRAMS[0]][0]}` only."]


def _prebind(found: Mapping[str, Mapping[str, float]]) -> str:
    value = {name: each["value"] for name, each in found.items()}
    real = {name: each["baseline"] for name, each in found.items()}
    return _PREBIND.format(
        waiting=value["waiting"],
        p50=value["p50_s"],
        p99=value["p99_s"],
        cpu=value["cpu_s"],
        mib=value["memory"],
        real=real["waiting"],
        real50=real["p50_s"],
        real99=real["p99_s"],
    )


def main(cells: Path, schedulers: Path, prebind: Path) -> None:
    """Take the tables from there, and write the page."""
    tables = json.loads((cells / "tables.json").read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in prebind.read_text(encoding="utf-8").splitlines()]
    data = {
        "seeds": tables["seeds"],
        "cells": tables["cells"],
        "schedulers": json.loads((schedulers / "tables.json").read_text(encoding="utf-8"))["runs"],
        "prebind": {
            line["bench"].removeprefix("prebind_"): {"value": line["value"], "baseline": line["baseline"]}
            for line in lines
        },
    }
    DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(data), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

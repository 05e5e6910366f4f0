"""One box judged by the command, as a process of its own, and what its report is worth."""

from __future__ import annotations

import csv
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.emulator.wrongs.registry import WRONGS
from tests.conform_boxes.boxes import PASSWORD, Box, opened

ROOT = Path(__file__).parents[2]
BUDGET_S = 60.0
NOW_AND_THEN = {"half-sometimes": "form"}
"""Wrongs that another clause names, by its word, where the first listing is not struck."""
BAD = ("failed", "warning", "noted", "error")
"""Verdicts of a clause that does not hold."""


class BoxVerdict(Struct, frozen=True):
    """What a run said. ``seconds`` are those of the process, ``judging_s`` those of its report without restoring.
    ``wanted``: the clauses that are to name the planted deviation (none where this way to judge cannot see it);
    ``clauses``: those that were found not to hold, each with its reason; ``left``: devices that are elsewhere now;
    ``told``: whether the run says so; ``report``: whether both reports are there."""

    box: Box
    changes: bool
    code: int
    seconds: float
    judging_s: float
    wanted: tuple[str, ...]
    clauses: Mapping[str, str]
    verdict: str
    left: tuple[str, ...]
    told: bool
    report: bool
    last: str

    @property
    def planted(self) -> bool:
        """Whether there is something to name."""
        return bool(self.wanted) or (self.box.wrong == "asks-credentials")

    @property
    def named(self) -> bool:
        """The planted deviation by exactly one clause, which is that about it; a missing login by its option."""
        if not self.wanted:
            return self.code == 3 and "--credentials" in self.last
        return len(self.clauses) == 1 and set(self.clauses) <= set(self.wanted) and self.code in (0, 1, 4)

    @property
    def false_alarm(self) -> bool:
        """Something is called wrong where nothing is, or nothing that can be seen so."""
        return not self.planted and (bool(self.clauses) or self.verdict == "failed")

    @property
    def late(self) -> bool:
        """Whether it took longer than the budget, by its own report: restoring, and the start of a process on a busy
        machine, are apart."""
        return self.judging_s > BUDGET_S

    @property
    def faults(self) -> list[str]:
        """What this run did wrong, in words."""
        found = []
        if self.planted and not self.named:
            found.append(f"not named by one clause of {' '.join(self.wanted)}")
        if self.false_alarm:
            found.append("false alarm")
        if self.left and not self.told:
            found.append(f"left changed without a word: {' '.join(self.left)}")
        if self.late:
            found.append(f"judged for {self.judging_s:.0f} s")
        if not self.report:
            found.append("no report")
        if self.code not in (0, 1, 3, 4):
            found.append(f"exit code {self.code}: {self.last}")
        return found

    def as_dict(self) -> dict[str, Any]:
        """For a line of JSON."""
        return {
            "box": str(self.box),
            "changes": self.changes,
            "code": self.code,
            "verdict": self.verdict,
            "seconds": round(self.seconds, 1),
            "wanted": list(self.wanted),
            "clauses": dict(self.clauses),
            "left": list(self.left),
            "told": self.told,
            "faults": self.faults,
        }


@functools.cache
def named_by() -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Wrong and dialect -> the clauses that name it, by how it is judged."""
    text = (ROOT / "tests" / "harness" / "conformance" / "named.csv").read_text(encoding="utf-8")
    return {(row["wrong"], row["dialect"]): row for row in csv.DictReader(text.splitlines())}


def judged(box: Box, seed: int, folder: Path, *, changes: bool) -> BoxVerdict:
    """Serve the box, run `mews conform` on it, and compare."""
    where = folder / f"{box.name}-{'changes' if changes else 'reading'}"
    where.mkdir(parents=True)
    with opened(box, seed) as served:
        before = dict(served.places())
        options = ["--dialect", box.dialect, "--budget", f"{BUDGET_S:g}s", *(["--allow-changes"] if changes else [])]
        options += ["--json", str(where / "report.json"), "--html", str(where / "report.html")]
        options += ["--ca", str(served.ca)] if served.ca else []
        began_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "mews.harness", "conform", served.url, *options],
            env={**os.environ, "XDG_STATE_HOME": str(where), **_login(box)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        seconds = time.monotonic() - began_s
        after = served.places()
        left = tuple(sorted(device for device, port in before.items() if after.get(device) != port))
    return _verdict(box, changes, done, seconds, left, where)


def _with_others(box: Box, wanted: list[str]) -> tuple[str, ...]:
    word = NOW_AND_THEN.get(box.wrong)
    return (*wanted, *(f"{clause.partition('.')[0]}.{word}" for clause in wanted if word))


def _login(box: Box) -> dict[str, str]:
    return {"MEWS_REDFISH_PASSWORD": PASSWORD} if box.dialect == "redfish" else {}


def _verdict(
    box: Box, changes: bool, done: subprocess.CompletedProcess[str], seconds: float, left: tuple[str, ...], where: Path
) -> BoxVerdict:
    (where / "output.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    try:
        report = json.loads((where / "report.json").read_text(encoding="utf-8"))
        whole = "</html>" in (where / "report.html").read_text(encoding="utf-8")
    except (OSError, ValueError):
        report, whole = {}, False
    row = named_by().get((box.wrong, box.dialect), {}) if box.wrong and not WRONGS[box.wrong].legal else {}
    wanted = row.get("with changes" if changes else "reading", "")
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return BoxVerdict(
        box=box,
        changes=changes,
        code=done.returncode,
        seconds=seconds,
        judging_s=float(report.get("seconds", seconds)) - float(report.get("restoring_seconds", 0.0)),
        wanted=_with_others(box, wanted.split()),
        clauses={each["clause"]: each["reason"] for each in report.get("clauses", []) if each["verdict"] in BAD},
        verdict=str(report.get("verdict", "")),
        left=left,
        told=bool(report.get("not_restored") or report.get("moved_by_others")),
        report=whole,
        last=lines[-1] if lines else "",
    )

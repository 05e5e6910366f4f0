"""``python -m tests.conform_boxes [--seed N]``: judge sixty boxes, reading only and with changes.

The last line is a JSON object: ``{"boxes","runs","planted","named","false_alarms","left_without_a_word","late",
"without_report","longest_s"}``. Exits with 1 below the bars.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.conform_boxes.boxes import drawn, sample
from tests.conform_boxes.trial import BoxVerdict, judged

NAMED = 0.9
"""The bar: which part of what is planted must be named by exactly one clause. All else must be none."""


def main() -> int:
    """Judge them; 1 below the bars."""
    parser = argparse.ArgumentParser(prog="python -m tests.conform_boxes")
    parser.add_argument("--seed", type=int, default=1, help="draw these boxes")
    parser.add_argument("--sample", type=int, metavar="N", help="judge only N of them")
    parser.add_argument("--jobs", type=int, default=1, help="judge so many at a time")
    parser.add_argument("--box", action="append", default=[], metavar="NAME", help="judge only this one")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep all reports in this folder")
    given = parser.parse_args()
    boxes = drawn(given.seed)
    if given.sample is not None:
        boxes = sample(boxes, given.sample, given.seed)
    boxes = [box for box in boxes if not given.box or box.name in given.box]
    folder = Path(tempfile.mkdtemp(prefix="mews-boxes-")) if given.out is None else given.out
    if given.out is not None and given.out.exists() and not (given.out.is_dir() and not any(given.out.iterdir())):
        parser.error(f"--out {given.out}: must be a new folder, or an empty one")
    runs = [(box, changes) for box in boxes for changes in (False, True)]
    try:
        with ThreadPoolExecutor(given.jobs) as pool:
            found = list(pool.map(lambda run: told(judged(run[0], given.seed, folder, changes=run[1])), runs))
    finally:
        if given.out is None:
            shutil.rmtree(folder, ignore_errors=True)
    counted = totals(found)
    sys.stdout.write(json.dumps(counted) + "\n")
    return 0 if good(counted) else 1


def told(verdict: BoxVerdict) -> BoxVerdict:
    """Print one run."""
    faults = "; ".join(verdict.faults)
    found = "; ".join(f"{clause}: {reason}" for clause, reason in verdict.clauses.items())
    how = "changes" if verdict.changes else "reading"
    line = f"{verdict.seconds:5.1f} s  {verdict.verdict:10} {how:8} {verdict.box}"
    sys.stdout.write(f"{line}{f'; {found}' if found else ''}{f'  ## {faults}' if faults else ''}\n")
    sys.stdout.flush()
    return verdict


def totals(found: Sequence[BoxVerdict]) -> dict[str, Any]:
    """All counts."""
    planted = [each for each in found if each.planted]
    return {
        "boxes": len({each.box.name for each in found}),
        "runs": len(found),
        "planted": len(planted),
        "named": sum(each.named for each in planted),
        "false_alarms": sum(each.false_alarm for each in found),
        "left_without_a_word": sum(bool(each.left) and not each.told for each in found),
        "late": sum(each.late for each in found),
        "without_report": sum(not each.report for each in found),
        "longest_s": round(max((each.seconds for each in found), default=0.0), 1),
    }


def good(counted: dict[str, Any]) -> bool:
    """Whether all bars are met."""
    nothing = ("false_alarms", "left_without_a_word", "late", "without_report")
    return counted["named"] >= NAMED * counted["planted"] and not any(counted[name] for name in nothing)


if __name__ == "__main__":
    sys.exit(main())

"""What the real server answered, written down: so that the cases are put to ours where there is no real one.

A line for each case, in the order of the cases: area, name, answer. The commands of kubectl are left out, as they need
the program. ``python -m tests.differential --record`` writes the file anew.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from tests.differential.areas import AREAS
from tests.differential.model import Answer, Case, Pair, Run
from tests.differential.sides import RECORDED

FILE = Path(__file__).parent / "recorded" / f"{RECORDED}.jsonl.gz"
CASES: dict[str, tuple[Case, ...]] = {
    area: members for area, members in AREAS.items() if not any(isinstance(case, Run) for case in members)
}
"""The areas without commands: a case may depend on those before it."""


def write(pairs: Iterable[Pair]) -> None:
    """Write the real server's answers to these cases; the file is the same for the same answers."""
    lines = [json.dumps([pair.area, pair.case.name, pair.real], ensure_ascii=False, sort_keys=True) for pair in pairs]
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def answers() -> dict[tuple[str, str], Answer]:
    """Return the recorded answers, by area and name."""
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()
    return {(area, name): answer for area, name, answer in map(json.loads, lines)}

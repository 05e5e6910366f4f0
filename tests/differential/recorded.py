"""What the real server answered, written down: so that the cases are put to ours where there is no real one.

A file for the areas, and for each generated suite; a line for each case, in the order of the cases: area, name, answer.
The commands of kubectl are left out, as they need the program. ``python -m tests.differential --record`` writes the
files anew.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from tests.differential.areas import AREAS
from tests.differential.generated import fields, rows, writers
from tests.differential.model import Answer, Case, Pair, Run
from tests.differential.sides import RECORDED, Cases, compare, compare_recorded, lacking, plain

FOLDER = Path(__file__).parent / "recorded" / RECORDED
CASES: dict[str, tuple[Case, ...]] = {
    area: members for area, members in AREAS.items() if not any(isinstance(case, Run) for case in members)
}
"""The areas without commands: a case may depend on those before it."""

ROW_SEEDS, WRITER_SEEDS = range(80), range(1000, 1030)
FIELD_SEED, FIELD_CASES = 20, 2000


def generated() -> Cases:
    """Return the cases of generated suites, by name: those in which nothing hangs on the order of an answer, or on
    what the server showed before."""
    return {
        "fields": fields.cases(FIELD_SEED, FIELD_CASES),
        "rows": rows.cases(ROW_SEEDS),
        "writers": writers.cases(WRITER_SEEDS),
    }


def write(name: str, pairs: Iterable[Pair]) -> None:
    """Write the real server's answers to these cases; the file is the same for the same answers."""
    lines = (json.dumps([pair.area, pair.case.name, pair.real], ensure_ascii=False, sort_keys=True) for pair in pairs)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def answers(name: str) -> dict[tuple[str, str], Answer]:
    """Return the recorded answers, by area and name."""
    lines = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()
    return {(area, case): plain(answer) for area, case, answer in map(json.loads, lines)}


def pairs_of(suite: str, cases: tuple[Case, ...]) -> list[Pair]:
    """Put these cases of a generated suite to both servers, or to ours alone where there is no real one."""
    if lacking():
        return compare_recorded({suite: cases}, {}, answers(suite), namespace="default")
    return compare({suite: cases}, {}, namespace="default")

"""The table of areas, and the differences."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence

from tests.differential.model import Answer, Pair, Run

_LONGEST = 24


def table(pairs: Sequence[Pair]) -> str:
    """Area, cases, how many of them are the same, percent; and all."""
    areas = list(dict.fromkeys(pair.area for pair in pairs))
    rows = [_row(area, [pair for pair in pairs if pair.area == area]) for area in areas]
    commands = [pair for pair in pairs if isinstance(pair.case, Run)]
    kinds = f"{len(pairs) - len(commands)} requests, {len(commands)} kubectl commands"
    return "\n".join([f"{'area':12} {'cases':>6} {'same':>6} {'percent':>8}", *rows, _row("all", pairs), kinds])


def _row(name: str, pairs: Sequence[Pair]) -> str:
    same = sum(pair.same for pair in pairs)
    return f"{name:12} {len(pairs):6} {same:6} {share(pairs):8.1f}"


def share(pairs: Sequence[Pair]) -> float:
    """Percent that are the same."""
    return 100.0 * sum(pair.same for pair in pairs) / max(len(pairs), 1)


def difference(pair: Pair) -> str:
    """A short diff: what the real server says, what ours says."""
    lines = difflib.unified_diff(_lines(pair.real), _lines(pair.ours), "real", "ours", lineterm="", n=1)
    shown = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    more = [f"… {len(shown) - _LONGEST} lines more"] if len(shown) > _LONGEST else []
    return "\n".join([*(line[:240] for line in shown[:_LONGEST]), *more])


def _lines(answer: Answer) -> list[str]:
    return json.dumps(answer, indent=1, sort_keys=True, ensure_ascii=False).splitlines()

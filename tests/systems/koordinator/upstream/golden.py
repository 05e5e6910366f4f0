"""Upstream's recorded answers to drawn cases, so that they count where no Go is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.systems.koordinator.upstream.drawing import Case, drawn

GOLDEN = Path(__file__).with_name("golden.jsonl")
SEEDS = range(300)
SCORES: Sequence[Sequence[int]] = ((0, 0), (7,), (50, 100, 3), (186, 93, 1), (300, 299, 0, 1), (33, 66))
"""Scores of nodes that are normalized."""


def golden_cases() -> list[Case]:
    """What the file has answers to."""
    return [*map(drawn, SEEDS), *({"scores": scores} for scores in SCORES)]


def written(answers: Sequence[Any]) -> str:
    """The file: what the cases were, as a checksum, and an answer a line."""
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in ({"cases": _checksum()}, *answers))


def golden_answers() -> list[Any]:
    """The answers in the order of the cases. Raises ValueError where they are of other cases."""
    head, *answers = map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
    if head["cases"] != _checksum():
        raise ValueError(f"{GOLDEN}: is of other cases: make koordinator-upstream MEWS_WRITE=1 writes it anew")
    return answers


def _checksum() -> str:
    return hashlib.sha256(json.dumps(golden_cases(), sort_keys=True).encode()).hexdigest()[:16]

"""What is new and what is mended since an earlier run, read from its JSON report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.harness.conformance.judge import OF_GRADE, PASSED
from mews.harness.conformance.report.outcome import ConformanceOutcome, Since
from mews.harness.errors import BadInputError, unreadable

BROKEN = frozenset({*OF_GRADE.values(), "quirk", "waived", "error"})
"""Verdicts that say that a clause does not hold."""


class Baseline(Struct, frozen=True):
    """Clause -> verdict of an earlier run."""

    path: Path
    dialect: str
    verdicts: Mapping[str, str]


def load_baseline(path: Path, dialect: str) -> Baseline:
    """Return the verdicts of a report of ``mews conform --json``.

    Raises BadInputError.
    """
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
        found = {each["clause"]: each["verdict"] for each in value["clauses"]}
        spoken = value["dialect"]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"--baseline {unreadable(path, error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"--baseline {path}: must be a report of `mews conform --json FILE`") from error
    if spoken != dialect:
        raise BadInputError(f"--baseline {path}: is of --dialect {spoken}, not {dialect}")
    return Baseline(path, spoken, found)


def since(baseline: Baseline, outcome: ConformanceOutcome) -> Since:
    """Return what became of each clause: a clause that was not judged this time is neither mended nor new."""
    now = {result.clause.id: result.verdict for result in outcome.results}
    before = baseline.verdicts
    broken = [clause for clause, verdict in now.items() if verdict in BROKEN]
    return Since(
        tuple(clause for clause in broken if before.get(clause) not in BROKEN),
        tuple(clause for clause, verdict in now.items() if verdict == PASSED and before.get(clause) in BROKEN),
        tuple(clause for clause in broken if before.get(clause) in BROKEN),
    )

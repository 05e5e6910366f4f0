"""A judgement as SARIF 2.1.0 (OASIS): a rule per clause that does not hold, a result with its exchange each."""

from __future__ import annotations

import json
from typing import Any

from mews import __version__
from mews.harness.conformance.clause import MAY, SHOULD
from mews.harness.conformance.judge import PASSED, SKIPPED, ClauseResult
from mews.harness.conformance.report.outcome import ConformanceOutcome
from mews.harness.conformance.report.text import shown

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {SHOULD: "warning", MAY: "note"}
"""Of grades; what must hold is an error."""


def sarif_text(outcome: ConformanceOutcome) -> str:
    """Return the document: what holds and what was not judged is left out."""
    found = [result for result in outcome.results if result.verdict not in (PASSED, SKIPPED)]
    driver = {
        "name": "mews conform",
        "version": __version__,
        "rules": [_rule(result) for result in found],
    }
    run = {
        "tool": {"driver": driver},
        "results": [*(_result(outcome, result) for result in found), *_unrestored(outcome)],
        "invocations": [{"executionSuccessful": not outcome.unable}],
        "properties": {"dialect": outcome.dialect, "verdict": outcome.verdict},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(result: ClauseResult) -> dict[str, Any]:
    return {
        "id": result.clause.id,
        "shortDescription": {"text": result.clause.title},
        "help": {"text": result.clause.reference},
        "defaultConfiguration": {"level": LEVELS.get(result.grade, "error")},
    }


def _result(outcome: ConformanceOutcome, result: ClauseResult) -> dict[str, Any]:
    exchanges = shown(result)
    where = exchanges[-1].path if exchanges else ""
    found: dict[str, Any] = {
        "ruleId": result.clause.id,
        "level": LEVELS.get(result.grade, "error"),
        "message": {"text": result.reason or result.clause.title},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": f"{outcome.url}{where}"}}}],
        "partialFingerprints": {"clause/v1": f"{outcome.dialect}/{result.clause.id}"},
        "properties": {"exchanges": [exchange.as_dict() for exchange in exchanges]},
    }
    if result.note:
        found["suppressions"] = [{"kind": "external", "justification": result.note}]
    return found


def _unrestored(outcome: ConformanceOutcome) -> list[dict[str, Any]]:
    return [{"ruleId": "restored", "level": "error", "message": {"text": text}} for text in outcome.restored or ()]

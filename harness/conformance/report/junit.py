"""A judgement as JUnit XML: a test case per clause, its class the dialect."""

from __future__ import annotations

from mews.harness.conformance.judge import FAILED, SKIPPED, ClauseResult
from mews.harness.conformance.report.outcome import ConformanceOutcome, after
from mews.harness.conformance.report.text import details
from mews.harness.report.junit_writer import JUnitCase, JUnitSuite, junit_document


def junit_xml(outcome: ConformanceOutcome) -> str:
    """Return one suite; quirks and waivers pass, with their reason as output. A table that is not restored is an
    error."""
    cases = [_case(outcome.dialect, result) for result in outcome.results]
    if outcome.restored:
        cases.append(JUnitCase(outcome.dialect, "restored", bad="error", message="; ".join(outcome.restored)))
    if outcome.unable:
        cases.append(JUnitCase(outcome.dialect, "chassis", bad="error", message=outcome.unable))
    suite = JUnitSuite(
        "mews conform",
        outcome.dialect,
        outcome.seconds,
        cases,
        output="\n".join(after(outcome)),
        properties={"url": outcome.url, **outcome.versions.service, **outcome.versions.schemas},
    )
    return junit_document(suite)


def _case(dialect: str, result: ClauseResult) -> JUnitCase:
    skipped = result.verdict == SKIPPED
    broken = not skipped and not result.good
    noted = not skipped and result.good and bool(result.note)
    return JUnitCase(
        classname=dialect,
        name=f"{result.clause.id} {result.clause.title}",
        seconds=result.seconds,
        bad="skipped" if skipped else "" if not broken else "failure" if result.verdict == FAILED else "error",
        message=result.reason,
        verdict=result.verdict if broken else "",
        text="\n".join(details(result)) if broken else "",
        output=f"{result.verdict}: {result.reason}\n{result.note}" if noted else "",
    )

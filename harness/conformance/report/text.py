"""The report for a terminal or a log: a line per clause, more where it does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from mews.harness.conformance.clause import MUST
from mews.harness.conformance.exchange import Exchange, cut
from mews.harness.conformance.judge import NOTED, PASSED, READ_ONLY, SKIPPED, ClauseResult
from mews.harness.conformance.report.outcome import ConformanceOutcome, about, after, summary
from mews.harness.report.text_writer import STYLES, TextWriter

MOST_EXCHANGES = 3


class ConformanceTextReport:
    """Writes each result as it comes; in colour on a terminal; with ``quiet`` only what went wrong. Why clauses were
    not judged is written with the first of them."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._reasons: set[str] = set()
        """Why clauses were not judged, so far."""
        self._writer = TextWriter(stream)

    def ended(self, result: ClauseResult) -> None:
        """One clause."""
        if self._quiet and result.good:
            return
        title = f"{result.clause.id:27} {result.clause.title}"
        self._writer.line(f"{result.verdict:8} ", _style(result.verdict), title)
        if result.verdict == SKIPPED and not result.note:
            known = {READ_ONLY, *self._reasons}
            self._reasons.add(result.reason)
            if result.reason in known:
                return
        self._writer.lines(f"         {text}" for text in details(result))

    def finish(self, outcome: ConformanceOutcome) -> None:
        """The end."""
        if self._quiet and outcome.verdict == "passed":
            return
        self._writer.lines(("", *about(outcome), *after(outcome)))
        head = f"{outcome.verdict.upper()} "
        self._writer.line(head, _style(outcome.verdict), f"in {outcome.seconds:.1f} s: {summary(outcome)}")


def _style(verdict: str) -> str:
    """Return a clause that is not judged is nothing to look at."""
    return "dim" if verdict == SKIPPED else STYLES[verdict]


def details(result: ClauseResult) -> Iterator[str]:
    """Yield what is told of a result beside its title."""
    if result.reason:
        yield result.reason
    if result.note:
        yield result.note
    if result.verdict in (PASSED, SKIPPED, NOTED):
        return
    graded = "" if result.grade == MUST else f" ({result.grade})"
    yield f"{result.clause.reference}{' (assumed)' if result.clause.assumed else ''}{graded}"
    for exchange in shown(result):
        yield f"> {exchange.method} {exchange.path} {cut(exchange.body, 200)}".rstrip()
        yield f"< {exchange.status or exchange.error} {cut(exchange.reply, 200)}".rstrip()


def shown(result: ClauseResult) -> tuple[Exchange, ...]:
    """Return the exchanges worth telling: the last ones; the first of what was noticed on the way."""
    found = result.exchanges[:2] if result.clause.last else result.exchanges[-MOST_EXCHANGES:]
    return found if result.evidence is None or result.evidence in found else (*found, result.evidence)

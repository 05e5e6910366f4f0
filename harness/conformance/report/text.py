"""The report for a terminal or a log: a line per clause, more where it does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from mews.harness.conformance.exchange import Exchange, cut
from mews.harness.conformance.judge import PASSED, READ_ONLY, SKIPPED, Result
from mews.harness.conformance.report.outcome import Outcome, about, after, summary

MOST_EXCHANGES = 3
STYLES = {"passed": "green", "failed": "bold red", "error": "bold red", "quirk": "yellow", "waived": "yellow"}


class TextReport:
    """Writes each result as it comes; in colour on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def ended(self, result: Result) -> None:
        """One clause."""
        self._line(
            f"{result.verdict:8} ", STYLES.get(result.verdict, "dim"), f"{result.clause.id:27} {result.clause.title}"
        )
        for text in () if result.reason == READ_ONLY else details(result):
            self._line("", "", f"         {text}")

    def finish(self, outcome: Outcome) -> None:
        """The end."""
        for text in ("", *about(outcome), *after(outcome)):
            self._line("", "", text)
        style = STYLES[outcome.verdict]
        self._line(f"{outcome.verdict.upper()} ", style, f"in {outcome.seconds:.1f} s: {summary(outcome)}")

    def _line(self, head: str, style: str, text: str) -> None:
        if self._stream.isatty() and style:
            from rich.console import Console
            from rich.text import Text

            Console(file=self._stream, highlight=False, soft_wrap=True).print(
                Text(head, style=style).append(text, "none")
            )
        else:
            self._stream.write(f"{head}{text}".rstrip() + "\n")
        self._stream.flush()


def details(result: Result) -> Iterator[str]:
    """What is told of a result beside its title."""
    if result.reason:
        yield result.reason
    if result.note:
        yield result.note
    if result.verdict in (PASSED, SKIPPED):
        return
    yield result.clause.reference + (" (assumed)" if result.clause.assumed else "")
    for exchange in shown(result):
        yield f"> {exchange.method} {exchange.path} {cut(exchange.body, 200)}".rstrip()
        yield f"< {exchange.status or exchange.error} {cut(exchange.reply, 200)}".rstrip()


def shown(result: Result) -> tuple[Exchange, ...]:
    """The exchanges worth telling: the last ones; the first of what was noticed on the way."""
    return result.exchanges[:2] if result.clause.last else result.exchanges[-MOST_EXCHANGES:]

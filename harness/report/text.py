"""Results for people: a line per run as it ends and a table at the end on a terminal, plain lines into a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from mews.harness.journal import Line
from mews.harness.report.line import plain
from mews.harness.report.run import SKIPPED, Run
from mews.harness.report.text_writer import STYLES, TextWriter
from mews.harness.scenario.result import Result
from mews.harness.terminal import escaped

TIMELINE = 25
SHOWN_METRICS = ("mean_wait_s", "mean_jct_s", "moved_gpus", "reconfigurations", "makespan_s", "cpu_utilisation")


class TextReport:
    """Writes to a stream; colours and a table only where that is a terminal; with ``quiet`` only what went wrong."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._writer = TextWriter(sys.stdout if stream is None else stream)

    def ended(self, run: Run) -> None:
        """Tell one run; on a terminal only what went wrong, as the table follows."""
        if self._quiet and run.good:
            return
        if not self._writer.rich:
            self._writer.lines([headline(run.result), *(f"    {text}" for text in details(run))])
        elif not run.good or run.result.known or run.result.ignored:
            self._writer.line(headline(run.result), STYLES[run.result.verdict])
            self._writer.lines(f"    {text}" for text in details(run))

    def finish(self, runs: Sequence[Run]) -> None:
        """The table (terminal) and the count."""
        if self._quiet and all(run.good for run in runs):
            return
        if self._writer.rich:
            self._writer.console().print(_table(runs), soft_wrap=False)
        self._writer.lines([count(runs)])


def headline(result: Result) -> str:
    """``passed  demo  seed 1  12.3 s virtual, 0.21 s  moved_gpus=1``."""
    took = f"{result.wall_s or 0.0:.2f} s"
    if result.virtual_s is not None:
        took = f"{result.virtual_s:.1f} s virtual, {took}"
    return f"{result.verdict:7} {result.scenario:36} seed {result.seed:<4} {took}  {metrics_text(result)}".rstrip()


def metrics_text(result: Result) -> str:
    """Return the metrics that fit a line."""
    shown = ((name, result.metrics[name]) for name in SHOWN_METRICS if result.metrics.get(name) is not None)
    return " ".join(f"{name}={_number(value)}{_beside(value, result.expected.get(name))}" for name, value in shown)


def _beside(value: float, expected: float | None) -> str:
    """``(expected 82.7: -1.2 %)``: what the scenario holds it against."""
    return f" (expected {expected:g}: {100 * (value - expected) / expected:+.1f} %)" if expected else ""


def details(run: Run) -> Iterator[str]:
    """Yield the reason, the violations and, where it went wrong, the end of the time line."""
    result = run.result
    if result.reason:
        yield result.reason
    for violation in result.violations:
        yield f"invariant {violation.get('invariant')} ({violation.get('name')}): {violation.get('what')}"
        yield from _broken_by(violation)
    yield from ignored_text(result)
    for known in result.known:
        yield f"known of the published system: {known.get('what')} ({known.get('known')})"
    if run.good:
        return
    yield from (text for text in result.report.splitlines() if text.strip() and text.strip() != result.reason)
    lines = shown_lines(run.lines)
    if lines:
        yield f"the last {len(lines)} of {len(run.lines)} lines of the journal:"
        yield from (plain(line) for line in lines)
    if result.artefacts:
        yield f"artefacts: {result.artefacts}"


def _broken_by(violation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that a violation names."""
    for place, says in (
        ("first", "first broken by"),
        ("after", "it should have come after"),
        ("overdue", "it was due before"),
    ):
        line = violation.get(place)
        if line is not None:
            what = f"{line['layer']} {line['actor']} {line['event']}"
            yield f"    {says} line {line['line']}: {what} at {line['t']:.3f} s"


def ignored_text(result: Result) -> Iterator[str]:
    """Yield a line with the keys of the scenario that this way to run does not honour, where there are any."""
    if result.ignored:
        keys = (f"{each['key']} ({each['why']})" for each in result.ignored)
        yield f"not honoured by --cluster {result.cluster}: {'; '.join(keys)}"


def shown_lines(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the end of the time line, with the line where an invariant broke if that is earlier."""
    tail = list(lines[-TIMELINE:])
    broken = {line.fields.get("first") for line in lines if line.layer == "invariant"}
    return [line for line in lines[:-TIMELINE] if line.number in broken and line.layer != "invariant"] + tail


def count(runs: Sequence[Run]) -> str:
    """``15 passed, 1 skipped``; says so when nothing was run."""
    verdicts = [run.result.verdict for run in runs]
    parts = [f"{verdicts.count(verdict)} {verdict}" for verdict in STYLES if verdict in verdicts]
    text = ", ".join(parts)
    return f"{text}: NOTHING WAS RUN" if runs and set(verdicts) == {SKIPPED} else text


def _table(runs: Sequence[Run]) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("verdict", "scenario", "seed", "virtual", "wall", "metrics, reason"):
        table.add_column(name, justify="right" if name in ("seed", "virtual", "wall") else "left")
    for run in runs:
        result = run.result
        virtual = "" if result.virtual_s is None else f"{result.virtual_s:.1f} s"
        remark = escaped(" — ".join(filter(None, (metrics_text(result), result.reason))))
        verdict = Text(result.verdict, style=STYLES[result.verdict])
        table.add_row(
            verdict,
            Text(escaped(result.scenario)),
            str(result.seed),
            virtual,
            f"{result.wall_s or 0.0:.2f} s",
            Text(remark),
        )
    return table


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

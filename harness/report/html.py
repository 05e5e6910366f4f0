"""Runs as one HTML file: who had which GPU when, what pods waited for, and why a run failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from mews.harness.journal import Line
from mews.harness.report.page import DataBlock, data_block, html_file, packed_block
from mews.harness.report.run import REPORT, Run
from mews.harness.report.text import count
from mews.harness.terminal import escaped
from mews.own_files import write_own

PLAIN_LINES = 20_000
"""With more lines than these in all runs together, journals are packed."""


def html_page(runs: Sequence[Run]) -> str:
    """Return the whole file."""
    packed = sum(len(run.lines) for run in runs) > PLAIN_LINES
    title = f"{runs[0].result.scenario}: {runs[0].result.verdict}" if len(runs) == 1 else count(runs)
    blocks: list[DataBlock] = [data_block("mews-data", {"kind": "runs", "title": title, "runs": [*map(_run, runs)]})]
    for number, run in enumerate(runs):
        if run.lines:
            lines = [_line(line) for line in run.lines]
            blocks.append((packed_block if packed else data_block)(f"lines-{number}", lines))
    return html_file(
        f"mews · {title}",
        start="ReportData.start();",
        scripts=("report.js",),
        blocks=blocks,
        fallback=_fallback(title, runs),
    )


def write_report(run: Run, folder: Path) -> Path:
    """Write ``report.html`` beside the other artefacts of a run, and return its path.

    Raises OSError.
    """
    file = folder / REPORT
    write_own(file, html_page([run]))
    return file


def _run(run: Run) -> Mapping[str, Any]:
    result = run.result
    return {**result.as_dict(), "report": result.report, "lines": len(run.lines)}


def _line(line: Line) -> dict[str, Any]:
    return {"number": line.number, **line.as_dict()}


def _fallback(title: str, runs: Sequence[Run]) -> str:
    """Verdicts and reasons for readers without scripts."""

    def shown(text: str) -> str:
        return escape(escaped(text))

    rows = "".join(
        f"<tr><td>{shown(run.result.verdict)}</td><td>{shown(run.result.scenario)}</td>"
        f"<td>{run.result.seed}</td><td>{shown(run.result.reason)}</td></tr>"
        for run in runs
    )
    head = "<tr><th>verdict</th><th>scenario</th><th>seed</th><th>reason</th></tr>"
    return f"<main><h1>mews: {shown(title)}</h1><table>{head}{rows}</table></main>"

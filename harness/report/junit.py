"""Runs as JUnit XML: a test case per scenario and seed, its class the path of the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mews.harness.report.junit_writer import JUnitCase, JUnitSuite, junit_document
from mews.harness.report.line import plain
from mews.harness.report.run import Run
from mews.harness.report.text import details, shown_lines


def junit_xml(runs: Sequence[Run]) -> str:
    """Return one suite of all runs."""
    seconds = sum(run.result.wall_s or 0.0 for run in runs)
    return junit_document(JUnitSuite("mews", "mews", seconds, [_case(run) for run in runs]))


def _case(run: Run) -> JUnitCase:
    result = run.result
    skipped = result.verdict == "skipped"
    broken = not skipped and not run.good
    return JUnitCase(
        classname=".".join(Path(result.path).with_suffix("").parts).lstrip("./") or result.scenario,
        name=f"{result.scenario}[seed={result.seed}]",
        seconds=result.wall_s or 0.0,
        bad="skipped" if skipped else "" if not broken else "failure" if result.verdict == "failed" else "error",
        message=result.reason,
        verdict=result.verdict if broken else "",
        text="\n".join(details(run)) if broken else "",
        output=_output(run) if broken else "",
        properties={
            **{name: str(value) for name, value in result.metrics.items() if isinstance(value, int | float)},
            **({"report": str(run.report)} if run.report is not None else {}),
            **({"ignored": ", ".join(each["key"] for each in result.ignored)} if result.ignored else {}),
        },
    )


def _output(run: Run) -> str:
    """Return the end of the time line, and where the page of the run is: CI systems (Jenkins, GitLab) make a link of
    that."""
    lines = [plain(line) for line in shown_lines(run.lines)]
    if run.report is not None:
        lines.append(f"[[ATTACHMENT|{run.report.absolute()}]]")
    return "\n".join(lines)

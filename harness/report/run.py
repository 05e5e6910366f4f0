"""A run with its time line, as the reports take it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mews.harness.journal import Line
from mews.harness.scenario.result import Result

PASSED, SKIPPED = "passed", "skipped"
REPORT = "report.html"
"""In the folder of a run's artefacts."""


class Run(Struct, frozen=True):
    """What a run came to, and its lines (journal and component records) by time."""

    result: Result
    lines: Sequence[Line] = ()
    lacks: str = ""
    """What this machine lacks for it: a skipped run that another machine, or a later day, may make up for."""
    bad_input: bool = False
    """It came to nothing for what was found wrong with its files after they had been checked."""

    @property
    def good(self) -> bool:
        """Neither failed nor broken."""
        return self.result.verdict in (PASSED, SKIPPED)

    @property
    def report(self) -> Path | None:
        """The page among its artefacts; None where there is none."""
        folder = self.result.artefacts
        return folder / REPORT if folder is not None and (folder / REPORT).is_file() else None


def exit_code_of(runs: Sequence[Run], *, strict: bool = False) -> int:
    """1 if any run failed or broke; else 0, or 3 where ``strict`` lets none be skipped."""
    if not all(run.good for run in runs):
        return 1
    return 3 if strict and any(run.result.verdict == SKIPPED for run in runs) else 0

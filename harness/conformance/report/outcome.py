"""What a run found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.judge import READ_ONLY, VERDICTS, ClauseResult
from mews.harness.conformance.recording import RecordingDifference
from mews.harness.conformance.table import Versions

NAMED_FROM_S = 5.0
"""Putting back that takes no longer is not mentioned."""


class Since(Struct, frozen=True):
    """Clauses by what became of them since a baseline."""

    new: tuple[str, ...]
    mended: tuple[str, ...]
    still: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return a line each, left out where there is nothing to say."""
        words = (("new", self.new), ("mended", self.mended), ("as before", self.still))
        return [f"{word}: {', '.join(clauses)}" for word, clauses in words if clauses]

    def as_dict(self) -> dict[str, list[str]]:
        """Return them for JSON."""
        return {"new": list(self.new), "mended": list(self.mended), "as_before": list(self.still)}


class ConformanceOutcome(Struct, frozen=True):
    """One run. ``restored``: None where nothing was moved, else what could not be put back; ``remarks``: worth knowing;
    ``others``: what the chassis or another client has moved meanwhile, which was left there; ``unable``: why there is
    nothing to judge, or no more; ``open``: what was to be judged and was not, and why."""

    url: str
    dialect: str
    changes: bool
    devices: tuple[str, ...]
    profile: str
    quirks: str
    versions: Versions
    results: Sequence[ClauseResult]
    restored: tuple[str, ...] | None
    differences: Sequence[RecordingDifference]
    remarks: tuple[str, ...]
    others: tuple[str, ...]
    seconds: float
    log: Sequence[Exchange] = ()
    """Every request in order, for a recording."""
    unable: str = ""
    open: tuple[str, ...] = ()
    since: Since | None = None
    restoring_s: float = 0.0
    """Seconds that putting devices back took; the budget does not bound them."""

    @property
    def verdict(self) -> str:
        """passed or failed; incomplete where nothing is wrong and not all was judged; error where nothing could be."""
        if not all(result.good for result in self.results) or self.restored or self.differences:
            return "failed"
        if self.unable:
            return "error"
        return "incomplete" if self.open else "passed"

    def counts(self) -> dict[str, int]:
        """Return how many of each verdict, all of them."""
        counted = Counter(result.verdict for result in self.results)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    def as_dict(self) -> dict[str, Any]:
        """Return them for JSON."""
        return {
            "url": self.url,
            "dialect": self.dialect,
            "allow_changes": self.changes,
            "devices": list(self.devices),
            "profile": self.profile,
            "quirks": self.quirks,
            "versions": {"service": dict(self.versions.service), "schemas": dict(self.versions.schemas)},
            "verdict": self.verdict,
            "counts": self.counts(),
            "clauses": [result.as_dict() for result in self.results],
            "restored": None if self.restored is None else not self.restored,
            "not_restored": list(self.restored or ()),
            "differences": [str(difference) for difference in self.differences],
            "remarks": list(self.remarks),
            "moved_by_others": list(self.others),
            "reason": self.unable,
            "since": None if self.since is None else self.since.as_dict(),
            "not_judged": list(self.open),
            "seconds": round(self.seconds, 3),
            "restoring_seconds": round(self.restoring_s, 3),
        }


def summary(outcome: ConformanceOutcome) -> str:
    """``12 passed, 1 failed``."""
    words = {"quirk": "known quirk", "skipped": "not judged", "warning": "should be otherwise"}
    text = ", ".join(f"{n} {words.get(verdict, verdict)}" for verdict, n in outcome.counts().items() if n)
    withheld = sum(result.reason == READ_ONLY for result in outcome.results)
    return f"{text} ({withheld} of them for want of --allow-changes)" if withheld else text


def about(outcome: ConformanceOutcome) -> list[str]:
    """Return what was judged and how, line by line."""
    how = f"changes on {', '.join(outcome.devices)}" if outcome.changes else "read-only"
    lines = [f"{outcome.url}, dialect {outcome.dialect}, {how}"]
    if outcome.profile:
        lines.append(f"profile {outcome.profile}")
    if outcome.quirks:
        lines.append(f"quirk profile {outcome.quirks}")
    if outcome.versions.service:
        lines.append(", ".join(f"{name} {value}" for name, value in outcome.versions.service.items()))
    if outcome.versions.schemas:
        lines.append("schemas: " + ", ".join(f"{name} {value}" for name, value in outcome.versions.schemas.items()))
    return lines


def wrong(outcome: ConformanceOutcome) -> list[str]:
    """Return what fails the run besides its clauses."""
    differences = [f"differs: {difference}" for difference in outcome.differences]
    return differences + [f"NOT RESTORED: {text}" for text in outcome.restored or ()]


def notes(outcome: ConformanceOutcome) -> list[str]:
    """Return what is worth knowing of a run, and that its table was put back."""
    lines = [*outcome.remarks, *outcome.others]
    if outcome.restoring_s >= NAMED_FROM_S:
        lines.append(f"putting devices back took {outcome.restoring_s:.1f} s of the time")
    if outcome.restored == ():
        lines.append("the table is as before" + (" but for what others moved" if outcome.others else ""))
    return lines


def after(outcome: ConformanceOutcome) -> list[str]:
    """Return what is to be told at the end."""
    return [*notes(outcome), *wrong(outcome), *left_open(outcome)]


def left_open(outcome: ConformanceOutcome) -> list[str]:
    """Return why the run judged less than it was to, the clauses that it left out, and what has changed since a
    baseline."""
    lines = [f"NOT JUDGED: {text}" for text in outcome.open]
    compared = [] if outcome.since is None else outcome.since.lines()
    return [*lines, *compared, *([outcome.unable] if outcome.unable else [])]

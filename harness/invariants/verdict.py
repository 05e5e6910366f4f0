"""What the oracle makes of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mews.harness.journal import Line


class Violation(Struct, frozen=True):
    """A breach that no fault excuses; ``t`` in seconds from the start, when it was found. ``first`` is the line that
    broke the law, ``after`` the line that had to come before it. ``known``: why a published system breaks it by
    design, "" where that is no excuse. ``has_failed``: the law itself raised an exception, so nobody has judged.
    ``overdue``: of something that did not come, the first line that was written once its time was up."""

    invariant: int
    name: str
    what: str
    t: float
    first: Line | None
    after: Line | None = None
    known: str = ""
    has_failed: bool = False
    overdue: Line | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return them for the JSON report: ``first``, ``after`` and ``overdue`` are journal lines with their numbers;
        ``known`` is there where a published system breaks the law by design, ``hasFailed`` where the law raised an
        exception, ``overdue`` where something did not come in its time."""
        document = {
            "invariant": self.invariant,
            "name": self.name,
            "what": self.what,
            "t": round(self.t, 6),
            "first": _numbered(self.first),
            "after": _numbered(self.after),
        }
        known = {"known": self.known} if self.known else {}
        overdue = {} if self.overdue is None else {"overdue": _numbered(self.overdue)}
        return document | known | overdue | ({"hasFailed": True} if self.has_failed else {})

    def __str__(self) -> str:
        broke = f"; first broken by line {self.first.number}: {self.first.as_json()}" if self.first else ""
        after = f"; it should have come after line {self.after.number}: {self.after.as_json()}" if self.after else ""
        due = f"; it was due before line {self.overdue.number}: {self.overdue.as_json()}" if self.overdue else ""
        return f"invariant {self.invariant} ({self.name}) at {self.t:.3f} s: {self.what}{broke}{after}{due}"


def _numbered(line: Line | None) -> dict[str, Any] | None:
    return None if line is None else {"line": line.number, **line.as_dict()}

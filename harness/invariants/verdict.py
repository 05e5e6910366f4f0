"""What the oracle makes of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mews.harness.journal import Line


class Violation(Struct, frozen=True):
    """A breach that no fault excuses; ``t`` in seconds from the start, when it was found."""

    invariant: int
    name: str
    what: str
    t: float
    first: Line | None

    def as_dict(self) -> dict[str, Any]:
        """For the JSON report: ``first`` is the journal line with its number."""
        first = None if self.first is None else {"line": self.first.number, **self.first.as_dict()}
        return {
            "invariant": self.invariant,
            "name": self.name,
            "what": self.what,
            "t": round(self.t, 6),
            "first": first,
        }

    def __str__(self) -> str:
        broke = f"; first broken by line {self.first.number}: {self.first.as_json()}" if self.first else ""
        return f"invariant {self.invariant} ({self.name}) at {self.t:.3f} s: {self.what}{broke}"

"""Invariant 1007: a condition has one state at a time, and what is written of it is news."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class ConditionNews(Invariant[ObservedState]):
    """The conditions of an object are a map by their type (``listType=map`` in the API). A second one of a type shows
    as a line that says what an earlier line said."""

    number = 1007
    name = "a condition has one state at a time, and what is written of it is news"
    ours_alone = True
    events = frozenset({("api", "condition"), ("api", "created"), ("api", "deleted")})

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Line]] = {}

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Compare a condition with what it was."""
        if line.event != "condition":
            if line.actor in self._known:
                del self._known[line.actor]
            return
        conditions = self._known.setdefault(line.actor, {})
        kind = line.fields["type"]
        before, conditions[kind] = conditions.get(kind), line
        if before is not None and before.fields == line.fields:
            what = f"{line.actor} is {kind} {line.fields['status']} anew, and was nothing else meanwhile"
            yield Breach((line.actor, kind, str(line.number)), what, line, after=before)

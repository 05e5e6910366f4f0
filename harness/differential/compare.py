"""Two accounts of one scenario, held against each other. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from msgspec import Struct

from mews.harness.differential.cluster_history import ClusterHistory, Place
from mews.harness.differential.explained import REASONS, Explanation


class HistoryDifference(Struct, frozen=True):
    """One item that only one of the two tells at that place; ``cluster`` is the one compared with the first, ``only``
    the one that tells it; ``why`` is None where nothing explains it."""

    scenario: str
    cluster: str
    thing: str
    stream: str
    only: str
    item: str
    why: str | None

    @property
    def text(self) -> str:
        """One line."""
        return f"{self.thing}, {self.stream}: only on {self.only}: {self.item}"


def compare(
    first: ClusterHistory, other: ClusterHistory, reasons: Sequence[Explanation] = REASONS
) -> list[HistoryDifference]:
    """Return all differences; verdicts that differ are one of them, and one that nothing explains."""
    found: list[HistoryDifference] = []
    if first.verdict != other.verdict:
        for account in (first, other):
            text = f"{account.verdict}{f': {account.reason}' if account.reason else ''}"
            found.append(
                HistoryDifference(first.scenario, other.cluster, "scenario", "verdict", account.cluster, text, None)
            )
    for place in sorted({*first.stories, *other.stories}):
        silent = not (first.stories.get(place) and other.stories.get(place))
        ends = {first.stories.get(place, ("",))[-1], other.stories.get(place, ("",))[-1]}
        for only, item in _apart(first, other, place):
            last = len(ends) > 1 and item in ends
            moved = first.stories.get(place, ()).count(item) == other.stories.get(place, ()).count(item)
            fitting = (
                row for row in reasons if row.fits(other.cluster, place, item, last=last, silent=silent, moved=moved)
            )
            why = next((row.why for row in fitting), None)
            found.append(HistoryDifference(first.scenario, other.cluster, *place, only, item, why))
    return found


def _apart(first: ClusterHistory, other: ClusterHistory, place: Place) -> Iterator[tuple[str, str]]:
    before, after = first.stories.get(place, ()), other.stories.get(place, ())
    for kind, i, j, k, n in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from ((first.cluster, item) for item in before[i:j])
            yield from ((other.cluster, item) for item in after[k:n])

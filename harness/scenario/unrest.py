"""Whether a run comes to rest at its end. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from mews.harness.journal import Line

MOST_LINES = 20
"""So many lines of one sort may be written meanwhile: shipped scenarios write 8 at most, disturbed or not."""
_KEYS = ("type", "status", "reason", "phase")


class Unrest(Struct, frozen=True):
    """Something goes round: ``count`` lines like ``first``."""

    count: int
    first: Line


def unrest(lines: Iterable[Line], since_t: float) -> Unrest | None:
    """Return what happens most often from then on, if it happens too often; None in a run that has come to rest.

    Lines are of one sort if they say the same of objects of one kind, whatever these are called: a controller that
    replaces a pod again and again gives each another name.
    """
    late = [line for line in lines if line.t >= since_t and line.layer != "step"]
    counts = Counter(map(_sort_of, late))
    if not counts:
        return None
    sort, count = counts.most_common(1)[0]
    return None if count <= MOST_LINES else Unrest(count, next(line for line in late if _sort_of(line) == sort))


def _sort_of(line: Line) -> tuple[str, ...]:
    fields: Mapping[str, object] = line.fields
    return (line.layer, line.actor.partition("/")[0], line.event, *(str(fields.get(key, "")) for key in _KEYS))

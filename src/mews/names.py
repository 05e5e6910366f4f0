"""A name that is not there, in words: which names may stand there, cut to the nearest, and which one was meant.

It belongs to no room: hardware, scenario files, options and commands refuse a name in the same words.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST = 5
"""So many candidates are named; of more only the nearest, and how many others there are."""

_ALIKE = 0.6
"""From that ratio of difflib on, a name is taken for a misspelling of another (difflib's own default)."""

_LONGEST = 256
"""No name is longer: of what users send only this much is compared, which takes time by its square."""


def must_be(name: object, known: Iterable[object]) -> str:
    """``must be one of a, b, c (did you mean b?)``, to stand after the name that is none of the known ones."""
    return f"must be one of {among(name, known)}"


def among(name: object, known: Iterable[object]) -> str:
    """``a, b, c (did you mean b?)``: the candidates, and the one that was meant."""
    names = [str(each) for each in known]
    return f"{candidates(name, names)}{did_you_mean(name, names)}"


def candidates(name: object, known: Iterable[object]) -> str:
    """Return all known names in their order, or of more than six the nearest five and how many others there are."""
    names = [str(each) for each in known]
    if len(names) <= MOST + 1:
        return ", ".join(names) or "(none)"
    return f"{', '.join(nearest(name, names))} or {len(names) - MOST} others"


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """`` (did you mean X?)`` where a known name is spelt alike, or has this one within; else ""."""
    wanted = str(name).lower()
    best = next(iter(nearest(name, known)), None)
    if best is None or best == name:
        return ""
    alike = _ratio(wanted, best.lower()) >= _ALIKE or _is_part(wanted, best.lower())
    return f" (did you mean {best}?)" if alike else ""


def nearest(name: object, known: Iterable[object], most: int = MOST) -> list[str]:
    """Return the names spelt most alike first; those that are equally far in their own order."""
    wanted = str(name).lower()
    names = [str(each) for each in known]
    far = {each: (not _is_part(wanted, each.lower()), -_ratio(wanted, each.lower())) for each in names}
    return sorted(names, key=far.__getitem__)[:most]


def _is_part(wanted: str, name: str) -> bool:
    """Return whether it is written within the name; a letter or two are written within everything."""
    return len(wanted) > 2 and wanted in name


def _ratio(one: str, other: str) -> float:
    from difflib import SequenceMatcher  # A name that is not there ends most runs: the others do without.

    return SequenceMatcher(None, one[:_LONGEST], other[:_LONGEST]).ratio()

"""Indexes of a Job's pods, as its status and its success policy write them: ``1,3-5,7``."""

from __future__ import annotations

import re
from collections.abc import Iterator


class IndexListError(ValueError):
    """What cannot be read of a list of indexes."""


def total_of(text: str, completions: int) -> int:
    """Return how many indexes are in it, all below the number of completions."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if total and last >= first:
            raise IndexListError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        what = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexListError(f'the fragment "{text}" {what}')
    first, *rest = (_index(part, completions) for part in parts)
    if rest and first >= rest[0]:
        raise IndexListError(f"non-increasing order, previous: {first}, current: {rest[0]}")
    return first, rest[0] if rest else first


def _index(text: str, completions: int) -> int:
    if not re.fullmatch(r"[+]?[0-9]+", text, re.ASCII):
        raise IndexListError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise IndexListError(f'too large index: "{text}"')
    return int(text)


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Return the first index that is in both lists; parts that cannot be read are passed over."""
    common = [
        max(first, other_first)
        for first, end in _readable(completed, completions)
        for other_first, other_end in _readable(failed, completions)
        if first <= other_end and other_first <= end
    ]
    return min(common, default=None)


def _readable(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(",") if text else ():
        try:
            yield _interval(part, completions)
        except IndexListError:
            continue

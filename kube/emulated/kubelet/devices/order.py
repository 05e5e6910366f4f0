"""The order in which the kubelet's Go code walks a set (contract kubelet.md section 3)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shuffled(items: Iterable[T], rng: random.Random) -> list[T]:
    """Return the items as Go walks a map of them: a random rotation of the order in which they were put in."""
    ordered = list(items)
    start = rng.randrange(len(ordered)) if ordered else 0
    return ordered[start:] + ordered[:start]


def without(items: Iterable[T], dropped: Iterable[T]) -> tuple[T, ...]:
    """Set difference that keeps the order of ``items``."""
    gone = dict.fromkeys(dropped)
    return tuple(item for item in items if item not in gone)


def union(*groups: Iterable[T]) -> tuple[T, ...]:
    """Set union in the order of first appearance."""
    return tuple(dict.fromkeys(item for group in groups for item in group))


def common(items: Sequence[T], others: Iterable[T]) -> tuple[T, ...]:
    """Set intersection in the order of ``items``, without repeats."""
    kept = dict.fromkeys(others)
    return tuple(item for item in dict.fromkeys(items) if item in kept)

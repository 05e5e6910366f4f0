"""What an evaluation may use up besides Kubernetes' own cost: a time slice at once, and so much work in all. Pure.

Kubernetes charges a comparison of two lists one step for ten members and a search through a list next to nothing per
member; in Go that is fast, here it is not. So the work is counted, too: members and characters that are touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

SLICE = 2_000
"""Steps after which a running evaluation asks its pace whether to go on: about 10 ms."""
WORK_LIMIT = 3_000_000
"""Members touched by one evaluation, its intermediate results included; 64 characters count as one member."""
_CHARACTERS = 64
_CHEAP = frozenset(("size", "_[_]", "_[?_]", "orValue", "or", "hasValue", "value", "type", "dyn", "optional.of"))
"""Functions whose work hangs on no length."""
_PAIRWISE = ("sets.contains", "sets.intersects", "sets.equivalent")


class EvaluationPace(Protocol):
    """Who is asked between two slices."""

    def go_on(self, steps: int) -> None:
        """Return to go on; any exception ends the evaluation there."""
        ...


PACE: ContextVar[EvaluationPace | None] = ContextVar("mews-cel-pace", default=None)
"""The pace of evaluations in this context; None in virtual time, where one runs to its end at once."""


def work_of(name: str, values: list[Any], most: int) -> int:
    """Return the work of a call on those values; just above ``most`` where it is more."""
    if name in _CHEAP:
        return 0
    sizes = [weight(value, most) for value in values if isinstance(value, (list, dict, str, bytes))]
    if name in _PAIRWISE and len(sizes) > 1:
        return sizes[0] * sizes[1]
    if name == "replace" and len(values) > 2 and all(isinstance(value, str) for value in values[:3]):
        times = values[0].count(values[1]) if values[1] else len(values[0]) + 1
        return sum(sizes) + times * len(values[2]) // _CHARACTERS
    if name == "join" and len(values) > 1 and isinstance(values[0], list) and isinstance(values[1], str):
        return sum(sizes) + len(values[0]) * len(values[1]) // _CHARACTERS
    return sum(sizes)


def weight(value: Any, most: int) -> int:
    """Return how many members a value has with all that is in it; what is there twice counts twice."""
    found, waiting = 0, [value]
    while waiting and found <= most:
        each = waiting.pop()
        if isinstance(each, (str, bytes)):
            found += len(each) // _CHARACTERS
        elif isinstance(each, (list, Mapping)):
            found += 1 + len(each)
            waiting.extend(each if isinstance(each, list) else each.values())
    return found

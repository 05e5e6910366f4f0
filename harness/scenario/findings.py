"""What is wrong with a value of a scenario file, with its place; and walking through such values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mews.emulator.yaml_document import Place
from mews.harness.scenario.language.names import is_late
from mews.harness.scenario.match import alternatives
from mews.names import must_be

Finding = tuple[Place, Any, str]
"""A place, the value there, and what is wrong with it or allowed instead."""


def one_of(place: Place, value: Any, allowed: Iterable[str]) -> Iterator[Finding]:
    """A text must be one of these; so must each text that a pattern names as what a value may equal."""
    names = list(allowed)
    for each in alternatives(value):
        if isinstance(each, str) and each not in names and not is_late(each):
            yield place, each, must_be(each, names)


def keys_of(place: Place, value: Any, allowed: Iterable[str]) -> Iterator[Finding]:
    """Yield the keys of a mapping, where it is no operator of a pattern, must be these."""
    names = list(allowed)
    for key in plain(value):
        yield from one_of((*place, key), key, names)


def plain(value: Any) -> Mapping[str, Any]:
    """Return the keys of a pattern that stand for themselves: none where it is an operator."""
    if not isinstance(value, Mapping) or any(str(key).startswith("$") for key in value):
        return {}
    return {str(key): item for key, item in value.items()}


def each_of(place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    """Yield the items of a list, with their places; one thing may stand for a list of one."""
    if isinstance(value, list):
        yield from (((*place, index), item) for index, item in enumerate(value))
    elif value is not None:
        yield place, value

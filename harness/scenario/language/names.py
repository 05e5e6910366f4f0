"""``${name}`` in a scenario: what it stands for, and the text itself where it is written ``$${name}``.

A text that is nothing but ``${name}`` becomes the value with its type; within a longer text it becomes its text.
``${name.key.0}`` goes into a mapping or a list. Files are read in two passes: the first puts in what is known when the
file is read and leaves the outputs of steps alone, the second, ``settled``, puts in those too and takes ``$$`` apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from mews.emulator.yaml_document import Place
from mews.names import among

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_USE = re.compile(r"(\$+)\{([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)\}")

_LATE: Any = object()
"""Stands for what is not known yet."""


class MisusedNameError(ValueError):
    """A use of a name that cannot be; with its place in the value that was looked through."""

    def __init__(self, place: Place, value: Any, reason: str) -> None:
        super().__init__(reason)
        self.place, self.value = place, value


def is_late(value: Any) -> bool:
    """Return whether a value, or what is in it, is only known as the scenario runs."""
    if isinstance(value, str):
        return any(len(use[1]) == 1 for use in _USE.finditer(value))
    if isinstance(value, Mapping):
        return any(is_late(key) or is_late(item) for key, item in value.items())
    return isinstance(value, list) and any(is_late(item) for item in value)


def extent(value: Any) -> int:
    """Return how much there is in a value, in characters; each thing that is no text counts as one."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return 1 + sum(extent(part) for pair in value.items() for part in pair)
    return 1 + sum(map(extent, value)) if isinstance(value, list) else 1


def heads(value: Any) -> set[str]:
    """Return the names that are used in a value, without what of them is picked."""
    if isinstance(value, str):
        return {use[2].partition(".")[0] for use in _USE.finditer(value) if len(use[1]) == 1}
    if isinstance(value, Mapping):
        return {name for pair in value.items() for part in pair for name in heads(part)}
    return {name for item in value for name in heads(item)} if isinstance(value, list) else set()


def escaped(value: Any) -> Any:
    """Return the value so that ``settled`` gives it back."""
    return _mapped(value, lambda text: _USE.sub(lambda use: "$" + use[0], text))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key) if isinstance(key, str) else key: _mapped(item, change) for key, item in value.items()}
    return [_mapped(item, change) for item in value] if isinstance(value, list) else value


def put_in(value: Any, known: Mapping[str, Any], late: Mapping[str, Any], place: Place = ()) -> Any:
    """Return the value with what is known in it; the ``late`` names are left alone, and so is ``$${…}``.

    Raises MisusedNameError for any other name.
    """

    def stands_for(path: str, at: Place, whole: str) -> Any:
        head = path.partition(".")[0]
        if head in known:
            return escaped(_picked(known, path, at, whole))
        if head in late:
            return _LATE
        names = [*known, *late]
        there = among(head, sorted(names))
        reason = f"no such name here; names: {there}; $${{{path}}} is the text itself"
        raise MisusedNameError(at, whole, reason)

    return _filled(value, stands_for, place)


def settled(value: Any, outputs: Mapping[str, Any]) -> Any:
    """Return the value with the outputs of steps in it, and ``$${…}`` as the text that it stands for.

    Raises MisusedNameError for an output, or a part of one, that there is not.
    """

    def stands_for(path: str, at: Place, whole: str) -> Any:
        if path.partition(".")[0] not in outputs:
            raise MisusedNameError(at, whole, "no earlier step sets that output")
        return _picked(outputs, path, at, whole)

    return _filled(value, stands_for, (), last=True)


def sampled(value: Any, samples: Mapping[str, Any]) -> Any:
    """Return it as ``settled``, to check what will only be known later: a part of an output stands as it is written.

    Raises MisusedNameError for a part of an output that has none.
    """

    def stands_for(path: str, at: Place, whole: str) -> Any:
        head, dot, _ = path.partition(".")
        if dot and not isinstance(samples[head], Mapping | list):
            raise MisusedNameError(at, whole, f"the output {head} has no parts: give it the type object or array")
        return f"${{{path}}}" if dot else samples[head]

    return _filled(value, stands_for, (), last=True)


def _picked(values: Mapping[str, Any], path: str, place: Place, whole: str) -> Any:
    current: Any = values
    for part in path.split("."):
        if isinstance(current, Mapping) and part in current:
            current = current[part]
        elif isinstance(current, list) and part.isdigit() and int(part) < len(current):
            current = current[int(part)]
        else:
            inside = list(current) if isinstance(current, Mapping) else []
            there = f"there are {among(part, inside)}" if inside else f"it is {current!r}"
            raise MisusedNameError(place, whole, f"there is no {part!r} in it; {there}")
    return deepcopy(current)


def _filled(value: Any, stands_for: Callable[[str, Place, str], Any], place: Place, *, last: bool = False) -> Any:
    if isinstance(value, str):
        return _filled_text(value, stands_for, place, last=last)
    if isinstance(value, Mapping):
        return {
            _key(key, stands_for, (*place, key), last=last): _filled(item, stands_for, (*place, key), last=last)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_filled(item, stands_for, (*place, index), last=last) for index, item in enumerate(value)]
    return value


def _key(key: Any, stands_for: Callable[[str, Place, str], Any], place: Place, *, last: bool) -> Any:
    found = _filled(key, stands_for, place, last=last) if isinstance(key, str) else key
    if not isinstance(found, str | int | float):
        raise MisusedNameError(place, key, f"is {found!r}: a key must be a text")
    return str(found)


def _filled_text(text: str, stands_for: Callable[[str, Place, str], Any], place: Place, *, last: bool) -> Any:
    alone = _USE.fullmatch(text)
    if alone is not None and len(alone[1]) == 1:
        value = stands_for(alone[2], place, text)
        return text if value is _LATE else value

    def one(use: re.Match[str]) -> str:
        if len(use[1]) > 1:
            return use[0][1:] if last else use[0]
        value = stands_for(use[2], place, text)
        if value is _LATE:
            return use[0]
        if isinstance(value, Mapping | list):
            raise MisusedNameError(
                place, text, f"${{{use[2]}}} is {value!r}: only a text or a number fits within a text"
            )
        return ("true" if value else "false") if isinstance(value, bool) else "" if value is None else str(value)

    return _USE.sub(one, text)

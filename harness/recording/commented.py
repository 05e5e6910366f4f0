"""YAML with comments at places of the document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mews.emulator.yaml_document import Place
from mews.yaml_text import written_yaml

_WIDTH = 116


def commented_yaml(document: Mapping[str, Any], comments: Mapping[Place, Iterable[str]], head: str) -> str:
    """Return the document, ``head`` and the comments of the whole before it, every other comment before what is at its
    place.

    Mappings and sequences that hold no comment below them are written by PyYAML.
    """
    first = [f"# {each}" for each in (head, *(line for line in comments.get((), ())))]
    places = {place for place in comments if place}
    return "\n".join([*map(_one_line, first), *_lines(document, (), comments, places)]) + "\n"


def _lines(value: Any, place: Place, comments: Mapping[Place, Iterable[str]], places: set[Place]) -> Iterable[str]:
    """Yield the lines of a collection, without indentation."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in items:
        here = (*place, key)
        yield from (_one_line(f"# {line}") for line in comments.get(here, ()))
        marked = any(len(other) > len(here) and other[: len(here)] == here for other in places)
        if not marked or not isinstance(item, Mapping | list) or not item:
            yield from written_yaml({key: item} if isinstance(value, Mapping) else [item], width=_WIDTH).splitlines()
            continue
        below = list(_lines(item, here, comments, places))
        if isinstance(value, Mapping):
            yield from written_yaml({key: 0}).splitlines()[0].rpartition(" 0")[:1]
            yield from (f"  {line}" if line else line for line in below)
        else:
            starts = 0 if below[0].startswith("#") else 1
            yield f"- {below[0]}" if starts else "-"
            yield from (f"  {line}" if line else line for line in below[starts:])


def _one_line(text: str) -> str:
    """Return it without line breaks and control characters: they would end the comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)

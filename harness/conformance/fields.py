"""Reads JSON of any type as the type that is wanted: what is of another one is as if it were not there.

The clauses that are about types name it; all others go on with what there is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

LINK = "@odata.id"
MOST_SHOWN = 160
"""Characters of a value in a finding."""
ORIGIN = re.compile(r"https?://[^/]*", re.IGNORECASE)


def shown(value: Any) -> str:
    """Return a JSON value as its reader wrote it, cut short: ``null``, not None."""
    written = json.dumps(value, ensure_ascii=False, default=str)
    return written if len(written) <= MOST_SHOWN else f"{written[:MOST_SHOWN]}…"


def kind_of(value: Any) -> str:
    """Return what JSON calls a value: ``an object``, ``null``."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a boolean"
    names = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), "a value")


def at(value: Any, *names: str) -> Any:
    """Return the member that these names lead to, one inside the other; None where one of them leads nowhere."""
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def members(value: Any, *names: str) -> Mapping[str, Any]:
    """Return the object there; an empty one where there is none."""
    found = at(value, *names)
    return found if isinstance(found, Mapping) else {}


def objects(value: Any, *names: str) -> list[Mapping[str, Any]]:
    """Return the objects of the list there."""
    found = at(value, *names)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def text(value: Any, *names: str) -> str:
    """Return the text there; a number is its digits; else an empty text."""
    found = at(value, *names)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return f"{found:g}" if isinstance(found, float) else str(found)
    return found if isinstance(found, str) else ""


def links(value: Any, *names: str) -> list[str]:
    """Return where the objects of the list there link to."""
    return [link for each in objects(value, *names) if (link := link_of(each))]


def link_of(value: Any) -> str:
    """Return the path that an object's ``@odata.id`` leads to; empty without one."""
    found = at(value, LINK)
    return local(found) if isinstance(found, str) else ""


def local(uri: str) -> str:
    """Return the path of a URI that may name the host too."""
    return ORIGIN.sub("", uri, count=1) if "://" in uri else uri


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every member of every object inside: its place, such as ``Links.Zones[]``, and its value."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            where = f"{place}.{name}" if place else str(name)
            yield where, each
            yield from leaves(each, where)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, f"{place}[]")

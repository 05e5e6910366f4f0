"""The JSONPath of printer columns: fields, indexes, slices, unions and ``[?(@.type=="Ready")]`` filters.

Source: k8s.io/client-go/util/jsonpath (evalArray, evalUnion, evalRecursive).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_STEP = re.compile(
    r"""(?P<deep>\.\.(?=[\w\['*]))?\.?(?:
        (?P<any>\*)
        | (?P<name>[A-Za-z0-9_/\-]+(?:\\\.[A-Za-z0-9_/\-]+)*)
        | \[(?P<quoted>'[^']+'(?:\s*,\s*'[^']+')*)\]
        | \[(?P<index>-?\d+(?:\s*,\s*-?\d+)*)\]
        | \[(?P<slice>-?\d*:-?\d*(?::\d*)?)\]
        | \[(?P<all>\*)\]
        | \[\?\(@\.(?P<field>[\w.]+)\s*==\s*(?P<value>"[^"]*"|'[^']*'|[\w.]+)\)\]
    )""",
    re.VERBOSE,
)


def find(value: Any, path: str) -> list[Any]:
    """Return all values at a path.

    Raises ValueError for a path that cannot be read.
    """
    found = [value]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path}: cannot read the JSONPath from character {position}: {path[position:]!r}")
        found = [item for parent in found for item in _walk(parent, step)]
        position = step.end()
    return found


def _walk(parent: Any, step: re.Match[str]) -> Iterator[Any]:
    for place in _below(parent) if step["deep"] else (parent,):
        yield from _members(place, step)


def _below(value: Any) -> Iterator[Any]:
    """Yield the value and all that is in it."""
    yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inside:
        yield from _below(item)


def _members(parent: Any, step: re.Match[str]) -> Iterator[Any]:
    names = re.findall("'([^']+)'", step["quoted"]) if step["quoted"] else [(step["name"] or "").replace("\\.", ".")]
    if step["any"]:
        yield from parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ()
    elif names[0]:
        yield from (parent[name] for name in names if isinstance(parent, dict) and parent.get(name) is not None)
    elif not isinstance(parent, list):
        return
    elif step["all"]:
        yield from parent
    elif step["field"]:
        wanted = step["value"].strip("\"'")
        for item in parent:
            values = find(item, "." + step["field"])
            if values and str(values[0]) == wanted:
                yield item
    elif step["slice"]:
        yield from _sliced(parent, step["slice"])
    else:
        indexes = [int(index) for index in step["index"].split(",")]
        yield from (parent[index] for index in indexes if -len(parent) <= index < len(parent))


def _sliced(parent: list[Any], text: str) -> list[Any]:
    """``[first:end:step]``; nothing where an index lies outside, as upstream refuses it."""
    first, end, pace = [int(part) if part else None for part in (*text.split(":"), "")[:3]]
    size = len(parent)
    begin = first if first is not None else 0
    begin += size if begin < 0 else 0
    stop = end if end is not None else size
    stop += size if stop < 0 else 0
    if not 0 <= begin < size or not begin <= stop <= size or pace == 0:
        return []
    return parent[begin:stop:pace]

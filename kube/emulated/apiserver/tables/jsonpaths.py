"""The JSONPath of printer columns: fields, indexes and ``[?(@.type=="Ready")]`` filters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_STEP = re.compile(
    r"""\.?(?:
        (?P<name>[A-Za-z0-9_/\-]+(?:\\\.[A-Za-z0-9_/\-]+)*)
        | \['(?P<quoted>[^']+)'\]
        | \[(?P<index>-?\d+)\]
        | \[(?P<all>\*)\]
        | \[\?\(@\.(?P<field>[\w.]+)\s*==\s*(?P<value>"[^"]*"|'[^']*'|[\w.]+)\)\]
    )""",
    re.VERBOSE,
)


def find(value: Any, path: str) -> list[Any]:
    """All values at a path.

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
    name = step["quoted"] or (step["name"] or "").replace("\\.", ".")
    if name:
        if isinstance(parent, dict) and parent.get(name) is not None:
            yield parent[name]
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
    elif -len(parent) <= int(step["index"]) < len(parent):
        yield parent[int(step["index"])]

"""YAML texts from outside: what would exhaust the stack or the memory is refused before it is built."""

from __future__ import annotations

from typing import Any

import yaml

DEEPEST = 100
"""Levels of nesting."""
MOST = 1_000_000
"""Values, aliases counted as what they stand for."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_extent(text: str | bytes, most: int = MOST) -> None:
    """Walk the text's events, which takes neither stack nor memory.

    Raises yaml.YAMLError, also for what is no YAML.
    """
    open_: list[tuple[str | None, int]] = []
    extents: dict[str, int] = {}
    total = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            if len(open_) >= DEEPEST:
                raise yaml.YAMLError(f"nested too deeply: at most {DEEPEST} levels")
            open_.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor is not None:
                extents[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_):
                raise yaml.YAMLError(f"nested too deeply: the anchor {event.anchor!r} contains itself")
            total += extents.get(event.anchor or "", 1)
        else:
            total += 1
        if total > most:
            raise yaml.YAMLError(f"too large: more than {most} values, aliases expanded")

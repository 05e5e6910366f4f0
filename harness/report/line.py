"""One journal line for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.harness.journal import Line

HIDDEN = ("uid", "uuid", "device", "number", "operation", "port", "old_port")


def fields_text(fields: Mapping[str, Any], limit: int = 110) -> str:
    """``key=value`` pairs, without what only programs need, cut to fit a line."""
    parts = [
        f"{name}={_short(value)}" for name, value in fields.items() if name not in HIDDEN and value not in ("", None)
    ]
    text = " ".join(parts)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def plain(line: Line) -> str:
    """``   12.345  chassis  chassis/A  detached  gpuid=0-000100 …``."""
    return f"{line.t:10.3f}  {line.layer:9}  {line.actor:24}  {line.event:18} {fields_text(line.fields)}".rstrip()


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_short, value)) + "]"
    return str(value)

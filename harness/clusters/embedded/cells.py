"""Columns and cells of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Cell = str | int | float | bool | None
Row = list[Cell]


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column; priority 1 shows with ``-o wide`` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def shown(self) -> dict[str, Any]:
        """As in ``columnDefinitions``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.name,
            "priority": self.priority,
        }


def none_if_empty(text: str | None) -> str:
    """``<none>`` for what is missing."""
    return text or "<none>"

"""Columns and cells of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.tables.durations import age

Cell = str | int | float | bool | None
Row = list[Cell]


class ColumnSpec(Struct, frozen=True):
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


class Printer(Struct, frozen=True):
    """Columns, and the cells of one object at a time (unix seconds)."""

    columns: Sequence[ColumnSpec]
    cells: Callable[[Object, float], Row]
    conditions: Callable[[Object], list[dict[str, Any]]] | None = None
    nothing_is_null: bool = False


def meta_age(obj: Object, now_s: float) -> str:
    """How old an object is."""
    return age(obj["metadata"].get("creationTimestamp"), now_s)


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Write labels as ``a=b,c=d``."""
    return none_if_empty(",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())))


_OPERATORS = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A metav1.LabelSelector as one would type it."""
    selector = selector or {}
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        terms.append((key, _OPERATORS.get(expression["operator"], "<error>").format(key, values)))
    return none_if_empty(",".join(text for _, text in sorted(terms)))

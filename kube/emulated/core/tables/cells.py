"""Columns and cells of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.core.tables.durations import age
from mews.kube.releases.release_data import merged

Cell = str | int | float | bool | None
Row = list[Cell]


Cells = Callable[[Object, float], Row]
"""The cells of an object, or those between its name and its age."""


class ColumnSpec(Struct, frozen=True):
    """A column; priority 1 shows with ``-o wide`` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def shown(self) -> dict[str, Any]:
        """Return them as in ``columnDefinitions``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.name,
            "priority": self.priority,
        }


NAME = ColumnSpec("Name", format="name")
DATED = (NAME, ColumnSpec("Created At", type="date"))
"""Of a kind that upstream has no printer for."""


@cache
def columns_of(release: str, qualified: str) -> tuple[ColumnSpec, ...]:
    """Return the columns of a built-in kind in a release (``columns.json``), by its qualified plural."""
    lines = merged(release, "columns.json").get(qualified)
    return DATED if lines is None else tuple(map(_column, lines))


def _column(line: str) -> ColumnSpec:
    name, _, words = line.partition(": ")
    type_, *others = words.split()
    return ColumnSpec(name, type_, "name" if "name" in others else "", 1 if "wide" in others else 0)


def none_if_empty(text: str | None) -> str:
    """``<none>`` for what is missing."""
    return text or "<none>"


class Printer(Struct, frozen=True):
    """The cells of one object at a time (unix seconds)."""

    cells: Cells
    conditions: Callable[[Object], list[dict[str, Any]]] | None = None
    nothing_is_null: bool = False
    """Whether a table of no objects has no list of rows."""
    order: Callable[[Object], Any] | None = None
    """By what they are sorted, where that is not their names."""
    is_part: bool = False
    """Whether the cells lack the name, which comes first, and the age, which comes wherever its column is."""

    def row(self, columns: Sequence[ColumnSpec], obj: Object, now_s: float) -> Row:
        """Return all cells of an object."""
        if not self.is_part:
            return self.cells(obj, now_s)
        row: Row = [obj["metadata"]["name"], *self.cells(obj, now_s)]
        place = next((index for index, column in enumerate(columns) if column.name == "Age"), None)
        if place is not None:
            row.insert(place, meta_age(obj, now_s))
        return row[: len(columns)]


def spec_of(obj: Object) -> Mapping[str, Any]:
    """Return the spec of an object, empty where it has none."""
    return obj.get("spec") or {}


def parameter_kind(policy: Object) -> str:
    """Return the kind of an admission policy's parameters."""
    kind = spec_of(policy).get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"


def meta_age(obj: Object, now_s: float) -> str:
    """Return how old an object is."""
    return age(obj["metadata"].get("creationTimestamp"), now_s)


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Write labels as ``a=b,c=d``."""
    return none_if_empty(",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())))


_OPERATORS = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Return a metav1.LabelSelector as one would type it."""
    selector = selector or {}
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        terms.append((key, _OPERATORS.get(expression["operator"], "<error>").format(key, values)))
    return none_if_empty(",".join(text for _, text in sorted(terms)))


def status_of(obj: Object) -> Mapping[str, Any]:
    """Return the status of an object, empty where it has none."""
    return obj.get("status") or {}


def field_cell(*path: str, default: Any = "") -> Cells:
    """Return what makes the one cell of a field."""

    def part(obj: Object, _: float) -> Row:
        value: Any = obj
        for name in path:
            value = (value or {}).get(name)
        return [default if value is None else value]

    return part


def count_cell(name: str) -> Cells:
    """Return what makes the one cell of a length."""
    return lambda obj, _: [len(obj.get(name) or ())]


def first_texts(shown: Sequence[str], total: int, most: int = 3) -> str:
    """Return the first texts, and how many more there are."""
    text = ",".join(shown[:most])
    return f"{text} + {total - most} more..." if total > most else none_if_empty(text)

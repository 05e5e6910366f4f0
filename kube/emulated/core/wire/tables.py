"""Tables for ``kubectl get``: columns and rows per kind (contract apiserver.md section 6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.errors import BadRequestError
from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.kinds import Column, Kind
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.core.tables import jsonpaths
from mews.kube.emulated.core.tables.cells import (
    DATED,
    NAME,
    Cell,
    ColumnSpec,
    Printer,
    Row,
    columns_of,
    meta_age,
)
from mews.kube.emulated.core.tables.durations import age

_PLAIN = (NAME, ColumnSpec("Age"))


def _plain(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], meta_age(obj, now_s)]


def _printer(kind: Kind, own: Printer | None) -> tuple[Sequence[ColumnSpec], Printer]:
    """Return the columns of a kind, and what makes its cells: its ``own``, where it has columns of its own."""
    if kind.custom:
        return _custom(kind)
    group, plural = kind.storage
    qualified = f"{plural}.{group}" if group else plural
    columns = columns_of(kind.release, qualified)
    if columns is DATED:
        return columns, Printer(_created, nothing_is_null=True)
    return (_PLAIN, Printer(_plain)) if columns == _PLAIN or own is None else (columns, own)


def _created(obj: Object, _: float) -> Row:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp", "")]


def _custom(kind: Kind) -> tuple[Sequence[ColumnSpec], Printer]:
    if not kind.columns:
        return (NAME, ColumnSpec("Age", type="date")), Printer(_plain)
    columns = [
        ColumnSpec(column.name, type=column.type, format=column.format, priority=column.priority)
        for column in kind.columns
    ]

    def cells(obj: Object, now_s: float) -> Row:
        return [obj["metadata"]["name"], *(_custom_cell(column, obj, now_s) for column in kind.columns)]

    return (NAME, *columns), Printer(cells)


def _custom_cell(column: Column, obj: Object, now_s: float) -> Cell:
    found = jsonpaths.find(obj, column.json_path)
    if not found:
        return None
    value = found[0]
    if column.type == "date":
        return age(value, now_s)
    if column.type == "string":
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value if isinstance(value, (int, float, bool)) else str(value)


def table(
    kind: Kind,
    objects: Sequence[Object],
    own: Printer | None,
    *,
    now_s: float,
    metadata: Mapping[str, Any],
    include: str = "Metadata",
    version: str = "v1",
    head: bool = True,
) -> dict[str, Any]:
    """Return the meta.k8s.io Table of objects; ``include`` is None, Metadata or Object; ``own`` makes the cells of
    the kind."""
    columns, printer = _printer(kind, own)
    rows = []
    for obj in sorted(objects, key=printer.order) if printer.order else objects:
        row: dict[str, Any] = {"cells": printer.row(columns, view_of(kind).store(obj), now_s)}
        if printer.conditions is not None and (conditions := printer.conditions(obj)):
            row["conditions"] = conditions
        row["object"] = _included(obj, include, version)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(metadata),
        "columnDefinitions": [column.shown() for column in columns] if head else None,
        "rows": None if printer.nothing_is_null and not rows else rows,
    }


_OF_A_VERSION = "deprecated.daemonset.template.generation"
"""An annotation of DaemonSets that is a field in the types within the server."""


def _included(obj: Object, include: str, version: str) -> Object | None:
    match include:
        case "None":
            return None
        case "Object":
            return obj
        case "Metadata":
            return partial(obj, version)
    text = f"includeObject: Invalid value: {json.dumps(include)}: must be 'Metadata', 'Object', 'None', or empty"
    raise BadRequestError(f"Unable to convert to Table as requested: {text}")


def empty_cells(kind: Kind, own: Printer | None) -> Row:
    """Return the cells of an object that has nothing but its kind."""
    columns, printer = _printer(kind, own)
    try:
        return printer.row(columns, {"metadata": {"name": ""}}, 0.0)
    except KeyError:
        return ["" for _ in columns]


def partial(obj: Object, version: str = "v1") -> Object:
    """Return an object's metadata alone (PartialObjectMetadata), as the server's internal types hold it."""
    metadata = obj["metadata"]
    if _OF_A_VERSION in (metadata.get("annotations") or {}):
        others = {key: text for key, text in metadata["annotations"].items() if key != _OF_A_VERSION}
        metadata = {key: value for key, value in metadata.items() if key != "annotations"}
        metadata |= {"annotations": others} if others else {}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}

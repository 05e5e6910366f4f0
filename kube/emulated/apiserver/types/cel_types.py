"""The types of built-in and custom kinds as CEL sees them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from mews.kube.cel.checking import DYN, CelType, ListType, MapType, StructType
from mews.kube.emulated.apiserver.store.kinds import Kind
from mews.kube.emulated.apiserver.types.gotypes import root_of, struct

_SCALARS: Mapping[str, CelType] = {
    "string": "string",
    "int32": "int",
    "int64": "int",
    "float64": "double",
    "bool": "bool",
    "bytes": "bytes",
    "time": "google.protobuf.Timestamp",
    "microtime": "google.protobuf.Timestamp",
    "quantity": DYN,
    "intstr": DYN,
    "fields": DYN,
    "raw": DYN,
    "any": DYN,
}


def kind_type(kind: Kind) -> CelType:
    """The type of a kind's objects."""
    if kind.custom:
        return _custom_root(kind)
    root = root_of(kind.resource)
    return DYN if root is None else _builtin(root.ref)


@cache
def _builtin(type_: str) -> CelType:
    if type_ in _SCALARS:
        return _SCALARS[type_]
    if type_.startswith("[]"):
        return ListType(_builtin(type_[2:]))
    if type_.startswith("{}"):
        return MapType(_builtin(type_[2:]))
    fields = struct(type_).fields

    def field(name: str) -> CelType | None:
        found = fields.get(name)
        return None if found is None else _builtin(found.type)

    return StructType(type_, field)


def _custom_root(kind: Kind) -> CelType:
    schema = kind.schema or {}
    metadata = _builtin("meta/v1.ObjectMeta")
    head: Mapping[str, CelType] = {"apiVersion": "string", "kind": "string", "metadata": metadata}
    whole = schema_type(schema)

    def field(name: str) -> CelType | None:
        if name in head:
            return head[name]
        return whole.field(name) if isinstance(whole, StructType) else DYN

    return StructType(kind.resource.kind, field)


def schema_type(schema: Mapping[str, Any]) -> CelType:
    """The type that a structural schema describes."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    match schema.get("type"):
        case "array":
            return ListType(schema_type(schema.get("items") or {}))
        case "integer":
            return "int"
        case "number":
            return "double"
        case "boolean":
            return "bool"
        case "string":
            formats = {"date-time": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
            return formats.get(schema.get("format", ""), "string")
        case "object" if not schema.get("x-kubernetes-preserve-unknown-fields"):
            return _object_type(schema)
    return DYN


def _object_type(schema: Mapping[str, Any]) -> CelType:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        return MapType(schema_type(extra))
    if not properties:
        return DYN

    def field(name: str) -> CelType | None:
        return schema_type(properties[name]) if name in properties else None

    return StructType("object", field)

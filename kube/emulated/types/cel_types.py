"""What CEL sees of objects: the types of built-in kinds, those of a schema with their sizes, and values by it.

Source: k8s.io/apiserver/pkg/cel (types.go, escaping.go, limits.go) and its common (schemas.go, valuesunstructured.go).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct, field

from mews.kube.cel import types
from mews.kube.cel.types import Type
from mews.kube.cel.values import CelError, Duration, Listed, Record, Timestamp
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.types import gotypes

Schema = Mapping[str, Any]

_REQUEST = 3 * 1024 * 1024
"""Bytes of the largest request: what bounds all that has no bound of its own."""
_KEYWORDS = frozenset((
    *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",),
    *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while",),
))  # fmt: skip
_STRING: Schema = {"type": "string"}
_HEAD: Mapping[str, Schema] = {
    "kind": _STRING,
    "apiVersion": _STRING,
    "metadata": {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}},
}


def escaped(name: str) -> str:
    """Return a property's name as CEL can say it, "" for one that it cannot."""
    if not name or name[0].isdigit() or re.search(r"[^a-zA-Z0-9\-./_]", name):
        return ""
    if name in _KEYWORDS:
        return f"__{name}__"
    words = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
    return re.sub(r"__|[-./]", lambda match: words[match[0]], name)


class Declared(Struct, frozen=True):
    """A type with the most elements and the fewest bytes of its values."""

    type: Type
    most: int = 0
    least_bytes: int = 1
    fields: Mapping[str, Declared] = field(default_factory=dict)
    item: Declared | None = None
    key: Declared | None = None

    def size_at(self, path: tuple[str, ...]) -> int | None:
        """Return the most elements of what is at a path below ``self``, None for a path that leads nowhere."""
        place: Declared | None = self
        for name in path[1:]:
            if place is None:
                return None
            if name in ("@items", "@values"):
                place = place.item
            elif name == "@keys":
                place = place.key
            else:
                place = place.fields.get(name)
        return place.most if place is not None else None


_KEY = Declared(types.STRING, 0, 2)


def declared(schema: Schema | None, name: str, *, is_root: bool = False) -> Declared | None:
    """Return the type of a schema's values, None where rules may not look; ``name`` is what an object's type is
    called."""
    if not isinstance(schema, Mapping):
        return None
    if schema.get("x-kubernetes-int-or-string"):
        return Declared(types.DYN, _text_size(schema), 1)
    if is_root:
        schema = with_head(schema)
    match schema.get("type"):
        case "array":
            return _array(schema, name)
        case "object":
            return _object(schema, name)
        case "string":
            return _string(schema)
        case "boolean":
            return Declared(types.BOOL, 0, 4)
        case "number":
            return Declared(types.DOUBLE, 0, 1)
        case "integer":
            return Declared(types.INT, 0, 1)
    return None


def with_head(schema: Schema) -> Schema:
    """Return the schema of a resource, with the parts of its head that rules may always look at."""
    properties = schema.get("properties") or {}
    names = ((properties.get("metadata") or {}).get("properties") or {}).keys()
    if {"kind", "apiVersion"} <= properties.keys() and {"name", "generateName"} <= names:
        return schema
    return {**schema, "properties": {**properties, **_HEAD}}


def _is_embedded(schema: Any) -> bool:
    return isinstance(schema, Mapping) and bool(schema.get("x-kubernetes-embedded-resource"))


def _array(schema: Schema, name: str) -> Declared | None:
    items = schema.get("items")
    item = declared(items, f"{name}.@idx", is_root=_is_embedded(items))
    if item is None:
        return None
    most = schema.get("maxItems")
    most = max(most, 0) if most is not None else (_REQUEST - 2) // (item.least_bytes + 1)
    return Declared(types.list_of(item.type), most, 2, item=item)


def _object(schema: Schema, name: str) -> Declared | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        value = declared(extra, f"{name}.@elem", is_root=_is_embedded(extra))
        if value is None:
            return None
        most = schema.get("maxProperties")
        most = max(most, 0) if most is not None else (_REQUEST - 2) // (value.least_bytes + 6)
        return Declared(types.map_of(types.STRING, value.type), most, 2, item=value, key=_KEY)
    fields, least = {}, 2
    required = schema.get("required") or ()
    for key, child in (schema.get("properties") or {}).items():
        word = escaped(key)
        found = declared(child, f"{name}.{word or key}", is_root=_is_embedded(child))
        if found is None:
            continue
        if word:
            fields[word] = found
        if key in required and child.get("default") is None:
            least += len(key.encode()) + found.least_bytes + 4
    shape = types.struct(name, {key: one.type for key, one in fields.items()})
    return Declared(shape, 0, least, fields=fields)


def _text_size(schema: Schema) -> int:
    longest = schema.get("maxLength")
    return max(longest, 0) * 4 if longest is not None else _REQUEST - 2


def _string(schema: Schema) -> Declared:
    match schema.get("format"):
        case "byte":
            longest = schema.get("maxLength")
            return Declared(types.BYTES, max(longest, 0) if longest is not None else _REQUEST - 2, 2)
        case "duration":
            return Declared(types.DURATION, 32, 3)
        case "date":
            return Declared(types.TIMESTAMP, 12, 12)
        case "date-time":
            return Declared(types.TIMESTAMP, 32, 21)
    if schema.get("maxLength") is None and schema.get("enum"):
        return Declared(
            types.STRING, max((len(v.encode()) for v in schema["enum"] if isinstance(v, str)), default=0), 2
        )
    return Declared(types.STRING, _text_size(schema), 2)


def cardinality(least_bytes: int) -> int:
    """Return how many values of so many bytes a request holds."""
    return _REQUEST // (least_bytes + 1)


def value_of(value: Any, schema: Schema | None, *, is_root: bool = False) -> Any:
    """Return a JSON value as CEL has it.

    Raises ``CelError`` for one that its schema does not know.
    """
    if value is None or not isinstance(schema, Mapping):
        return value
    if schema.get("x-kubernetes-int-or-string"):
        return value
    if is_root or _is_embedded(schema):
        schema = with_head(schema)
    if isinstance(value, dict):
        return _record(value, schema)
    if isinstance(value, list):
        return _listed([value_of(item, schema.get("items")) for item in value], schema)
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if schema.get("type") == "integer" and isinstance(value, float):
        return int(value)
    return _text(value, schema.get("format")) if isinstance(value, str) and schema.get("type") == "string" else value


def _record(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        return {key: value_of(item, extra) for key, item in value.items()}
    found = Record()
    for key, item in value.items():
        if key in properties and (word := escaped(key)):
            found[word] = value_of(item, properties[key])
    return found


def _listed(items: list[Any], schema: Schema) -> list[Any]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        return Listed(items, tuple(escaped(key) for key in schema.get("x-kubernetes-list-map-keys") or ()))
    return Listed(items) if kind == "set" else items


def _text(value: str, format_: Any) -> Any:
    try:
        if format_ == "duration":
            return Duration.parse(value)
        if format_ == "date":
            return Timestamp.parse(f"{value}T00:00:00Z")
        if format_ == "date-time":
            return Timestamp.parse(value)
        return base64.b64decode(value) if format_ == "byte" else value
    except (CelError, binascii.Error, ValueError) as error:
        raise CelError(f"Invalid {format_} {value}: {error}") from None


# Kinds

_SCALARS: Mapping[str, Type] = {
    "string": types.STRING,
    "int32": types.INT,
    "int64": types.INT,
    "float64": types.DOUBLE,
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "time": types.TIMESTAMP,
    "microtime": types.TIMESTAMP,
}


def kind_type(kind: Kind) -> Type:
    """Return the type of a kind's objects."""
    if not kind.custom:
        root = gotypes.root_of(kind.resource, kind.release)
        return types.DYN if root is None else _builtin(root.ref)
    found = declared(kind.schema or {}, kind.resource.kind, is_root=True)
    if found is None or found.type.fields is None:
        return types.DYN
    head = {"apiVersion": types.STRING, "kind": types.STRING, "metadata": _builtin("meta/v1.ObjectMeta")}
    return types.struct(kind.resource.kind, {**found.type.fields, **head})


@cache
def _builtin(type_: str) -> Type:
    if type_.startswith("[]"):
        return types.list_of(_builtin(type_[2:]))
    if type_.startswith("{}"):
        return types.map_of(types.STRING, _builtin(type_[2:]))
    if type_ in gotypes.SCALARS:
        return _SCALARS.get(type_, types.DYN)
    return types.struct(gotypes.plain_ref(type_), _StructFields(gotypes.struct(type_).fields))


class _StructFields(Mapping[str, Type]):
    """The fields of a Go struct, whose types are made when they are asked for: structs may hold themselves."""

    def __init__(self, fields: Mapping[str, gotypes.Field]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Type:
        return _builtin(self._fields[name].type)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

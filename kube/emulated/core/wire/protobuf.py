"""Protobuf bodies, as Go clients send them (contract apiserver.md section 1): ``k8s\\0`` + runtime.Unknown.

Which field has which number is in ``wire_numbers.json``, and for later releases and versions that are off by default
in ``wire.json`` of ``kube/releases``; what a field is in ``gotypes``.
"""

from __future__ import annotations

import base64
import json
import struct as packing
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from mews.kube.api.errors import ApiError, BadRequestError
from mews.kube.api.objects import timestamp
from mews.kube.emulated.types import gotypes
from mews.kube.emulated.types.gotypes import release_mark
from mews.kube.releases.release_data import DEFAULT, merged

MAGIC = b"k8s\x00"

Fields = Mapping[int, tuple[str, str]]
"""Number -> name and type, in the words of ``gotypes``; the name is "" where a message's fields are the struct's."""

_UNKNOWN: Fields = {1: ("typeMeta", "TypeMeta"), 2: ("raw", "body"), 3: ("", "string"), 4: ("", "string")}
_TYPE_META: Fields = {1: ("apiVersion", "string"), 2: ("kind", "string")}
_WRAPPED: Mapping[str, Fields] = {
    "TypeMeta": _TYPE_META,
    "time": {1: ("seconds", "int64"), 2: ("nanos", "int32")},
    "microtime": {1: ("seconds", "int64"), 2: ("nanos", "int32")},
    "quantity": {1: ("value", "string")},
    "intstr": {1: ("type", "int64"), 2: ("number", "int32"), 3: ("text", "string")},
    "raw": {1: ("value", "body")},
    "fields": {1: ("value", "body")},
    "any": {1: ("value", "body")},
}

_SCHEMAS: Mapping[str, Fields] = {
    "schemaorlist": {1: ("schema", gotypes.JSON_SCHEMA), 2: ("list", f"[]{gotypes.JSON_SCHEMA}")},
    "schemaorbool": {1: ("allows", "bool"), 2: ("schema", gotypes.JSON_SCHEMA)},
}


def decode(body: bytes, release: str = DEFAULT) -> dict[str, Any]:
    """Return the object in a protobuf body, with the fields that the release has.

    Raises ``ApiError`` 415 for a kind that is not built in, ``BadRequestError`` for broken bytes.
    """
    if not body.startswith(MAGIC):
        raise BadRequestError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        unknown = _message(body[len(MAGIC) :], _UNKNOWN)
        meta = unknown.get("typeMeta", {})
        root = _root(meta.get("apiVersion", ""), meta.get("kind", ""), release)
        return {**meta, **_message(unknown.get("raw", b""), root)}
    except (IndexError, UnicodeDecodeError, AttributeError, TypeError, json.JSONDecodeError) as error:
        raise BadRequestError(f"unable to decode the protobuf body: {error}") from None


def _root(api_version: str, kind: str, release: str) -> Fields:
    group, _, version = api_version.rpartition("/")
    file, name, numbers = group.partition(".")[0] or "core", f"{version}.{kind}", field_numbers(release)
    if f"{file}/{name}" not in numbers:
        file, name = "meta", f"v1.{kind}"  # options bear the version of the group that they are sent to
    if f"{file}/{name}" not in numbers:
        text = f"protobuf of {api_version} {kind} is not decoded here; send application/json"
        raise ApiError(text, code=415, reason="UnsupportedMediaType")
    return _fields(f"{file}{release_mark(release)}/{name}")


@cache
def field_numbers(release: str) -> Mapping[str, str]:
    """Return the fields of every message in a release: struct -> numbers and names, in turn."""
    file = resources.files(__package__).joinpath("wire_numbers.json")
    found: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8"))
    first: Mapping[str, str] = merged(DEFAULT, "wire.json")
    later = {ref: words for ref, words in merged(release, "wire.json").items() if first.get(ref) != words}
    return {**first, **found, **later}


@cache
def _fields(ref: str, of: str = "") -> Fields:
    """Return the fields of a message; those of an embedded one have the types that they have in the struct ``of``."""
    # A few messages write a field otherwise than its JSON is written: Expression, aPIGroup, uID.
    types = {name.lower(): field for name, field in gotypes.struct(of or ref).fields.items()}
    group, _, name_ = ref.partition("/")
    file, _, release = group.partition("@")
    words = field_numbers(release or DEFAULT)[f"{file}/{name_}"].split()
    found = {}
    for number, name in zip(words[::2], words[1::2], strict=True):
        if name.startswith("~"):
            embedded = name.replace("/", f"{release_mark(release or DEFAULT)}/", 1)
            found[int(number)] = ("", f"{embedded} {of or ref}")
        elif name.lower() in types:
            field = types[name.lower()]
            found[int(number)] = (field.name, field.type)
    return found


def _message(data: bytes, fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, raw in _wire(data):
        name, kind = fields.get(number, ("", ""))
        if kind.startswith("~"):
            found.update(_message(raw, _fields(*kind[1:].split())))
        elif kind.startswith("{}"):
            entry = _message(raw, {1: ("key", "string"), 2: ("value", kind[2:])})
            empty: Any = [] if kind.startswith("{}[]") else ""
            found.setdefault(name, {})[entry.get("key", "")] = entry.get("value", empty)
        elif kind.startswith("[]") and name:
            found.setdefault(name, []).append(_value(raw, kind[2:]))
        elif name:
            found[name] = _value(raw, kind)
    return found


def _value(raw: Any, kind: str) -> Any:
    match kind:
        case "string":
            return raw.decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "body":
            return raw
        case "int32" | "int64":
            return raw - (1 << 64) if raw >= 1 << 63 else raw
        case "bool":
            return bool(raw)
        case "float64":
            return packing.unpack("<d", raw)[0]
    if kind in _SCHEMAS:
        inner = _message(raw, _SCHEMAS[kind])
        return inner.get("list", inner.get("schema", inner.get("allows", False)))
    if kind in _WRAPPED:
        return _unwrapped(_message(raw, _WRAPPED[kind]), kind)
    if kind.startswith("[]"):  # the value of a map of lists
        return _message(raw, {1: ("items", kind)}).get("items", [])
    return _message(raw, _fields(kind))


def _unwrapped(inner: dict[str, Any], kind: str) -> Any:
    match kind:
        case "time":
            return timestamp(inner["seconds"]) if inner.get("seconds") else None
        case "microtime":
            if not inner.get("seconds"):
                return None
            return f"{timestamp(inner['seconds'])[:-1]}.{inner.get('nanos', 0) // 1000:06d}Z"
        case "quantity":
            return inner.get("value", "0")
        case "intstr":
            return inner.get("text", "") if inner.get("type") else inner.get("number", 0)
        case "raw" | "fields" | "any":
            return json.loads(inner.get("value") or b"null")
    return inner


def _wire(data: bytes) -> Iterator[tuple[int, Any]]:
    """Fields of a message as (number, integer or bytes)."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire_type == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise IndexError("unexpected EOF")
            yield number, data[position : position + length]
            position += length
        else:
            width = {1: 8, 5: 4}.get(wire_type)
            if width is None:
                raise IndexError(f"illegal wireType {wire_type}")
            yield number, data[position : position + width]
            position += width


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7

"""Whether the schema of a custom kind is a structural one, and what else must hold of it (contract apiserver.md
section 7; k8s.io/apiextensions-apiserver/pkg/apiserver/schema and its validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError
from mews.kube.emulated.apiserver.types import schemas

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LOGICAL = ("allOf", "anyOf", "oneOf", "not")
_NOT_IN_LOGIC = ("type", "default", "additionalProperties", "nullable", "description", "title", "format")
_UNSUPPORTED = ("$ref", "definitions", "dependencies", "deprecated", "discriminator", "id", "patternProperties",
                "readOnly", "writeOnly", "xml")  # fmt: skip


def faults(schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with the schema of a version, which is at that path."""
    return [*_node(schema, path, "")]


def _node(schema: Schema, path: str, place: str) -> Iterator[FieldError]:
    yield from _supported(schema, path)
    yield from _typed(schema, path, place)
    yield from _listed(schema, path)
    yield from _valued(schema, path)
    for logical in _LOGICAL:
        given = schema.get(logical)
        branches = [given] if isinstance(given, Mapping) else given or []
        for index, branch in enumerate(branches):
            yield from _logical(branch, f"{path}.not" if logical == "not" else f"{path}.{logical}[{index}]")
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if properties and extra:
        text = "additionalProperties and properties are mutual exclusive"
        yield refusals.forbidden_field(f"{path}.additionalProperties", text)
    for name, child in properties.items():
        yield from _node(child, f"{path}.properties[{name}]", "specified object fields")
    if isinstance(extra, Mapping):
        yield from _node(extra, f"{path}.additionalProperties", "specified object fields")
    if isinstance(schema.get("items"), Mapping):
        yield from _node(schema["items"], f"{path}.items", "specified array items")


def _supported(schema: Schema, path: str) -> Iterator[FieldError]:
    for word in _UNSUPPORTED:
        if schema.get(word):
            yield refusals.forbidden_field(f"{path}.{word}", f"{word} is not supported")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield refusals.forbidden_field(f"{path}.uniqueItems", text)


def _typed(schema: Schema, path: str, place: str) -> Iterator[FieldError]:
    type_ = schema.get("type", "")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not type_ and not free:
        yield refusals.required(f"{path}.type", f"must not be empty for {place or 'root'}")
    elif type_ and type_ not in _TYPES:
        yield refusals.unsupported(f"{path}.type", type_, _TYPES)
    if type_ == "array" and not schema.get("items"):
        yield refusals.required(f"{path}.items", "must be specified")


def _listed(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    item = schema.get("items") or {}
    where = f"{path}.x-kubernetes-list-map-keys"
    if kind == "map" and not keys:
        yield refusals.required(where, "must not be empty if x-kubernetes-list-type is map")
    elif kind == "map" and not set(keys) <= set(item.get("properties") or {}):
        yield refusals.bad(where, list(keys), "entries must all be names of item properties")
    if kind == "set" and item.get("type") == "object" and item.get("x-kubernetes-map-type") != "atomic":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield refusals.bad(f"{path}.items.x-kubernetes-map-type", item.get("x-kubernetes-map-type"), text)


def _valued(schema: Schema, path: str) -> Iterator[FieldError]:
    if "default" in schema:
        for fault in schemas.faults(schema["default"], {**schema, "x-kubernetes-validations": []}, ""):
            at = f"{path}.default" if fault.path in ("", "<nil>") else f"{path}.default.{fault.path}"
            yield FieldError(at, fault.reason, fault.text)
    if "pattern" in schema:
        try:
            re.compile(schema["pattern"])
        except re.error as error:
            text = f"must be a valid regular expression, but isn't: error parsing regexp: {_regexp(str(error))}"
            yield refusals.bad(f"{path}.pattern", schema["pattern"], f"{text}: `{schema['pattern']}`")
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        if not rule.get("rule", "").strip():
            yield refusals.required(f"{path}.x-kubernetes-validations[{index}].rule", "rule is not specified")


def _regexp(text: str) -> str:
    return "missing closing )" if "unterminated subpattern" in text else text


def _logical(schema: Schema, path: str) -> Iterator[FieldError]:
    """Below allOf and the like nothing may be told that belongs to the structure."""
    for word in _NOT_IN_LOGIC:
        if schema.get(word):
            yield refusals.forbidden_field(f"{path}.{word}", "must be empty to be structural")
    for name, child in (schema.get("properties") or {}).items():
        yield from _logical(child, f"{path}.properties[{name}]")

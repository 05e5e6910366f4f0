"""What must hold of the schema of a version besides being structural: words that are not supported, list and map types,
places of defaults, and rules. Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.custom import field_paths, go_text, structural
from mews.kube.emulated.types.custom.trees import ROOT_FIELDS

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "set", "map")
_LIST, _KEYS, _MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_RULES = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NEWLINE = re.compile(r"[\n\r]")


class Place(Struct, frozen=True):
    """Where in the schema a part is: why defaults may not be there, and whether it is within a resource's head."""

    no_defaults: str = ""
    in_head: bool = False


def schema_errors(schema: Schema, path: str) -> list[FieldError]:
    """Return what is wrong with the schema at that path."""
    return [*_errors(schema, path, Place(), is_root=True)]


def _errors(schema: Schema | None, path: str, place: Place, *, is_root: bool = False) -> Iterator[FieldError]:
    if not isinstance(schema, Mapping):
        return
    yield from _standard(schema, path, place)
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield refusals.forbidden_field(f"{path}.uniqueItems", text)
    yield from _children(schema, path, place, is_root=is_root)
    yield from _kinds_of_maps_and_lists(schema, path)
    for index, rule in enumerate(schema.get(_RULES) or ()):
        yield from _rule_errors(rule, schema, f"{path}.{_RULES}[{index}]")


def _standard(schema: Schema, path: str, place: Place) -> Iterator[FieldError]:
    type_ = schema.get("type") or ""
    if type_ and type_ not in _TYPES:
        yield go_text.unsupported(f"{path}.type", type_, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield refusals.forbidden_field(f"{path}.default", f"must not be set {place.no_defaults}")
    for word in ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"):
        if schema.get(word) or (word in ("additionalItems", "dependencies", "$ref") and word in schema):
            yield refusals.forbidden_field(f"{path}.{word}", f"{word} is not supported")
    if type_ == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield refusals.forbidden_field(f"{path}.type", text)
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield refusals.forbidden_field(f"{path}.items", "items must be a schema object and not an array")
    if place.in_head and schema.get("x-kubernetes-embedded-resource"):
        text = "must not be used inside of resource meta"
        yield refusals.forbidden_field(f"{path}.x-kubernetes-embedded-resource", text)


def _children(schema: Schema, path: str, place: Place, *, is_root: bool) -> Iterator[FieldError]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if extra is not None:
        if properties and extra is not True:
            text = "additionalProperties and properties are mutual exclusive"
            yield refusals.forbidden_field(f"{path}.additionalProperties", text)
        text = "inside additionalProperties applying to object metadata"
        inside = replace(place, no_defaults=text) if place.in_head else place
        yield from _errors(extra, f"{path}.additionalProperties", inside)
    for key, child in properties.items():
        inside = place
        if (is_root or schema.get("x-kubernetes-embedded-resource")) and key in ROOT_FIELDS:
            inside = Place(f"in top-level {key}" if is_root else place.no_defaults, in_head=True)
        yield from _errors(child, f"{path}.properties[{key}]", inside)
    yield from _errors(schema.get("not"), f"{path}.not", place)
    for word in ("allOf", "oneOf", "anyOf"):
        for index, branch in enumerate(schema.get(word) or ()):
            yield from _errors(branch, f"{path}.{word}[{index}]", place)
    for key, child in (schema.get("definitions") or {}).items():
        yield from _errors(child, f"{path}.definitions[{key}]", place)
    items = schema.get("items")
    for index, item in enumerate(items if isinstance(items, list) else []):
        yield from _errors(item, f"{path}.items[{index}]", place)
    yield from _errors(items if isinstance(items, Mapping) else None, f"{path}.items", place)
    for key, child in (schema.get("dependencies") or {}).items():
        yield from _errors(child if isinstance(child, Mapping) else None, f"{path}.dependencies[{key}]", place)


def _kinds_of_maps_and_lists(schema: Schema, path: str) -> Iterator[FieldError]:
    type_, map_type, list_type = schema.get("type") or "", schema.get(_MAP), schema.get(_LIST)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield go_text.wrong(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if map_type is not None and type_ != "object":
        yield _of_type(path, type_, f"must be object if {_MAP} is specified")
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield go_text.unsupported(f"{path}.{_MAP}", map_type, ("atomic", "granular"))
    items = schema.get("items")
    if list_type is not None and type_ != "array":
        yield _of_type(path, type_, f"must be array if {_LIST} is specified")
    elif list_type == "set" and isinstance(items, Mapping):
        yield from _set_errors(items, path)
    if list_type is not None and list_type not in _LIST_TYPES:
        yield go_text.unsupported(f"{path}.{_LIST}", list_type, _LIST_TYPES)
    if schema.get(_KEYS) and list_type != "map":
        text = f"must be map if {_KEYS} is non-empty"
        where = f"{path}.{_LIST}"
        yield refusals.required(where, text) if list_type is None else go_text.wrong(where, list_type, text)
    if list_type == "map":
        yield from _map_errors(schema, items, path)
    if list_type in ("set", "map") and isinstance(items, Mapping):
        yield from _key_errors(schema, items, path)


def _of_type(path: str, type_: str, text: str) -> FieldError:
    return go_text.wrong(f"{path}.type", type_, text) if type_ else refusals.required(f"{path}.type", text)


def _set_errors(items: Schema, path: str) -> Iterator[FieldError]:
    """Items of a set are atomic."""
    text = f"must be atomic as item of a list with {_LIST}=set"
    if items.get("type") == "array" and items.get(_LIST) not in (None, "atomic"):
        yield go_text.wrong(f"{path}.items.{_LIST}", items.get(_LIST), text)
    if items.get("type") == "object" and items.get(_MAP) != "atomic":
        yield go_text.wrong(f"{path}.items.{_MAP}", items.get(_LIST), text)


def _map_errors(schema: Schema, items: Any, path: str) -> Iterator[FieldError]:
    keys = schema.get(_KEYS) or []
    if not keys:
        yield refusals.required(f"{path}.{_KEYS}", f"must not be empty if {_LIST} is map")
    if items is None:
        yield refusals.required(f"{path}.items", f"must have a schema if {_LIST} is map")
    if not isinstance(items, Mapping):
        return
    type_ = items.get("type") or ""
    if type_ != "object":
        text = f"must be object if parent array's {_LIST} is map"
        yield go_text.wrong(f"{path}.items.type", type_, text)
        return
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            yield go_text.wrong(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            text = f"must be a scalar type if parent array's {_LIST} is map"
            yield go_text.wrong(f"{path}.items.properties[{key}].type", type_, text)
        if key in keys[:index]:
            yield go_text.wrong(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")


def _key_errors(schema: Schema, items: Schema, path: str) -> Iterator[FieldError]:
    """Keys of a map are always there, and no item is null."""
    list_type = schema[_LIST]
    if items.get("nullable"):
        text = f"cannot be nullable when {_LIST} is {list_type}"
        yield refusals.forbidden_field(f"{path}.items.nullable", text)
    properties, required = items.get("properties") or {}, items.get("required") or ()
    for key in schema.get(_KEYS) or () if list_type == "map" else ():
        if key not in properties:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in required and properties[key].get("default") is None:
            text = f"this property is in {_KEYS}, so it must have a default or be a required property"
            yield refusals.required(f"{where}.default", text)
        if properties[key].get("nullable"):
            text = f"this property is in {_KEYS}, so it cannot be nullable"
            yield refusals.forbidden_field(f"{where}.nullable", text)


def _rule_errors(rule: Mapping[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    message, text = rule.get("message") or "", (rule.get("rule") or "").strip()
    if not text:
        yield refusals.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield go_text.wrong(f"{path}.message", message, "must be non-empty if specified")
    elif _NEWLINE.search(message.strip()):
        yield go_text.wrong(f"{path}.message", message, "must not contain line breaks")
    elif _NEWLINE.search(text) and not message.strip():
        yield refusals.required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        yield refusals.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield go_text.unsupported(f"{path}.reason", rule["reason"], _REASONS)
    where = rule.get("fieldPath") or ""
    if where and not where.strip():
        yield go_text.wrong(f"{path}.fieldPath", where, "must be non-empty if specified")
    if _NEWLINE.search(where):
        yield go_text.wrong(f"{path}.fieldPath", where, "must not contain line breaks")
    if where and not _is_path(where, schema):
        yield go_text.wrong(f"{path}.fieldPath", where, "must be a valid path")


def _is_path(path: str, schema: Schema) -> bool:
    if structural.unsupported(schema):
        return True
    try:
        field_paths.resolve(path, schema)
    except field_paths.FieldPathError:
        return False
    return True

"""Structural schemas of CustomResourceDefinitions: prune, default, validate (contract apiserver.md section 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import clone
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

Schema = Mapping[str, Any]

_ROOT = ("apiVersion", "kind", "metadata")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def prune(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Drop, in place, what the schema does not know, and answer the paths of that; nulls of fields that may
    not be null go too."""
    lost: list[str] = []
    if isinstance(value, dict):
        properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
        for key in list(value):
            if not path and key in _ROOT:
                continue
            child = properties.get(key)
            if child is None and isinstance(extra, Mapping):
                child = extra
            if child is not None:
                if value[key] is None and not child.get("nullable"):
                    del value[key]
                else:
                    lost += prune(value[key], child, _join(path, key))
            elif not free and not extra:
                del value[key]
                lost.append(_join(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            lost += prune(item, schema.get("items") or {}, f"{path}[{index}]")
    return lost


def default(value: Any, schema: Schema) -> None:
    """Fill in defaults, in place, also below what is there."""
    if isinstance(value, dict):
        for key, child in (schema.get("properties") or {}).items():
            if key not in value and "default" in child:
                value[key] = clone(child["default"])
            if key in value:
                default(value[key], child)
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping):
            for item in value.values():
                default(item, extra)
    elif isinstance(value, list):
        for item in value:
            default(item, schema.get("items") or {})


def faults(value: Any, schema: Schema, path: str = "") -> list[FieldError]:
    """What is wrong with a value: type, required, enum, bounds, lengths, pattern."""
    if value is None and schema.get("nullable"):
        return []
    wrong = _type_fault(value, schema, path)
    if wrong is not None:
        return [wrong]
    found = [*_value_faults(value, schema, path)]
    if isinstance(value, dict):
        found += _member_faults(value, schema, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += faults(item, schema.get("items") or {}, f"{path}[{index}]")
        found += _repeated(value, schema, path)
    return found


def _repeated(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    """Items of a set, and keys of a list that is a map, are there once."""
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("set", "map"):
        return
    seen = []
    for index, item in enumerate(value):
        shown = {key: item[key] for key in keys if key in item} if kind == "map" and isinstance(item, dict) else item
        if shown in seen:
            yield refusals.duplicate(f"{path}[{index}]", shown)
        seen.append(shown)


def _type_fault(value: Any, schema: Schema, path: str) -> FieldError | None:
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            return None
        text = f'{_shown(value)}: {path} in body must be of type integer,string: "{type_name(value)}"'
        return FieldError(path, "FieldValueTypeInvalid", text)
    if wanted is None or _is_of(value, wanted):
        return None
    text = f'{_shown(value)}: {path} in body must be of type {wanted}: "{type_name(value)}"'
    return FieldError(path or "<nil>", "FieldValueTypeInvalid", text)


def _is_of(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(wanted, (object,)))


def type_name(value: Any) -> str:
    """A value's type as a schema names it."""
    if value is None:
        return "null"
    return next(name for name in ("boolean", "integer", "number", "string", "array", "object") if _is_of(value, name))


def _shown(value: Any) -> str:
    """A value as the validator prints it: maps and lists by their Go type, strings quoted as JSON."""
    if isinstance(value, dict):
        return '"object"'
    if isinstance(value, list):
        return '"array"'
    if value is None:
        return '"null"'
    if isinstance(value, str):
        return '"string"'
    return f'"{type_name(value)}"'


def _member_faults(value: Mapping[str, Any], schema: Schema, path: str) -> list[FieldError]:
    found = []
    for name in schema.get("required") or ():
        if name not in value:
            found.append(FieldError(_join(path, name), "FieldValueRequired", ""))
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for key in value:
        child = properties.get(key, extra if isinstance(extra, Mapping) else None)
        if child is not None and not (path == "" and key in _ROOT):
            found += faults(value[key], child, _join(path, key))
    return found


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _value_faults(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if "enum" in schema and value not in schema["enum"]:
        yield refusals.unsupported(path, value, schema["enum"])
    wrong_size: list[FieldError] = []
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _bound_faults(value, schema, path)
    for kind, low, high in (
        (str, "minLength", "maxLength"),
        (list, "minItems", "maxItems"),
        (dict, "minProperties", "maxProperties"),
    ):
        if isinstance(value, kind):
            wrong_size = [*_size_faults(value, schema, path, low, high)]
            yield from wrong_size
    if isinstance(value, str) and "pattern" in schema and not wrong_size and not re.search(schema["pattern"], value):
        text = f"{path} in body should match '{schema['pattern']}'"
        yield refusals.bad(path, value, text)


def _bound_faults(value: float, schema: Schema, path: str) -> Iterator[FieldError]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield refusals.bad(path, value, f"{path} in body should be {word} {low}")
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield refusals.bad(path, value, f"{path} in body should be {word} {high}")


_NOUNS = {"Length": "chars long", "Items": "items", "Properties": "properties"}


def _size_faults(value: Any, schema: Schema, path: str, low: str, high: str) -> Iterator[FieldError]:
    noun = _NOUNS[low[3:]]
    verb = "be" if noun == "chars long" else "have"
    if low in schema and len(value) < schema[low]:
        yield refusals.bad(path, value, f"{path} in body should {verb} at least {schema[low]} {noun}")
    elif high in schema and len(value) > schema[high]:
        if noun == "chars long":
            yield FieldError(path, "FieldValueTooLong", f"may not be more than {schema[high]} bytes")
        else:
            yield FieldError(path, "FieldValueTooMany", f"{len(value)}: must have at most {schema[high]} items")

"""The rules of a custom kind's schema in CEL, as far as cel-python reaches (contract apiserver.md section 7).

A rule that it cannot read or evaluate is not held against an object. cel-python is loaded with the first rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from mews.kube.emulated.apiserver.store.refusals import FieldError, shown
from mews.kube.emulated.apiserver.types.custom.values import type_name

Schema = Mapping[str, Any]

_RULES = "x-kubernetes-validations"
_ABSENT: Any = object()


def has_rules(schema: Schema) -> bool:
    """Whether a schema or a part of it has rules."""
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return bool(schema.get(_RULES)) or any(isinstance(part, Mapping) and has_rules(part) for part in parts)


def object_faults(new: Any, old: Any, schema: Schema) -> list[FieldError]:
    """What the rules have against an object."""
    return [*faults(new, schema), *(change_faults(new, old, schema) if old is not None else [])]


def faults(value: Any, schema: Schema, path: str = "") -> list[FieldError]:
    """What the rules that look at one state have against it."""
    return [*_walk(value, _ABSENT, schema, path)]


def change_faults(new: Any, old: Any, schema: Schema, path: str = "") -> list[FieldError]:
    """What the rules that look at both states (``oldSelf``) have against a change."""
    return [*_walk(new, old, schema, path)]


def _walk(value: Any, old: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if value is None:
        return
    for rule in schema.get(_RULES) or ():
        if ("oldSelf" in rule["rule"]) == (old is not _ABSENT) and not _holds(rule["rule"], value, old):
            yield _fault(rule, value, path)
    if isinstance(value, dict):
        properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            child = properties.get(key, extra if isinstance(extra, Mapping) else None)
            if child is not None and (old is _ABSENT or (isinstance(old, dict) and key in old)):
                before = old if old is _ABSENT else old[key]
                yield from _walk(item, before, child, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _walk_list(value, old, schema, path)


def _walk_list(value: list[Any], old: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    items, keys = schema.get("items") or {}, schema.get("x-kubernetes-list-map-keys") or ()
    known = {_key(item, keys): item for item in old} if isinstance(old, list) and keys else {}
    for index, item in enumerate(value):
        if old is _ABSENT:
            yield from _walk(item, _ABSENT, items, f"{path}[{index}]")
        elif keys and _key(item, keys) in known:
            yield from _walk(item, known[_key(item, keys)], items, f"{path}[{index}]")


def _key(item: Any, keys: Any) -> str:
    return repr([item.get(key) for key in keys]) if isinstance(item, dict) else repr(item)


def _fault(rule: Mapping[str, Any], value: Any, path: str) -> FieldError:
    text = rule.get("message") or f"failed rule: {rule['rule'].strip()}"
    value_text = shown(type_name(value))
    place = f"{path}{rule.get('fieldPath', '')}".lstrip(".") or "<nil>"
    reason = rule.get("reason") or "FieldValueInvalid"
    if reason == "FieldValueRequired" or reason == "FieldValueForbidden":
        return FieldError(place, reason, text)
    return FieldError(place, reason, value_text if reason == "FieldValueDuplicate" else f"{value_text}: {text}")


def _holds(rule: str, value: Any, old: Any) -> bool:
    from celpy.adapter import json_to_cel
    from celpy.celparser import CELParseError
    from celpy.evaluation import CELEvalError

    program = _program(rule)
    if program is None:
        return True
    known = {"self": json_to_cel(value)}
    if old is not _ABSENT:
        known["oldSelf"] = json_to_cel(old)
    try:
        return bool(program.evaluate(known))
    except (CELEvalError, CELParseError, ValueError, TypeError):
        return True


@cache
def _program(rule: str) -> Any:
    """The compiled rule, None for one that cannot be read."""
    import celpy
    from celpy.celparser import CELParseError

    environment = celpy.Environment()
    try:
        return environment.program(environment.compile(rule))
    except CELParseError:
        return None


def definition_faults(schema: Schema, path: str, *, spoilt: list[str], unchanged: bool) -> list[FieldError]:
    return []


def default_faults(value: Any, schema: Schema, place: str) -> list[FieldError]:
    return []

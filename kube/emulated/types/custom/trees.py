"""Objects of custom kinds in the shape of their schema: unknown fields dropped, nulls dropped, defaults filled in.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (pruning, defaulting, listtype).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import clone
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.custom import go_text

Schema = Mapping[str, Any]

ROOT_FIELDS = ("apiVersion", "kind", "metadata")
"""What every resource has, whether its schema knows it or not."""


def below(schema: Schema | None, key: str) -> Schema | None:
    """Return the schema of a member, None for one that no schema is known for."""
    if schema is None:
        return None
    child = (schema.get("properties") or {}).get(key)
    if child is not None:
        return child  # type: ignore[no-any-return]
    extra = schema.get("additionalProperties")
    return extra if isinstance(extra, Mapping) else None


def item_of(schema: Schema | None) -> Schema | None:
    """Return the schema of the items of a list."""
    items = schema.get("items") if schema is not None else None
    return items if isinstance(items, Mapping) else None


def prune(value: Any, schema: Schema | None, path: str = "", *, is_root: bool = True) -> list[str]:
    """Drop, in place, what the schema does not know, and answer the paths of that."""
    return sorted(_prune(value, schema, path, is_root=is_root))


def _prune(
    value: Any, schema: Schema | None, path: str, *, is_root: bool = False, is_free: bool = False
) -> Iterator[str]:
    is_free = is_free or (schema is not None and bool(schema.get("x-kubernetes-preserve-unknown-fields")))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _prune(item, item_of(schema), f"{path}[{index}]", is_free=is_free)
    if not isinstance(value, dict):
        return
    embedded = is_root or (schema is not None and schema.get("x-kubernetes-embedded-resource"))
    for key in list(value):
        if embedded and key in ROOT_FIELDS:
            continue
        child = below(schema, key)
        place = f"{path}.{key}" if path else key
        if child is not None:
            yield from _prune(value[key], child, place)
        elif schema is not None and schema.get("additionalProperties") is not None:
            yield from _prune(value[key], None, place)
        elif not is_free:
            del value[key]
            yield place


def drop_nulls(value: Any, schema: Schema | None) -> None:
    """Drop, in place, nulls of members that may not be null and have no default."""
    if isinstance(value, dict):
        for key in list(value):
            child = below(schema, key)
            if value[key] is None and child is not None and not child.get("nullable") and _no_default(child):
                del value[key]
            else:
                drop_nulls(value[key], child)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item, item_of(schema))


def _no_default(schema: Schema) -> bool:
    return schema.get("default") is None


def default(value: Any, schema: Schema | None) -> None:
    """Fill in defaults, in place, also below what is there, and for nulls that may not be."""
    if schema is None:
        return
    if isinstance(value, dict):
        for key, child in (schema.get("properties") or {}).items():
            wanting = key not in value or (value[key] is None and not child.get("nullable"))
            if wanting and not _no_default(child):
                value[key] = clone(child["default"])
        for key in value:
            child = below(schema, key)
            if child is not None and value[key] is None and not child.get("nullable") and not _no_default(child):
                value[key] = clone(child["default"])
            default(value[key], child)
    elif isinstance(value, list):
        items = item_of(schema)
        for index, item in enumerate(value):
            if item is None and items is not None and not items.get("nullable") and not _no_default(items):
                value[index] = clone(items["default"])
            default(value[index], items)


def repeated(value: Any, schema: Schema | None, path: str = "") -> Iterator[FieldError]:
    """Items of a set, and keys of a list that is a map, that are there twice."""
    if schema is None:
        return
    if isinstance(value, dict):
        extra, properties = schema.get("additionalProperties"), schema.get("properties") or {}
        for key, item in value.items():
            if isinstance(extra, Mapping):
                yield from repeated(item, extra, f"{path}[{key}]")
            if key in properties:
                yield from repeated(item, properties[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _repeated_items(value, schema, path)
        for index, item in enumerate(value):
            yield from repeated(item, item_of(schema), f"{path}[{index}]")


def _repeated_items(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        keys: list[Any] = value
    elif kind == "map":
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                text = "must be an object for an array of list-type map"
                yield go_text.wrong(f"{path}[{index}]", item, text)
                return
        names = schema.get("x-kubernetes-list-map-keys") or ()
        keys = [{name: item[name] for name in names if name in (item or {})} for item in value]
    else:
        return
    seen: dict[str, int] = {}
    for index, key in enumerate(keys):
        text = go_text.shown(key)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            yield FieldError(f"{path}[{index}]", "FieldValueDuplicate", text)

"""How server-side apply sees a kind: which values are owned whole, which member by member, and by what keys.

Built-in kinds by their types, custom ones by their schema (sigs.k8s.io/structured-merge-diff, typed values).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mews.kube.api.strategic import go_text
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.types.bodies import shape_of
from mews.kube.emulated.types.gotypes import SCALARS, Field, Struct, struct


def _nobody(_: str) -> SchemaShape | None:
    return None


@dataclass(frozen=True, slots=True)
class SchemaShape:
    """``form``: scalar, map, list (items found by ``keys``), set, or any (told by the value). An ``atomic`` one is
    owned as a whole. ``member`` gives the shape of a map's member, None for one that is not declared; an ``open`` map
    may have any members."""

    form: str
    atomic: bool = False
    scalar: str = ""
    member: Callable[[str], SchemaShape | None] = field(default=_nobody, compare=False)
    item: Callable[[], SchemaShape] | None = field(default=None, compare=False)
    keys: tuple[str, ...] = ()
    open: bool = False
    key_defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def whole(self) -> bool:
        """Nothing inside has an owner of its own."""
        return self.atomic or self.form == "scalar"

    def key_of(self, item: Any) -> str:
        """Return the step of a list's or set's item, as FieldsV1 writes it: ``k:{"name":"c"}`` or ``v:"x"``."""
        if self.form == "set":
            return "v:" + compact(item)
        found = item if isinstance(item, Mapping) else {}
        return "k:" + compact({key: found.get(key, self.key_defaults.get(key)) for key in sorted(self.keys)})


def compact(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def shape_at(shape: SchemaShape, value: Any) -> SchemaShape:
    """Return the shape itself, or for one of form any what the value suggests: maps by member, all else whole."""
    if shape.form != "any":
        return shape
    return SchemaShape("map", open=True, member=lambda _: ANY) if isinstance(value, Mapping) else SchemaShape("scalar")


ANY = SchemaShape("any")
_TEXT = SchemaShape("scalar", scalar="string")
_BUILTIN: Mapping[str, SchemaShape] = {
    "string": _TEXT,
    "bytes": _TEXT,
    "time": _TEXT,
    "microtime": _TEXT,
    "int32": SchemaShape("scalar", scalar="numeric"),
    "int64": SchemaShape("scalar", scalar="numeric"),
    "float64": SchemaShape("scalar", scalar="numeric"),
    "bool": SchemaShape("scalar", scalar="boolean"),
    "quantity": SchemaShape("scalar"),
    "intstr": SchemaShape("scalar"),
    "raw": ANY,
    "any": ANY,
    "schemaorlist": ANY,
    "schemaorbool": ANY,
    "fields": SchemaShape("any", atomic=True),
}


@cache
def _builtin(type_: str, known: Field | None = None) -> SchemaShape:
    """Return the shape of a type, as the value of a field where the field says more."""
    atomic = known is not None and known.atomic
    if type_ in SCALARS:
        return _BUILTIN[type_]
    if type_.startswith("{}"):
        inner = type_[2:]
        return SchemaShape("map", atomic=atomic, open=True, member=lambda _: _builtin(inner))
    if type_.startswith("[]"):
        return _builtin_list(type_[2:], known)
    found = struct(type_)
    return _of_struct(found, atomic=atomic or found.atomic)


def _of_struct(found: Struct, *, atomic: bool = False) -> SchemaShape:
    def member(name: str) -> SchemaShape | None:
        below = found.fields.get(name)
        return None if below is None else _of_field(below)

    return SchemaShape("map", atomic=atomic, member=member)


def _of_field(known: Field) -> SchemaShape:
    plain = not (known.atomic or known.list_type)
    return _builtin(known.type) if plain else _of_marked(known.type, known.list_type, known.list_keys, known.atomic)


@cache
def _of_marked(type_: str, list_type: str, keys: tuple[str, ...], atomic: bool) -> SchemaShape:
    return _builtin.__wrapped__(type_, Field("", type_, list_type=list_type, list_keys=keys, atomic=atomic))


def _builtin_list(inner: str, known: Field | None) -> SchemaShape:
    list_type = known.list_type if known is not None else ""

    def item() -> SchemaShape:
        return _builtin(inner)

    if list_type == "set":
        return SchemaShape("set", item=item)
    if list_type != "map" or known is None:
        return SchemaShape("list", atomic=True, item=item)
    fields = struct(inner).fields
    defaults = {key: default for key in known.list_keys if (default := _default_of(fields[key])) is not None}
    return SchemaShape("list", item=item, keys=known.list_keys, key_defaults=defaults)


def _default_of(known: Field) -> Any:
    if known.shown_default is not None:
        return known.shown_default
    return {"string": "", "int32": 0}.get(known.type) if known.empty == "keep" else None


_HEAD: Mapping[str, SchemaShape] = {"apiVersion": _TEXT, "kind": _TEXT}


def kind_shape(kind: Kind) -> SchemaShape:
    """Return the shape of a kind's objects."""
    if not kind.custom:
        return _of_struct(shape_of(kind))
    schema = shape_at(_custom(kind.schema or {"x-kubernetes-preserve-unknown-fields": True}), {})
    metadata = _builtin("meta/v1.ObjectMeta")

    def member(name: str) -> SchemaShape | None:
        return metadata if name == "metadata" else _HEAD.get(name) or schema.member(name)

    return SchemaShape("map", member=member)


def struct_shape(type_: str) -> SchemaShape:
    """Return the shape of a struct that no resource is made of, ``autoscaling/v1.Scale`` say."""
    return _builtin(type_)


_SCALAR_NAMES = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}


def _custom(schema: Mapping[str, Any]) -> SchemaShape:
    """Return the shape that a structural schema describes."""
    if schema.get("x-kubernetes-int-or-string"):
        return SchemaShape("scalar")
    kind = schema.get("type")
    if kind == "array":
        return _custom_list(schema)
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    free = schema.get("x-kubernetes-preserve-unknown-fields") or extra is True
    if kind not in (None, "object"):
        return SchemaShape("scalar", scalar=_SCALAR_NAMES.get(str(kind), ""))
    if not properties and not isinstance(extra, Mapping):
        return ANY if free or kind is None else SchemaShape("map", member=_nobody)

    def member(name: str) -> SchemaShape | None:
        if name in properties:
            return _custom(properties[name])
        if isinstance(extra, Mapping):
            return _custom(extra)
        return ANY if free else None

    is_open = not properties
    return SchemaShape("map", atomic=schema.get("x-kubernetes-map-type") == "atomic", open=is_open, member=member)


def _custom_list(schema: Mapping[str, Any]) -> SchemaShape:
    items = schema.get("items") or {}
    list_type = schema.get("x-kubernetes-list-type", "atomic")
    if list_type == "set":
        return SchemaShape("set", item=lambda: _custom(items))
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if list_type == "map" else ()
    properties = items.get("properties") or {}
    defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
    return SchemaShape("list", atomic=list_type != "map", item=lambda: _custom(items), keys=keys, key_defaults=defaults)


def typed_errors(value: Any, shape: SchemaShape, path: str = "") -> Iterator[str]:
    """Yield why a value cannot be applied: fields that no schema declares, wrong types, items with the same key."""
    if value is None:
        return
    if shape.form == "scalar":
        yield from _scalar_errors(value, shape, path)
    elif shape.form == "map":
        if not isinstance(value, Mapping):
            yield f"{path}: expected map, got &{{{go_text(value)}}}"
            return
        for name, below in value.items():
            inner = shape.member(name)
            if inner is None:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from typed_errors(below, inner, f"{path}.{name}")
    elif shape.form in ("list", "set"):
        yield from _list_errors(value, shape, path)


def _scalar_errors(value: Any, shape: SchemaShape, path: str) -> Iterator[str]:
    if shape.scalar == "string" and not isinstance(value, str):
        yield f"{path}: expected string, got &value.valueUnstructured{{Value:{go_text(value)}}}"
    elif shape.scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        yield f"{path}: expected numeric (int or float), got {_GO_KINDS.get(type(value), 'string')}"
    elif shape.scalar == "boolean" and not isinstance(value, bool):
        yield f"{path}: expected boolean, got &{{{go_text(value)}}}"


_GO_KINDS: Mapping[type, str] = {bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}


def _list_errors(value: Any, shape: SchemaShape, path: str) -> Iterator[str]:
    assert shape.item is not None
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{go_text(value)}}}"
        return
    inner, seen = shape.item(), set()
    for index, item in enumerate(value):
        if shape.atomic:
            yield from typed_errors(item, inner, f"{path}[{index}]")
            continue
        step = shape.key_of(item)
        if step in seen:
            yield f"{path}: duplicate entries for key {shown_step(step) if step[0] == 'k' else f'[={step[2:]}]'}"
        seen.add(step)
        yield from typed_errors(item, inner, f"{path}{shown_step(step)}")


def shown_step(step: str) -> str:
    """Return a step of a path as messages show it: ``.spec``, ``[name="c"]``, ``[="x"]``."""
    content = step[2:]
    if step.startswith("f:"):
        return f".{content}"
    if step.startswith("v:"):
        return f"[={content}]"
    return "[" + ",".join(f"{key}={compact(value)}" for key, value in json.loads(content).items()) + "]"

"""Whether the defaults of a schema are values of it.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mews.kube.api.objects import clone
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.custom import cel_rules, go_text
from mews.kube.emulated.types.custom.embedded import coerce, embedded_errors
from mews.kube.emulated.types.custom.trees import ROOT_FIELDS, prune
from mews.kube.emulated.types.custom.values import same, value_errors

Schema = Mapping[str, Any]
Surround = Callable[[Any], Any]
"""From a value in the head of a resource to the resource that holds nothing but it."""

_EMBEDDED = "x-kubernetes-embedded-resource"


def default_errors(schema: Schema, path: str) -> list[FieldError]:
    """Return what is wrong with the defaults below a schema."""
    root = {**schema, _EMBEDDED: True}
    return [*_walk(root, path, root, _whole, in_head=False)]


def _whole(value: Any) -> Any:
    return {"kind": "Validation", "apiVersion": "validation/v1", **value} if isinstance(value, dict) else value


def _walk(schema: Schema, path: str, root: Schema, surround: Surround, *, in_head: bool) -> Iterator[FieldError]:
    if schema.get(_EMBEDDED):
        in_head, surround, root = False, _whole, schema
    if schema.get("default") is not None:
        yield from _default_errors(schema, path, root, surround, in_head=in_head)
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from _walk(items, f"{path}.items", root, lambda value: surround([value]), in_head=in_head)
    for key, child in (schema.get("properties") or {}).items():
        within = in_head or bool(schema.get(_EMBEDDED) and key in ROOT_FIELDS)
        yield from _walk(child, f"{path}.properties[{key}]", root, _member(surround, key), in_head=within)


def _member(surround: Surround, key: str) -> Surround:
    return lambda value: surround({key: value})


def _default_errors(
    schema: Schema, path: str, root: Schema, surround: Surround, *, in_head: bool
) -> Iterator[FieldError]:
    value, place = clone(schema["default"]), f"{path}.default"
    if in_head:
        yield from _head_errors(schema, value, place, surround, root)
        return
    pruned = clone(value)
    prune(pruned, schema, is_root=bool(schema.get(_EMBEDDED)))
    if not same(pruned, value):
        yield go_text.wrong(place, value, "must not have unknown fields")
    yield from _value_errors(schema, value, place)


def _head_errors(schema: Schema, value: Any, place: str, surround: Surround, root: Schema) -> Iterator[FieldError]:
    whole, embedded = surround(value), {**root, _EMBEDDED: True}
    found, _ = coerce(whole, embedded)
    found = found or [*embedded_errors(whole, embedded)]
    if found:
        texts = [str(error) for error in found]
        shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        yield go_text.wrong(place, value, f"must result in valid metadata: {shown}")
    elif found := value_errors(value, schema, place):
        yield from found
    else:
        yield from cel_rules.default_errors(value, schema, place)


def _value_errors(schema: Schema, value: Any, place: str) -> Iterator[FieldError]:
    found, _ = coerce(value, schema, place)
    found = found or [*embedded_errors(value, schema, place)] or value_errors(value, schema, place)
    if found:
        yield from found
    else:
        yield from cel_rules.default_errors(value, schema, place)

"""Whether a schema is structural: the spine of types says what a value is, and all else only narrows it.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (validation.go, complete.go, convert.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.cel.regexes import PatternError, compiled
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.custom import go_text

Schema = Mapping[str, Any]

_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
_EMBEDDED, _PRESERVE = "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_EMPTY, _FALSE, _UNDEFINED = "must be empty", "must be false", "must be undefined"
_FORBIDDEN_IN_JUNCTORS: tuple[tuple[str, str], ...] = (
    ("type", _EMPTY),
    ("title", _EMPTY),
    ("description", _EMPTY),
    ("nullable", _FALSE),
    (_PRESERVE, _FALSE),
    (_EMBEDDED, _FALSE),
    (_INT_OR_STRING, _FALSE),
    ("x-kubernetes-list-map-keys", _EMPTY),
    ("x-kubernetes-list-type", _UNDEFINED),
    ("x-kubernetes-map-type", _UNDEFINED),
    ("x-kubernetes-validations", _EMPTY),
)
_NOT_IN_SPINE = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")


def unsupported(schema: Schema) -> str:
    """Return what keeps a schema from being read as a structural one at all, "" when nothing does."""
    for word in _NOT_IN_SPINE:
        if schema.get(word) or (word == "additionalItems" and schema.get(word) is not None):
            return f"OpenAPIV3Schema '{word.lstrip('$') if word == '$schema' else word}' is not supported"
    for part in [schema.get("not"), *(one for word in ("allOf", "anyOf", "oneOf") for one in schema.get(word) or ())]:
        if isinstance(part, Mapping) and (text := unsupported(part)):
            return text
    if schema.get(_PRESERVE) is False:
        return f"internal error: '{_PRESERVE}' must be true or undefined"
    items, extra = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, list) and items:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for part in [items, extra, *(schema.get("properties") or {}).values()]:
        if isinstance(part, Mapping) and (text := unsupported(part)):
            return text
    return ""


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """Return what keeps the schema at that path from being structural, in alphabetical order."""
    found = [*_invariants(schema, _ROOT, path), *_complete(schema, schema, path, path)]
    return sorted(found, key=str)


def _invariants(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    type_, extra, properties = schema.get("type") or "", schema.get("additionalProperties"), _properties(schema)
    items = schema.get("items")
    if type_ == "array" and items is None:
        yield refusals.required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _invariants(items, _ITEM, f"{path}.items")
    for key, child in properties.items():
        yield from _invariants(child, _FIELD, f"{path}.properties[{key}]")
    if extra is not None:
        if level == _ROOT:
            yield refusals.forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(extra, Mapping):
            yield from _invariants(extra, _FIELD, f"{path}.additionalProperties")
    for word in (_PRESERVE, _EMBEDDED):
        if schema.get(_INT_OR_STRING) and schema.get(word):
            yield go_text.wrong(f"{path}.{word}", True, f"must be false if {_INT_OR_STRING} is true")
    yield from _value_errors(schema, path, skip_any=_is_union(schema), skip_first_all=_is_union_in_all(schema))
    yield from _type_errors(schema, type_, level, path)
    yield from _head_errors(schema, level, path)


def _type_errors(schema: Schema, type_: str, level: str, path: str) -> Iterator[FieldError]:
    embedded = schema.get(_EMBEDDED)
    if embedded and type_ != "object":
        text = f"must be object if {_EMBEDDED} is true"
        yield go_text.wrong(f"{path}.type", type_, text) if type_ else refusals.required(f"{path}.type", text)
    elif not type_ and not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE):
        yield refusals.required(f"{path}.type", f"must not be empty {level}")
    if embedded and schema.get("additionalProperties") is not None:
        text = f"must not be used if {_EMBEDDED} is set"
        yield refusals.forbidden_field(f"{path}.additionalProperties", text)
    if level == _ROOT and type_ and type_ != "object":
        yield go_text.wrong(f"{path}.type", type_, "must be object at the root")
    if embedded and not schema.get(_PRESERVE) and not _properties(schema):
        text = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        yield refusals.required(f"{path}.properties", text)


def _head_errors(schema: Schema, level: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of apiVersion, kind and metadata hardly anything may be said."""
    properties, checked = _properties(schema), level == _ROOT or bool(schema.get(_EMBEDDED))
    for key in ("kind", "apiVersion"):
        if checked and key in properties and properties[key].get("type") != "string":
            yield go_text.wrong(f"{path}.properties[{key}].type", properties[key].get("type") or "", "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    place = f"{path}.properties[metadata]"
    if checked and metadata.get("type") != "object":
        yield go_text.wrong(f"{place}.type", metadata.get("type") or "", "must be object")
    if level == _ROOT and not _holds_only_names(metadata):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield refusals.forbidden_field(place, text)


def _holds_only_names(metadata: Schema) -> bool:
    members = {key: value for key, value in metadata.items() if value not in (None, "", False, [], {})}
    if _properties(metadata).keys() <= {"name", "generateName"}:
        members.pop("properties", None)
    return not members.keys() - {"type", "default", "externalDocs", "example"}


def _properties(schema: Schema) -> Mapping[str, Schema]:
    return schema.get("properties") or {}


def _is_union(schema: Schema) -> bool:
    """``anyOf: [{type: integer}, {type: string}]``, as controller-gen writes for int-or-string."""
    branches = schema.get("anyOf") or []
    return [{k: v for k, v in branch.items() if v} for branch in branches] == [{"type": "integer"}, {"type": "string"}]


def _is_union_in_all(schema: Schema) -> bool:
    branches = schema.get("allOf") or []
    return bool(branches) and _is_union(branches[0])


def _value_errors(
    schema: Schema, path: str, *, skip_any: bool = False, skip_first_all: bool = False
) -> Iterator[FieldError]:
    for word in _JUNCTORS:
        for index, branch in enumerate(schema.get(word) or ()):
            if word != "anyOf" or not skip_any:
                skipped = skip_first_all and word == "allOf" and index == 0
                yield from _nested(branch, f"{path}.{word}[{index}]", skip_any=skipped)
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not")
    if pattern := schema.get("pattern"):
        try:
            compiled(pattern)
        except PatternError as error:
            yield go_text.wrong(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _nested(schema: Schema, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    """Below allOf and the like nothing may be told that belongs to the spine."""
    yield from _value_errors(schema, path, skip_any=skip_any)
    if isinstance(schema.get("items"), Mapping):
        yield from _nested(schema["items"], f"{path}.items")
    for key, child in _properties(schema).items():
        yield from _nested(child, f"{path}.properties[{key}]")
    if schema.get("additionalProperties") not in (None, False):
        yield refusals.forbidden_field(f"{path}.additionalProperties", "must be undefined to be structural")
    if schema.get("default") is not None:
        yield refusals.forbidden_field(f"{path}.default", "must be undefined to be structural")
    for word, text in _FORBIDDEN_IN_JUNCTORS:
        if schema.get(word) or (text == _UNDEFINED and schema.get(word) is not None):
            yield refusals.forbidden_field(f"{path}.{word}", f"{text} to be structural")
    if "metadata" in _properties(schema):
        yield refusals.forbidden_field(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(schema: Schema, spine: Schema, spine_path: str, path: str) -> Iterator[FieldError]:
    """What is narrowed below a junctor must be in the spine beside it; what hangs deeper in the spine is not looked at,
    as upstream does not."""
    if schema.get("not") is not None:
        yield from _complete_nested(schema["not"], spine, spine_path, f"{path}.not")
    for word in ("allOf", "anyOf", "oneOf"):
        for index, branch in enumerate(schema.get(word) or ()):
            yield from _complete_nested(branch, spine, spine_path, f"{path}.{word}[{index}]")


def _complete_nested(schema: Schema, spine: Schema | None, spine_path: str, path: str) -> Iterator[FieldError]:
    if spine is None:
        yield refusals.required(spine_path, f"because it is defined in {path}")
        return
    yield from _complete(schema, spine, spine_path, path)
    if isinstance(schema.get("items"), Mapping):
        items = spine.get("items")
        below = items if isinstance(items, Mapping) else None
        yield from _complete_nested(schema["items"], below, f"{spine_path}.items", f"{path}.items")
    known = _properties(spine)
    for key, child in _properties(schema).items():
        place = f"{spine_path}.properties[{key}]"
        yield from _complete_nested(child, known.get(key), place, f"{path}.properties[{key}]")

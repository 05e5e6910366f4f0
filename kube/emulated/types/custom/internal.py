"""A definition in upstream's internal form: what all versions share stands beside them, and refusals print its structs.

Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions (types.go, v1/conversion.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

Schema = Mapping[str, Any]

_SCHEMA_FIELDS = (
    ("ID", "id", ""), ("Schema", "$schema", ""), ("Ref", "$ref", None), ("Description", "description", ""),
    ("Type", "type", ""), ("Nullable", "nullable", False), ("Format", "format", ""), ("Title", "title", ""),
    ("Default", "default", None), ("Maximum", "maximum", None), ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None), ("ExclusiveMinimum", "exclusiveMinimum", False), ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None), ("Pattern", "pattern", ""), ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None), ("UniqueItems", "uniqueItems", False), ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None), ("MaxProperties", "maxProperties", None), ("MinProperties", "minProperties", None),
    ("Required", "required", None), ("Items", "items", None), ("AllOf", "allOf", None), ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None), ("Not", "not", None), ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None), ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None), ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None), ("ExternalDocs", "externalDocs", None), ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False), ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None), ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)  # fmt: skip
_RULE_FIELDS = (
    ("Rule", "rule", ""), ("Message", "message", ""), ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None), ("FieldPath", "fieldPath", ""), ("OptionalOldSelf", "optionalOldSelf", None),
)  # fmt: skip


class Shared(Struct, frozen=True):
    """What all versions say alike, and so is told once: schema, subresources, columns, selectable fields."""

    schema: Any
    subresources: Any
    columns: Any
    fields: Any


def shared(versions: Sequence[Mapping[str, Any]]) -> Shared:
    """Return what all the versions share."""
    return Shared(
        _alike(version.get("schema") for version in versions),
        _alike(version.get("subresources") for version in versions),
        _alike(version.get("additionalPrinterColumns") or None for version in versions),
        _alike(version.get("selectableFields") or None for version in versions),
    )


def _alike(values: Iterable[Any]) -> Any:
    found = list(values)
    return found[0] if found and all(value == found[0] for value in found) else None


def version_struct(version: Mapping[str, Any], common: Shared) -> dict[str, Any]:
    """Return a version as Go prints it; what all versions share is told elsewhere."""
    return {
        "Name": version.get("name", ""),
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None if common.schema is not None else _validation(version.get("schema")),
        "Subresources": None if common.subresources is not None else _subresources(version.get("subresources")),
        "AdditionalPrinterColumns": None
        if common.columns is not None
        else _structs(version.get("additionalPrinterColumns"), _column),
        "SelectableFields": None
        if common.fields is not None
        else _structs(version.get("selectableFields"), lambda field: {"JSONPath": field.get("jsonPath", "")}),
    }


def _validation(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    schema = given.get("openAPIV3Schema")
    return {"OpenAPIV3Schema": None if schema is None else schema_struct(schema)}


def _subresources(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    scale = given.get("scale")
    shown = scale and {
        "SpecReplicasPath": scale.get("specReplicasPath", ""),
        "StatusReplicasPath": scale.get("statusReplicasPath", ""),
        "LabelSelectorPath": scale.get("labelSelectorPath"),
    }
    return {"Status": None if given.get("status") is None else {}, "Scale": shown or None}


def _structs(given: Sequence[Mapping[str, Any]] | None, struct: Any) -> list[Any] | None:
    return [struct(one) for one in given] if given else None


def _column(column: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Name": column.get("name", ""),
        "Type": column.get("type", ""),
        "Format": column.get("format", ""),
        "Description": column.get("description", ""),
        "Priority": column.get("priority", 0),
        "JSONPath": column.get("jsonPath", ""),
    }


def rule_struct(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule as Go prints it."""
    return {shown: rule.get(name, empty) for shown, name, empty in _RULE_FIELDS}


def schema_struct(schema: Schema) -> dict[str, Any]:
    """Return a schema as Go prints it."""
    return {shown: _part(shown, schema.get(name, empty)) for shown, name, empty in _SCHEMA_FIELDS}


def _part(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "Items":
        is_list = isinstance(value, list)
        return {
            "Schema": None if is_list else schema_struct(value),
            "JSONSchemas": [schema_struct(one) for one in value] if is_list else None,
        }
    if name in ("AdditionalProperties", "AdditionalItems"):
        is_schema = isinstance(value, Mapping)
        return {"Allows": is_schema or bool(value), "Schema": schema_struct(value) if is_schema else None}
    if name in ("AllOf", "OneOf", "AnyOf"):
        return [schema_struct(one) for one in value] or None
    if name == "Dependencies":
        return {
            key: {"Schema": schema_struct(one), "Property": None}
            if isinstance(one, Mapping)
            else {"Schema": None, "Property": one}
            for key, one in value.items()
        }
    if name in ("Properties", "PatternProperties", "Definitions"):
        return {key: schema_struct(value[key]) for key in sorted(value)}
    if name == "Not":
        return schema_struct(value)
    return [rule_struct(rule) for rule in value] if name == "XValidations" else value


def parts(schema: Any) -> Iterator[Schema]:
    """Yield the schema and all schemas in it."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    items = schema.get("items")
    for one in items if isinstance(items, list) else [items]:
        yield from parts(one)
    for word in ("allOf", "anyOf", "oneOf"):
        for one in schema.get(word) or ():
            yield from parts(one)
    yield from parts(schema.get("not"))
    for word in ("properties", "patternProperties", "definitions"):
        for one in (schema.get(word) or {}).values():
            yield from parts(one)
    for word in ("additionalProperties", "additionalItems"):
        yield from parts(schema.get(word))

"""The schemas of built-in kinds as OpenAPI shows them, made from the table of types; descriptions they have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.emulated.types.gotypes import SCALARS, Field, Struct, plain_ref, struct

Body = dict[str, Any]

_PACKAGES: Mapping[str, str] = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
_MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_FIELDS = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"
_LEAVES: Mapping[str, tuple[str, Body]] = {
    "time": (_TIME, {"type": "string", "format": "date-time"}),
    "microtime": (_MICRO_TIME, {"type": "string", "format": "date-time"}),
    "quantity": (_QUANTITY, {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    "intstr": (_INT_OR_STRING, {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
    "fields": (_FIELDS, {"type": "object"}),
}
_PLAIN: Mapping[str, Body] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "raw": {"type": "object"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "schemaorlist": {"x-kubernetes-preserve-unknown-fields": True},
    "schemaorbool": {"x-kubernetes-preserve-unknown-fields": True},
}
_ZEROS: Mapping[str, Any] = {"string": "", "int32": 0, "int64": 0, "float64": 0, "bool": False}


_DESCRIPTIONS: Mapping[str, str] = {
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
    "kind": "Kind is the name of what this object represents, in CamelCase; it cannot be changed.",
    "metadata": "Standard object's metadata.",
}
"""Of the fields that every object has."""
_METADATA: Mapping[str, str] = {
    "annotations": "Annotations is a map of texts of any form that tools keep with the object.",
    "creationTimestamp": "CreationTimestamp is a timestamp: when the server created the object. Clients cannot set it.",
    "deletionGracePeriodSeconds": "DeletionGracePeriodSeconds is how long the object may take to end after that.",
    "deletionTimestamp": "DeletionTimestamp is a timestamp: when the object is to be gone. The server sets it as it is "
    "deleted, and the object stays until its finalizers are gone.",
    "finalizers": "Finalizers is the list of those who must let go of the object before it is removed.",
    "generateName": "GenerateName is a prefix from which the server makes a name that nobody has, if Name is empty.",
    "generation": "Generation is a number that grows with every change of what is desired.",
    "labels": "Labels is a map of texts by which objects are organized and selected.",
    "managedFields": "ManagedFields says which manager owns which fields, for server-side apply.",
    "name": "Name is unique within a namespace and cannot be changed.",
    "namespace": "Namespace is the space within which the name is unique; empty for kinds that belong to the cluster.",
    "ownerReferences": "OwnerReferences is the list of objects that this one depends on: when all are gone, it is "
    "collected.",
    "resourceVersion": "ResourceVersion is an opaque value that changes with every write.",
    "selfLink": "SelfLink is no longer set.",
    "uid": "UID is unique in time and space; the server sets it as the object is created.",
}


def described(name: str, schema: Body) -> Body:
    """Return the schema of a field that every object has, with what it is."""
    return {"description": _DESCRIPTIONS[name], **schema}


def schema_name(ref: str) -> str:
    """``io.k8s.api.core.v1.Pod`` of ``core/v1.Pod``."""
    group, _, name = plain_ref(ref).partition("/")
    return f"{_PACKAGES.get(group, f'io.k8s.api.{group}')}.{name}"


def reference(name: str) -> Body:
    """Return a reference to a schema of the same document."""
    return {"$ref": f"#/components/schemas/{name}"}


def schemas_of(refs: list[str]) -> dict[str, Body]:
    """Return the schemas of those structs and of all that they are made of, by name."""
    found: dict[str, Body] = {}
    waiting = list(refs)
    while waiting:
        ref = waiting.pop()
        if schema_name(ref) in found:
            continue
        shape = struct(ref)
        found[schema_name(ref)] = _schema(shape)
        for field in shape.fields.values():
            inner = field.type.lstrip("[]{}")
            if inner in _LEAVES:
                name, leaf = _LEAVES[inner]
                found[name] = dict(leaf)
            elif inner not in SCALARS:
                waiting.append(inner)
    return dict(sorted(found.items()))


def _schema(shape: Struct) -> Body:
    body: Body = {"type": "object"}
    required = [field.name for field in shape.fields.values() if field.required]
    if required:
        body["required"] = required
    if shape.fields:
        body["properties"] = {name: {**_text(shape, name), **_property(field)} for name, field in shape.fields.items()}
    if shape.kind:
        group, version, kind = shape.kind.split("/")
        body["x-kubernetes-group-version-kind"] = [{"group": group, "version": version, "kind": kind}]
    if shape.atomic:
        body["x-kubernetes-map-type"] = "atomic"
    return body


def _text(shape: Struct, name: str) -> Body:
    """Return the description of a field that every object has."""
    texts = _METADATA if shape.name == "ObjectMeta" else _DESCRIPTIONS if shape.kind else {}
    return {"description": texts[name]} if name in texts else {}


def _property(field: Field) -> Body:
    body = _of_type(field.type)
    if "$ref" in body:
        default: Body = {"default": {}} if field.empty == "keep" and field.type not in _LEAVES else {}
        body = {**default, "allOf": [body]}
    elif field.empty == "keep" and field.type in _ZEROS and field.required:
        body["default"] = _ZEROS[field.type]
    if field.shown_default is not None:
        body["default"] = field.shown_default
    if field.enum:
        target = body.get("items", body)
        target["enum"] = list(field.enum)
    return {**body, **dict(_extensions(field))}


def _extensions(field: Field) -> Iterator[tuple[str, Any]]:
    if field.list_keys:
        yield "x-kubernetes-list-map-keys", list(field.list_keys)
    if field.list_type:
        yield "x-kubernetes-list-type", field.list_type
    if field.atomic:
        yield "x-kubernetes-map-type", "atomic"
    if field.merge_key:
        yield "x-kubernetes-patch-merge-key", field.merge_key
    if field.strategies:
        yield "x-kubernetes-patch-strategy", ",".join(field.strategies)


def _of_type(type_: str) -> Body:
    if type_.startswith("[]"):
        return {"type": "array", "items": _of_item(type_[2:])}
    if type_.startswith("{}"):
        return {"type": "object", "additionalProperties": _of_item(type_[2:])}
    if type_ in _LEAVES:
        return reference(_LEAVES[type_][0])
    return dict(_PLAIN[type_]) if type_ in _PLAIN else reference(schema_name(type_))


def _of_item(type_: str) -> Body:
    body = _of_type(type_)
    if "$ref" in body and type_ not in _LEAVES:
        return {"default": {}, "allOf": [body]}
    return {**body, "default": _ZEROS[type_]} if type_ in _ZEROS else body

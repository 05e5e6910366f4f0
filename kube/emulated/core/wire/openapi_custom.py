"""The schemas of custom kinds as OpenAPI shows them: those of their definitions, with what every object has.

Source: k8s.io/apiextensions-apiserver/pkg/controller/openapi (builder, v2/conversion.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.wire.openapi_schemas import described, reference

Body = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_OPEN = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")


def custom_schema(kind: Kind, *, older: bool = False) -> Body:
    """Return the schema of a custom kind's objects; ``older`` in what version 2 of OpenAPI can say."""
    gvk = {"group": kind.resource.group, "version": kind.resource.version, "kind": kind.resource.kind}
    given = kind.schema
    if given is None or (older and given.get(_OPEN)):
        # With properties kubectl would forbid all others.
        return {"type": "object", "x-kubernetes-group-version-kind": [gvk]}
    found = _with_embedded(_older(given) if older else given, older=older)
    return {**_with_head(found), "x-kubernetes-group-version-kind": [gvk]}


def custom_list(kind: Kind, name: str) -> Body:
    """Return the schema of a list of them; ``name`` is that of one."""
    gvk = {"group": kind.resource.group, "version": kind.resource.version, "kind": f"{kind.resource.kind}List"}
    properties = {
        "apiVersion": described("apiVersion", {"type": "string"}),
        "items": {"type": "array", "items": reference(name)},
        "kind": described("kind", {"type": "string"}),
        "metadata": {"allOf": [reference(f"{_META}.ListMeta")]},
    }
    return {
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [gvk],
    }


def _with_head(schema: Mapping[str, Any]) -> Body:
    """Return it with the properties that every object has."""
    head = {
        "apiVersion": described("apiVersion", {"type": "string"}),
        "kind": described("kind", {"type": "string"}),
        "metadata": described("metadata", {"allOf": [reference(f"{_META}.ObjectMeta")]}),
    }
    return {**schema, "properties": {**(schema.get("properties") or {}), **head}}


def _older(schema: Mapping[str, Any]) -> Body:
    """Return it without what version 2 has no words for, and what kubectl cannot read in it."""
    found = {name: value for name, value in schema.items() if name not in _JUNCTORS}
    open_, nullable = found.get(_OPEN), found.pop("nullable", False)
    if nullable or open_:
        found.pop("items", None)
        found.pop("properties", None)
    if nullable or (found.get("type") == "array" and "items" not in found) or (open_ and found.get("type") == "object"):
        found.pop("type", None)
    properties = found.get("properties") or {}
    required = [name for name in found.get("required") or () if not (properties.get(name) or {}).get("nullable")]
    extra = found.get("additionalProperties")
    if isinstance(extra, Mapping):
        required = [] if extra.get("nullable") else required
        found["additionalProperties"] = _older(extra)
    if required or "required" in found:
        found.pop("required", None)
        found.update({"required": required} if required else {})
    if properties:
        found["properties"] = {name: _older(below) for name, below in properties.items()}
    if isinstance(found.get("items"), Mapping):
        found["items"] = _older(found["items"])
    return found


def _with_embedded(schema: Mapping[str, Any], *, older: bool) -> Body:
    """Return it with the head of every object in the schemas of embedded ones."""
    found = dict(schema)
    if isinstance(found.get("properties"), Mapping):
        found["properties"] = {name: _with_embedded(below, older=older) for name, below in found["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), Mapping):
            found[name] = _with_embedded(found[name], older=older)
    if not found.get(_EMBEDDED) or (older and found.get(_OPEN)):
        return found
    required = list(found.get("required") or ())
    found["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return _with_head(found)

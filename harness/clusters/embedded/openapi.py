"""/openapi/v3: as much as kubectl needs to leave validation to the server, and the schemas of custom kinds.

kubectl looks, per group and version, for a PATCH operation of the kind with a ``fieldValidation`` parameter (contract
apiserver.md section 1). Built-in kinds carry no field schemas yet.
"""

from __future__ import annotations

import hashlib
from typing import Any

from mews.harness.clusters.embedded.kinds import GroupVersion, Kind, Registry
from mews.kube.client.port import Patch

Body = dict[str, Any]

_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_ANYTHING = {"application/json": {"schema": {"type": "object"}}}


def index(kinds: Registry) -> Body:
    """GET /openapi/v3: one document per group and version, named by its content."""
    paths = {}
    for group_version, members in kinds.group_versions().items():
        path = _path(group_version)
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={_digest(members)}"}
    return {"paths": paths}


def _path(group_version: GroupVersion) -> str:
    group, version = group_version
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _digest(members: list[Kind]) -> str:
    text = ";".join(f"{kind.plural}:{kind.resource.kind}:{kind.schema}" for kind in members)
    return hashlib.sha256(text.encode()).hexdigest().upper()[:32]


def document(kinds: Registry, path: str) -> Body | None:
    """GET /openapi/v3/<path>, None when there is none."""
    for group_version, members in kinds.group_versions().items():
        if _path(group_version) == path:
            paths = {url: item for kind in members for url, item in _paths(kind).items()}
            schemas = {_schema_name(kind): _schema(kind) for kind in members}
            return {
                "openapi": "3.0.0",
                "info": {"title": "Kubernetes", "version": "v1.34.2"},
                "paths": paths,
                "components": {"schemas": schemas},
            }
    return None


def _gvk(kind: Kind) -> Body:
    return {"group": kind.resource.group, "version": kind.resource.version, "kind": kind.resource.kind}


def _schema_name(kind: Kind) -> str:
    reversed_group = ".".join(reversed(kind.resource.group.split("."))) if kind.resource.group else "core"
    return f"{reversed_group}.{kind.resource.version}.{kind.resource.kind}"


def _schema(kind: Kind) -> Body:
    schema = dict(kind.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    return {**schema, "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _paths(kind: Kind) -> dict[str, Body]:
    resource = kind.resource
    namespace = "{namespace}" if resource.namespaced else None
    return {
        resource.path(namespace): {"get": _operation(kind, "list"), "post": _operation(kind, "post", body=True)},
        resource.path(namespace, "{name}"): {
            "get": _operation(kind, "get"),
            "put": _operation(kind, "put", body=True),
            "patch": _patch(kind),
            "delete": _operation(kind, "delete"),
        },
    }


def _operation(kind: Kind, action: str, *, body: bool = False) -> Body:
    operation: Body = {
        "operationId": f"{action}{kind.resource.kind}",
        "parameters": [_parameter(name) for name in _PARAMETERS] if body else [],
        "responses": {"200": {"description": "OK", "content": _reference(kind)}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
    }
    if body:
        operation["requestBody"] = {"content": _reference(kind)}
    return operation


def _reference(kind: Kind) -> Body:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{_schema_name(kind)}"}}}


def _patch(kind: Kind) -> Body:
    # Strategic merge is accepted for built-in kinds too, but a client that reads so here computes it from the schema.
    content = dict.fromkeys((Patch.JSON, Patch.MERGE, Patch.APPLY), _ANYTHING["application/json"])
    parameters = [_parameter(name) for name in (*_PARAMETERS, "force")]
    return {**_operation(kind, "patch"), "parameters": parameters, "requestBody": {"content": content}}


def _parameter(name: str) -> Body:
    kind = "boolean" if name == "force" else "string"
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}

"""/openapi/v3 and /openapi/v2: paths and schemas of all that is served (contract apiserver.md section 1).

Schemas of built-in kinds come from the table of types, those of custom kinds from their definitions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.resources import Resource
from mews.kube.client.port import Patch
from mews.kube.emulated.core.store.kinds import GroupVersion, Kind, Registry, Subresource
from mews.kube.emulated.core.wire.openapi_custom import custom_list, custom_schema
from mews.kube.emulated.core.wire.openapi_schemas import reference, schema_name, schemas_of
from mews.kube.emulated.types.gotypes import release_mark, root_of, table
from mews.kube.releases.release_data import minor

Body = dict[str, Any]

ASKED_IN_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""In which kubectl asks for version 2, when a kind is in no document of version 3."""

IN_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""In which it is answered: an @ is not allowed in a media type."""


def empty(release: str) -> bytes:
    """Return a document that tells title and version only: all that is served is told in version 3."""
    return b"\n\x032.0\x12\x12\n\nKubernetes\x12\x04" + _shown_version(release).encode()


def _shown_version(release: str) -> str:
    """Without the patch level, as upstream's effective version."""
    return f"1.{minor(release)}"


_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_MEDIA = ("application/json", "application/yaml")
_WRITES = ("dryRun", "fieldManager", "fieldValidation")
_DELETES = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LISTS = (
    *("allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion"),
    *("resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"),
)
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("allowWatchBookmarks", "force", "orphanDependents", "sendInitialEvents", "watch"), "boolean"),
    **dict.fromkeys(("gracePeriodSeconds", "limit", "timeoutSeconds"), "integer"),
}


def index(kinds: Registry) -> Body:
    """GET /openapi/v3: one document per group and version, named by its content."""
    paths = {}
    for group_version, members in kinds.group_versions().items():
        path = _path(group_version)
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest(members)}"}
    return {"paths": dict(sorted(paths.items()))}


def _path(group_version: GroupVersion) -> str:
    group, version = group_version
    return f"apis/{group}/{version}" if group else f"api/{version}"


def digest(members: Sequence[Kind]) -> str:
    """Return what the document of these kinds is named by: all that stands in it of a kind that may change while it is
    served. Group and version are among that, for a definition's version may be renamed."""
    text = ";".join(
        f"{kind.resource.api_version}:{kind.resource.namespaced}:{kind.plural}:{kind.resource.kind}:"
        f"{kind.verbs}:{[sub.name for sub in kind.subresources]}:{kind.schema}"
        for kind in members
    )
    return hashlib.sha512(text.encode()).hexdigest().upper()


def document(kinds: Registry, path: str) -> Body | None:
    """GET /openapi/v3/<path>, None when there is none."""
    for group_version, members in kinds.group_versions().items():
        if _path(group_version) == path:
            paths = {url: item for kind in members for url, item in _paths(kind)}
            return {
                "openapi": "3.0.0",
                "info": {"title": "Kubernetes", "version": _shown_version(kinds.release)},
                "paths": dict(sorted(paths.items())),
                "components": {"schemas": _schemas(members)},
            }
    return None


def swagger(kinds: Registry) -> Body:
    """GET /openapi/v2: all in one document, in the older form."""
    everything = [kind for members in kinds.group_versions().values() for kind in members]
    text = json.dumps(_schemas(everything, older=True)).replace("#/components/schemas/", "#/definitions/")
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": _shown_version(kinds.release)},
        "paths": {url: _older(item) for kind in everything for url, item in _paths(kind)},
        "definitions": {name: _plain(schema) for name, schema in json.loads(text).items()},
    }


def _older(item: Body) -> Body:
    """Return a path without what version 2 writes elsewhere: bodies and the schemas of parameters."""
    older: Body = {}
    for verb, operation in item.items():
        if verb == "parameters":
            older[verb] = [_older_parameter(parameter) for parameter in operation]
            continue
        kept = {key: value for key, value in operation.items() if key not in ("requestBody", "responses", "parameters")}
        parameters = [_older_parameter(parameter) for parameter in operation["parameters"]]
        older[verb] = {
            **kept,
            "consumes": list(operation.get("requestBody", {}).get("content", {"*/*": None})),
            "produces": list(_MEDIA),
            "parameters": parameters,
            "responses": {code: {"description": "OK"} for code in operation["responses"]},
        }
    return older


def _older_parameter(parameter: Body) -> Body:
    rest = {key: value for key, value in parameter.items() if key != "schema"}
    return {**rest, **parameter["schema"]}


def _plain(schema: Any) -> Any:
    """Return a schema as version 2 has it: references stand alone, and nothing has several types."""
    if not isinstance(schema, dict):
        return schema
    if "allOf" in schema and len(schema["allOf"]) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("allOf", "default")}
        return {**schema["allOf"][0], **rest}
    if "oneOf" in schema:
        return {"type": "string", **({"format": schema["format"]} if "format" in schema else {})}
    found = {key: value for key, value in schema.items() if key != "default"}
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = _plain(found[key])
    if "properties" in found:
        found["properties"] = {name: _plain(below) for name, below in found["properties"].items()}
    return found


def _schemas(members: Sequence[Kind], *, older: bool = False) -> dict[str, Body]:
    meta = f"meta{release_mark(members[0].release)}/v1"
    refs = [f"{meta}.{name}" for name in ("DeleteOptions", "Status", "Patch")]
    custom: dict[str, Body] = {}
    for kind in members:
        root = None if kind.custom else root_of(kind.resource, kind.release)
        if root is None:
            name = _schema_name(kind)
            custom[name] = custom_schema(kind, older=older)
            custom[f"{name}List"] = custom_list(kind, name)
            refs += [f"{meta}.ObjectMeta", f"{meta}.ListMeta"]
            continue
        refs.append(root.ref)
        if _has_list(root.ref):
            refs.append(f"{root.ref}List")
        refs += [
            found.ref for sub in kind.subresources if (found := root_of(_sub_resource(sub), kind.release)) is not None
        ]
    return dict(sorted({**schemas_of(refs), **custom}.items()))


def _has_list(ref: str) -> bool:
    group, _, name = ref.partition("/")
    return f"{name}List" in table(group)


def _sub_resource(sub: Subresource) -> Resource:
    return Resource(sub.group, sub.version, sub.name, sub.kind)


def _gvk(kind: Kind) -> Body:
    return {"group": kind.resource.group, "version": kind.resource.version, "kind": kind.resource.kind}


def _schema_name(kind: Kind) -> str:
    root = None if kind.custom else root_of(kind.resource, kind.release)
    if root is not None:
        return schema_name(root.ref)
    return f"{'.'.join(reversed(kind.resource.group.split('.')))}.{kind.resource.version}.{kind.resource.kind}"


def _paths(kind: Kind) -> Iterator[tuple[str, Body]]:
    """Yield the paths of a kind, with their operations."""
    resource = kind.resource
    namespace = "{namespace}" if resource.namespaced else None
    places = ["namespace"] if resource.namespaced else []
    shown = reference(_schema_name(kind))
    collection = dict(_collection(kind, shown))
    if collection:
        yield resource.path(namespace), {**collection, "parameters": _in_path(places)}
    if resource.namespaced and "list" in kind.verbs:
        everywhere = _operation(kind, "list", f"list{_words(kind)}ForAllNamespaces", _list_of(kind), names=_LISTS)
        yield resource.path(), {"get": everywhere, "parameters": _in_path([])}
    item = dict(_item(kind, shown, kind.verbs))
    if item:
        yield resource.path(namespace, "{name}"), {**item, "parameters": _in_path([*places, "name"])}
    for sub in kind.subresources:
        root = root_of(_sub_resource(sub), kind.release)
        below = reference(schema_name(root.ref)) if root is not None and not kind.custom else shown
        operations = dict(_item(kind, below, sub.verbs, sub=sub))
        if "create" in sub.verbs:
            name = f"create{_words(kind)}{sub.name.title()}"
            operations["post"] = _operation(kind, "post", name, below, names=_WRITES, body=below, sub=sub)
        path = resource.path(namespace, "{name}", sub.name)
        yield path, {**operations, "parameters": _in_path([*places, "name"])}


def _words(kind: Kind) -> str:
    """``CoreV1NamespacedPod``."""
    group = kind.resource.group.partition(".")[0] or "core"
    scope = "Namespaced" if kind.resource.namespaced else ""
    return f"{group.title()}{kind.resource.version.title()}{scope}{kind.resource.kind}"


def _list_of(kind: Kind) -> Body:
    return reference(f"{_schema_name(kind)}List")


def _collection(kind: Kind, shown: Body) -> Iterator[tuple[str, Body]]:
    words = _words(kind)
    if "list" in kind.verbs:
        yield "get", _operation(kind, "list", f"list{words}", _list_of(kind), names=_LISTS)
    if "create" in kind.verbs:
        yield "post", _operation(kind, "post", f"create{words}", shown, names=_WRITES, body=shown)
    if "deletecollection" in kind.verbs:
        status, options = reference(f"{_META}.Status"), reference(f"{_META}.DeleteOptions")
        name = f"delete{words.replace(kind.resource.kind, f'Collection{kind.resource.kind}')}"
        names = (*_DELETES, *(given for given in _LISTS if given not in ("allowWatchBookmarks", "watch")))
        yield "delete", _operation(kind, "deletecollection", name, status, names=names, body=options)


def _item(
    kind: Kind, shown: Body, verbs: tuple[str, ...], *, sub: Subresource | None = None
) -> Iterator[tuple[str, Body]]:
    words = _words(kind) + (sub.name.title() if sub is not None else "")
    if "get" in verbs:
        yield "get", _operation(kind, "get", f"read{words}", shown, sub=sub)
    if "update" in verbs:
        yield "put", _operation(kind, "put", f"replace{words}", shown, names=_WRITES, body=shown, sub=sub)
    if "patch" in verbs:
        patched = _operation(kind, "patch", f"patch{words}", shown, names=(*_WRITES, "force"), sub=sub)
        yield "patch", {**patched, "requestBody": _patches(kind)}
    if "delete" in verbs:
        status, options = reference(f"{_META}.Status"), reference(f"{_META}.DeleteOptions")
        yield "delete", _operation(kind, "delete", f"delete{words}", status, names=_DELETES, body=options, sub=sub)


def _operation(
    kind: Kind,
    action: str,
    name: str,
    answer: Body,
    *,
    names: tuple[str, ...] = (),
    body: Body | None = None,
    sub: Subresource | None = None,
) -> Body:
    gvk = _gvk(kind) if sub is None else {"group": sub.group, "version": sub.version, "kind": sub.kind}
    codes = ("200", "201", "202") if action == "post" else ("200", "201") if action in ("put", "patch") else ("200",)
    content = {media: {"schema": answer} for media in _MEDIA}
    responses: Body = {code: {"description": "OK", "content": content} for code in codes}
    group = kind.resource.group.partition(".")[0] or "core"
    operation: Body = {
        "tags": [f"{group}_{kind.resource.version}"],
        "operationId": name,
        "parameters": [_parameter(given) for given in names],
        "responses": {**responses, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }
    if body is not None:
        required = {} if action.startswith("delete") else {"required": True}
        operation["requestBody"] = {"content": {"*/*": {"schema": body}}, **required}
    return operation


def _patches(kind: Kind) -> Body:
    accepted = (Patch.APPLY, Patch.JSON, Patch.MERGE) if kind.custom else sorted(Patch)
    return {"content": {media: {"schema": reference(f"{_META}.Patch")} for media in accepted}, "required": True}


def _in_path(places: list[str]) -> list[Body]:
    found: list[Body] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in places
    ]
    return [*found, _parameter("pretty")]


def _parameter(name: str) -> Body:
    return {"name": name, "in": "query", "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}

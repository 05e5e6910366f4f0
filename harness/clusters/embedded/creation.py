"""POST: from a body to a stored object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.harness.clusters.embedded import names, refusals
from mews.harness.clusters.embedded.kinds import Kind
from mews.harness.clusters.embedded.request import ADMIN, Request
from mews.harness.clusters.embedded.shapes import check_shape
from mews.harness.clusters.embedded.views import view_of
from mews.kube.api.errors import BadRequest
from mews.kube.api.objects import Object, clone, is_deleting
from mews.kube.api.resources import NAMESPACES

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.store import Store

_SERVERS_OWN = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
_CORE_KINDS = frozenset({"ConfigMap", "Event", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount"})
"""Kinds that can be taken for one another when a body goes to the wrong path."""

_DROPPED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generateName")


def create(
    store: Store,
    kind: Kind,
    namespace: str,
    body: Mapping[str, Any],
    request: Request = ADMIN,
    *,
    managed: Sequence[Object] = (),
) -> Object:
    """The object as stored, in the kind's own form; ``managed`` becomes its managedFields.

    Raises ``AlreadyExists``, ``Invalid``, ``Forbidden``, ``NotFound`` (the namespace) or ``BadRequest``.
    """
    obj = received(kind, body)
    metadata = obj["metadata"]
    place(kind, obj, namespace)
    if metadata.pop("resourceVersion", None):
        raise refusals.version_on_create()
    for name in _SERVERS_OWN:
        metadata.pop(name, None)
    metadata.pop("managedFields", None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = store.new_name(metadata["generateName"])
    _check_namespace(store, kind, obj)
    rules = store.rules(kind)
    if kind.status and not rules.keeps_status:
        obj.pop("status", None)
    rules.default(obj)
    rules.birth(obj)
    rules.admit(store, kind, obj)
    faults = [*names.faults(kind, obj), *rules.validate(obj)]
    if faults:
        raise refusals.invalid(kind, metadata.get("name", ""), faults)
    key = (metadata.get("namespace", ""), metadata["name"])
    known = store.find(kind, *key)
    if known is not None:
        raise refusals.exists(kind, key[1], deleting=is_deleting(known))
    metadata["uid"] = store.new_uid()
    metadata["creationTimestamp"] = store.timestamp()
    if kind.generation:
        metadata["generation"] = 1
    if managed:
        metadata["managedFields"] = list(managed)
    if not request.dry_run:
        obj = store.commit(kind, key, obj)
    return view_of(kind).show(obj)


def received(kind: Kind, body: Mapping[str, Any]) -> Object:
    """A body as an object that the store may keep: copied, in storage form, without nulls and empty metadata.

    Raises ``BadRequest`` when it is no object of that kind.
    """
    obj: Object = clone(body) if kind.custom else without_nulls(body)
    resource = kind.resource
    given = (obj.get("apiVersion") or resource.api_version, obj.get("kind") or resource.kind)
    if given != (resource.api_version, resource.kind):
        raise _wrong_kind(kind, *given)
    metadata = {} if obj.get("metadata") is None else obj["metadata"]
    check_shape(resource, obj, custom=kind.custom)
    obj.pop("apiVersion", None)
    obj.pop("kind", None)
    for name in _DROPPED_WHEN_EMPTY:
        if name in metadata and not metadata[name]:
            del metadata[name]
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **_rest(obj)}
    return view_of(kind).store(obj)


def _wrong_kind(kind: Kind, api_version: str, name: str) -> BadRequest:
    resource = kind.resource
    if kind.custom:
        if api_version != resource.api_version:
            return BadRequest(
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        return BadRequest(f"the kind in the data ({name}) does not match the expected kind ({resource.kind})")
    version = api_version.rpartition("/")[2]
    text = f'{name} in version "{version}" cannot be handled as a {resource.kind}: '
    if api_version == resource.api_version and name in _CORE_KINDS:
        return BadRequest(f"{text}converting (v1.{name}) to (core.{resource.kind}): unknown conversion")
    return BadRequest(
        f'{text}no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:110"'
    )


def _rest(obj: Object) -> Object:
    obj.pop("metadata", None)
    return obj


def without_nulls(value: Any) -> Any:
    """A deep copy without null members: to a built-in kind a null is as good as absent."""
    if isinstance(value, Mapping):
        return {
            key: without_nulls(item) if isinstance(item, (Mapping, list, tuple)) else item
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, (list, tuple)):
        return [without_nulls(item) for item in value]
    return value


def place(kind: Kind, obj: Object, namespace: str) -> None:
    """Put the object into the request's namespace; 400 when it says another one."""
    metadata = obj["metadata"]
    if not kind.resource.namespaced:
        metadata.pop("namespace", None)
        return
    if not namespace:
        raise BadRequest("namespace is required: an object of a namespaced kind must be created in a namespace")
    if metadata.get("namespace", namespace) != namespace:
        raise refusals.namespaces_differ()
    metadata["namespace"] = namespace


def _check_namespace(store: Store, kind: Kind, obj: Object) -> None:
    if not kind.resource.namespaced:
        return
    namespaces = store.kinds.of(NAMESPACES)
    name = obj["metadata"]["namespace"]
    namespace = store.find(namespaces, "", name)
    if namespace is None:
        raise refusals.missing(namespaces, name)
    if is_deleting(namespace):
        text = f"unable to create new content in namespace {name} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        raise refusals.forbidden(kind, obj["metadata"].get("name", ""), text, causes=[cause])

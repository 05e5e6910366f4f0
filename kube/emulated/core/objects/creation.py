"""POST: from a body to a stored object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import json, structs

from mews.kube.api.errors import ApiError, BadRequestError
from mews.kube.api.objects import Object, is_deleting
from mews.kube.api.resources import Resource
from mews.kube.emulated.core.objects.recording import record
from mews.kube.emulated.core.objects.validation import creation_errors
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.released_kinds import is_registered
from mews.kube.emulated.core.store.request import ADMIN, WriteRequest
from mews.kube.emulated.core.store.rules import KindRules
from mews.kube.emulated.core.store.views import ask_ahead, stored_form, view_of
from mews.kube.emulated.types.bodies import Refuse, decode, refused, shape_of
from mews.kube.emulated.types.decoding import decoder

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

SERVERS_OWN = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
"""Metadata that a new object is not asked for."""
_HEAD = dict.fromkeys(("apiVersion", "kind", "metadata"))
"""What comes first, in this order."""
_DROPPED_WHEN_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generateName")


# Complex: upstream's order of steps matters, and is read in one place.
def create(  # noqa: C901
    store: Store,
    kind: Kind,
    namespace: str,
    body: Mapping[str, Any],
    request: WriteRequest = ADMIN,
    *,
    managed: Sequence[Object] = (),
) -> Object:
    """Return the object as stored, in the kind's own form; ``managed`` becomes its managedFields.

    Raises ``AlreadyExistsError``, ``InvalidError``, ``ForbiddenError``, ``NotFoundError`` (the namespace) or
    ``BadRequestError``.
    """
    # Long because the order matters and must be read in one place: defaults are filled before managedFields record the
    # fields, and admission runs before validation: its answer is the one seen for an object that is wrong in both ways.
    if (before := store.rules(kind).before_create) is not None:
        before(store, kind)
    obj = received(kind, body, request)
    metadata = obj["metadata"]
    place(kind, obj, namespace)
    if not metadata.get("resourceVersion"):
        metadata.pop("resourceVersion", None)
    elif not request.dry_run:
        raise refusals.version_on_create()
    for name in SERVERS_OWN:
        if name != "generation" or kind.generation:  # kinds that count none keep what they are given
            metadata.pop(name, None)
    if not metadata.get("generation"):
        metadata.pop("generation", None)
    metadata.pop("managedFields", None)
    rules = store.rules(kind)
    if kind.status and not rules.keeps_status:
        _forget_status(kind, obj)
    now = store.timestamp()
    fill_in(rules, obj, now)
    if managed:
        metadata["managedFields"] = list(managed)
    else:
        record(store, kind, None, obj, subresource="", request=request)
    attributes = AdmissionAttributes(
        kind, AdmissionOperation.CREATE, obj, None, request, metadata.get("namespace", ""), metadata.get("name", "")
    )
    if store.advise is not None:
        request.warnings.extend(store.advise(kind, obj))
    store.admission.mutate(store, attributes)
    if attributes.changed:
        assert attributes.obj is not None
        obj = attributes.obj
        metadata = obj["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = request.once("name", lambda: store.new_name(metadata["generateName"]))
    _prepare(store, kind, rules, obj, request)
    if errors := creation_errors(rules, obj):
        raise refusals.invalid(kind, metadata.get("name", ""), errors)
    if rules.warn is not None:
        request.warnings.extend(rules.warn(obj, None))
    key = (metadata.get("namespace", ""), metadata["name"])
    known = store.find(kind, *key)
    if known is not None:
        deleting = is_deleting(known)
        store.admission.validate(store, attributes)  # who is not admitted does not learn that it is there
        raise refusals.exists(kind, key[1], deleting=deleting)
    if "uid" not in metadata:  # an object that refers to itself has one already
        metadata["uid"] = request.once("uid", store.new_uid)
    metadata["creationTimestamp"] = now
    if rules.stamp_create is not None:
        rules.stamp_create(obj, now)
    if kind.generation:
        metadata["generation"] = 1
    store.admission.validate(store, attributes)
    if not request.dry_run:
        stored = stored_form(kind, obj)
        ask_ahead(kind, stored)
        attributes.settle()
        obj = store.commit(kind, key, stored)
    return view_of(kind).show(obj)


def fill_in(rules: KindRules[Any], obj: Object, now: str) -> None:
    """Defaults, and times that default to now."""
    if rules.default is not None:
        rules.default(obj)
    if rules.default_times is not None:
        rules.default_times(obj, now)


def _prepare(store: Store, kind: Kind, rules: KindRules[Any], obj: Object, request: WriteRequest) -> None:
    """What a kind does to a new object between admission and validation."""
    if rules.warn_early is not None:
        request.warnings.extend(rules.warn_early(obj))
    if rules.prepare_create is not None:
        rules.prepare_create(obj, request.identity)
    if rules.admit is not None:
        rules.admit(store, kind, obj)
    if rules.allocate is not None:
        rules.allocate(store, kind, obj, "", request.dry_run)


def _forget_status(kind: Kind, obj: Object) -> None:
    """A new object has the status of one that says nothing."""
    obj.pop("status", None)
    field = shape_of(kind).fields.get("status")
    if field is not None and field.empty == "keep":
        obj["status"] = decoder(field.type)({}, [])


def received(
    kind: Kind,
    body: Mapping[str, Any],
    request: WriteRequest = ADMIN,
    refuse: Refuse = refused,
    stored: Object | None = None,
) -> Object:
    """Return a body as an object that the store may keep: decoded, with defaults, in storage form. ``stored`` is what a
    patch made the body of.

    Raises ``BadRequestError``, or what ``refuse`` makes, when it is no object of that kind, or holds unknown fields
    where they are forbidden.
    """
    resource = kind.resource
    given = (body.get("apiVersion") or resource.api_version, body.get("kind") or resource.kind)
    if given != (resource.api_version, resource.kind) and all(isinstance(word, str) for word in given):
        metadata = body.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        raise _wrong_kind(kind, *given, refuse, object_name=name)
    obj = decode(kind, body, request, refuse, stored)
    metadata = obj.get("metadata", {})
    given_metadata = body.get("metadata")  # asked for a dict first: to ask an abstract class is slow
    if isinstance(given_metadata, (dict, Mapping)) and given_metadata.get("managedFields") == []:
        metadata["managedFields"] = [{}]  # an explicit empty list takes all owners away, as does an empty entry
    for name in _DROPPED_WHEN_EMPTY:
        if name in metadata and not metadata[name]:
            del metadata[name]
    drop_repeated_owners(metadata, request)
    obj["apiVersion"], obj["kind"], obj["metadata"] = resource.api_version, resource.kind, metadata
    return view_of(kind).store({**_HEAD, **obj})


def drop_repeated_owners(metadata: dict[str, Any], request: WriteRequest) -> None:
    """Keep each owner once, and warn of those that were named again."""
    kept: dict[bytes, Any] = {}
    repeated: list[str] = []
    for owner in metadata.get("ownerReferences") or ():
        if kept.setdefault(json.encode(owner, order="sorted"), owner) is not owner:
            repeated.append(owner.get("uid", ""))
    if repeated:
        metadata["ownerReferences"] = list(kept.values())
        request.warnings.append(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and "
            "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(repeated)
        )


def _wrong_kind(kind: Kind, api_version: str, name: str, refuse: Refuse, *, object_name: str) -> ApiError:
    resource = kind.resource
    if kind.custom:
        if api_version != resource.api_version:
            return BadRequestError(
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        error = refusals.bad("kind", name, f"must be {resource.kind}")
        return refusals.invalid(replace(kind, resource=structs.replace(resource, kind=name)), object_name, [error])
    version = api_version.rpartition("/")[2]
    if api_version == resource.api_version and is_registered(kind.release, api_version, name):
        text = f"converting ({version}.{name}) to ({_package(resource)}.{resource.kind}): unknown conversion"
    else:
        text = f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:110"'
    if refuse is not refused:
        return refuse(kind, text)
    return BadRequestError(f'{name} in version "{version}" cannot be handled as a {resource.kind}: {text}')


def _package(resource: Resource) -> str:
    """Return the Go package of a group's internal types."""
    first, _, rest = resource.group.partition(".")
    return "apiserverinternal" if (first, rest) == ("internal", "apiserver.k8s.io") else first or "core"


def place(kind: Kind, obj: Object, namespace: str) -> None:
    """Put the object into the request's namespace; 400 when it says another one."""
    metadata = obj["metadata"]
    if not kind.resource.namespaced:
        metadata.pop("namespace", None)
        return
    if not namespace:
        raise BadRequestError("namespace is required: an object of a namespaced kind must be created in a namespace")
    if metadata.get("namespace", namespace) != namespace:
        raise refusals.namespaces_differ()
    metadata["namespace"] = namespace

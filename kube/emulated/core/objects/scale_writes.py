"""PUT and PATCH of the scale subresource: what is written is the object's number of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.kube.api.errors import BadRequestError, InvalidError
from mews.kube.api.objects import Object
from mews.kube.api.patches import json_patch, merge_patch
from mews.kube.client.port import Patch
from mews.kube.emulated.core.objects import scales, update
from mews.kube.emulated.core.objects.apply import apply, untyped
from mews.kube.emulated.core.objects.typed import struct_shape, typed_errors
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.json_errors import not_a_struct
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.types.bodies import decode_subresource

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store


def replace_scale(
    store: Store, kind: Kind, namespace: str, name: str, given: Mapping[str, Any], *, request: WriteRequest
) -> Object:
    """Return the Scale of an object after it was given the replicas of another. Raises as ``update.patch`` does."""
    scale = decode_subresource(kind, "scale", given, request)
    metadata = scale.get("metadata") or {}
    named = metadata.get("name", "")
    if named and named != name:
        raise refusals.names_differ(named, name)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        error = refusals.bad("spec.replicas", replicas, "must be greater than or equal to 0")
        causes = [{"reason": error.reason, "message": error.message(), "field": error.path}]
        raise InvalidError(
            f'Scale.autoscaling "{name}" is invalid: {error}',
            details={"name": name, "group": "autoscaling", "kind": "Scale", "causes": causes},
        )
    body = scales.change_of(kind, replicas)
    if metadata.get("resourceVersion"):
        body["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
    new = update.patch(
        store, kind, namespace, name, body, patch_kind=Patch.MERGE, request=replace(request, subresource="scale")
    )
    return scales.scale_of(kind, new)


def apply_scale(
    store: Store, kind: Kind, namespace: str, name: str, config: Any, *, force: bool, request: WriteRequest
) -> Object:
    """Return the Scale of an object after a manager applied one: it then owns the object's number of replicas."""
    given = config if isinstance(config, Mapping) else {}
    if (given.get("apiVersion"), given.get("kind")) != ("autoscaling/v1", "Scale"):
        group = given.get("apiVersion") or "/"
        raise BadRequestError(
            f"invalid object type: {group if '/' in group else f'/{group}'}, Kind={given.get('kind', '')}"
        )
    if errors := list(typed_errors(given, struct_shape("autoscaling/v1.Scale"))):
        raise untyped(given, "autoscaling/v1", errors)
    metadata, resource = given.get("metadata") or {}, kind.resource
    body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {**metadata}}
    replicas = (given.get("spec") or {}).get("replicas")
    if replicas is not None:
        body |= scales.change_of(kind, replicas)
    asked = replace(request, subresource="scale")
    new = apply(store, kind, namespace, name, body, subresource="scale", force=force, request=asked)
    return scales.scale_of(kind, new)


def patch_scale(
    store: Store, kind: Kind, namespace: str, name: str, body: Any, *, patch_kind: Patch, request: WriteRequest
) -> Object:
    """Return the Scale of an object after a JSON, merge or strategic patch of it. Raises as ``replace_scale`` does."""
    scale = scales.scale_of(kind, store.get(kind, namespace, name))
    del scale["metadata"]["resourceVersion"]  # the object may be of any
    patched: Object = json_patch(scale, body) if patch_kind is Patch.JSON else merge_patch(scale, body)
    if not isinstance(patched, dict):
        raise BadRequestError(f"couldn't get version/kind; json parse error: {not_a_struct(patched)}")
    return replace_scale(store, kind, namespace, name, patched, request=request)

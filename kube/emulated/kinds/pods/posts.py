"""What is posted to pods: bindings and evictions."""

from __future__ import annotations

from mews.kube.api.errors import BadRequestError
from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.wire import parameters
from mews.kube.emulated.core.wire.call import Call
from mews.kube.emulated.kinds.pods import actions


def bind(call: Call, body: Object, request: WriteRequest) -> Object:
    """POST pods/NAME/binding."""
    _check_name(call, body, "Binding")
    return actions.bind(call.world.store, call.namespace, call.route.name, body, request)


def post_binding(call: Call, body: Object, request: WriteRequest) -> Object:
    """POST bindings: the pod is named as the Binding is."""
    name = body["metadata"].get("name", "")
    return actions.bind(call.world.store, call.namespace, name, body, request, posted_to=call.kind)


def evict(call: Call, body: Object, request: WriteRequest) -> Object:
    """POST pods/NAME/eviction."""
    version = str(body.get("apiVersion") or "")
    if version not in ("", "policy/v1", "policy/v1beta1"):
        text = f'no kind "Eviction" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:110"'
        raise BadRequestError(
            f'Eviction in version "{version.rpartition("/")[2]}" cannot be handled as a Eviction: {text}'
        )
    _check_name(call, body, "Eviction")
    options = parameters.delete_options(call.query, body.get("deleteOptions"))
    return actions.evict(call.world.store, call.namespace, call.route.name, options, request)


def _check_name(call: Call, body: Object, kind: str) -> None:
    if (body.get("metadata") or {}).get("name") != call.route.name:
        raise BadRequestError(f"name in URL does not match name in {kind} object")

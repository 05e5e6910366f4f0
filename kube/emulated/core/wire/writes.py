"""POST, PUT, PATCH, DELETE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from mews.kube.api.errors import ApiError, BadRequestError
from mews.kube.api.objects import Object
from mews.kube.client.port import DeleteOptions, Patch
from mews.kube.emulated.core.objects import creation, deletion, update
from mews.kube.emulated.core.objects.apply import apply
from mews.kube.emulated.core.objects.scale_writes import apply_scale, patch_scale, replace_scale
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import completed
from mews.kube.emulated.core.store.limits import check_stored_size
from mews.kube.emulated.core.store.parts import part
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.selection import select
from mews.kube.emulated.core.wire import parameters
from mews.kube.emulated.core.wire.call import Call, read_aside, read_body, read_object, warning, yaml_of
from mews.kube.emulated.core.wire.negotiation import encode, media_of, parse_json
from mews.kube.emulated.core.wire.reads import list_body, written
from mews.kube.emulated.types import strictness
from mews.kube.emulated.types.bodies import decode as decode_body
from mews.kube.emulated.types.bodies import decode_subresource

_CREATED = 201
_JSON_TEXTS = ("application/json", Patch.JSON, Patch.MERGE, Patch.STRATEGIC)


def _request(call: Call, options: str) -> WriteRequest:
    agent = call.request.headers.get("User-Agent", "unknown")
    found = parameters.write_request(call.query, user=call.user, user_agent=agent, options=options)
    return replace(found, warnings=call.warnings)  # a refusal carries them too


async def _with_body(call: Call, request: WriteRequest, raw: bytes) -> WriteRequest:
    """Return the request with what strict validation wants to know of its body."""
    if request.validation == "Ignore" or media_of(call.request.headers.get("Content-Type", "")) not in _JSON_TEXTS:
        return request
    duplicates = await read_aside(
        call, raw, lambda: strictness.strict_errors(raw, None) if strictness.has_duplicates(raw) else ()
    )
    return replace(request, raw=raw, duplicates=duplicates)


def _warned(response: web.StreamResponse, request: WriteRequest) -> web.StreamResponse:
    """Return the response with a Warning header for each thing to be told."""
    for text in request.warnings:
        response.headers.add("Warning", warning(text))
    return response


async def _written_once(raw: bytes, write: Callable[[WriteRequest], Object], request: WriteRequest) -> Object:
    """Return a write that admission lets pass, tried first where its body is large."""

    def measured(request: WriteRequest) -> Object:
        check_stored_size(raw, write, request, encode)
        return write(request)

    return await completed(measured, request)


async def post(call: Call) -> web.StreamResponse:
    """Create an object, or act on one."""
    request = _request(call, "CreateOptions")
    body, raw = await read_object(call)
    request = await _with_body(call, request, raw)
    if call.route.subresource:
        acted = await completed(lambda request: _act(call, body, request), request)
        return _warned(call.answer(acted, _CREATED), request)
    if call.route.name:
        raise refusals.wrong_method()
    if "get" not in call.kind.verbs:
        reviewed = await completed(lambda request: _unstored(call, body, request), request)
        return _warned(call.answer(reviewed, _CREATED), request)
    namespace = call.namespace
    if call.kind.resource.namespaced and call.route.namespace is None:
        raise refusals.wrong_method()

    def create(request: WriteRequest) -> Object:
        return creation.create(call.world.store, call.kind, namespace, body, request)

    created = await _written_once(raw, create, request)
    return _warned(written(call, created, _CREATED), request)


def _unstored(call: Call, body: Object, request: WriteRequest) -> Object:
    """Return what is created only to be answered."""
    body = decode_body(call.kind, body, request)
    body["metadata"] = metadata = body.get("metadata") or {}
    creation.drop_repeated_owners(metadata, request)
    creation.place(call.kind, body, call.namespace)
    return _posted(call, "", body, request)


def _act(call: Call, body: Object, request: WriteRequest) -> Object:
    body = decode_subresource(call.kind, call.route.subresource, body, request)
    return _posted(call, call.route.subresource, body, request)


def _posted(call: Call, subresource: str, body: Object, request: WriteRequest) -> Object:
    reference = call.world.store.rules(call.kind).posts.get(subresource)
    if reference is None:
        raise refusals.wrong_method()
    answered: Object = part(reference)(call, body, request)
    return answered


async def put(call: Call) -> web.StreamResponse:
    """Replace an object, its status, finalizers or scale."""
    request = _request(call, "UpdateOptions")
    body, raw = await read_object(call)
    request = await _with_body(call, request, raw)
    if call.route.subresource == "scale":

        def scale_to(request: WriteRequest) -> Object:
            name = call.route.name
            return replace_scale(call.world.store, call.kind, call.namespace, name, body, request=request)

        return _warned(call.answer(await completed(scale_to, request)), request)
    store, route = call.world.store, call.route
    created = store.find(call.kind, call.namespace, route.name) is None

    def replace_it(request: WriteRequest) -> Object:
        sub = route.subresource
        return update.replace(store, call.kind, call.namespace, route.name, body, subresource=sub, request=request)

    new = await _written_once(raw, replace_it, request)
    return _warned(written(call, new, _CREATED if created else 200), request)


# Complex: one branch for each kind of patch.
async def patch(call: Call) -> web.StreamResponse:  # noqa: C901
    """JSON, merge, strategic merge patch; apply."""
    request = _request(call, "PatchOptions")
    media = media_of(call.request.headers.get("Content-Type", ""))
    if media not in list(Patch):
        raise ApiError("415: Unsupported Media Type", code=415, reason="UnsupportedMediaType", details={})
    kind, store, route = Patch(media), call.world.store, call.route
    raw = await read_body(call.request)
    forced = "force" in call.query
    if kind is Patch.APPLY:
        created = store.find(call.kind, call.namespace, route.name) is None
        if not call.query.get("fieldManager"):
            raise parameters.options_error(
                "PatchOptions", refusals.required("fieldManager", "is required for apply patch")
            )
        configuration = await _configuration(call, raw, request)

        def apply_it(request: WriteRequest) -> Object:
            if route.subresource == "scale":
                force = parameters.flag(call.query, "force")
                return apply_scale(
                    store, call.kind, call.namespace, route.name, configuration, force=force, request=request
                )
            return apply(
                store,
                call.kind,
                call.namespace,
                route.name,
                configuration,
                subresource=route.subresource,
                force=parameters.flag(call.query, "force"),
                request=request,
            )

        applied = await _written_once(raw, apply_it, request)
        if route.subresource == "scale":
            return _warned(call.answer(applied), request)
        return _warned(written(call, applied, _CREATED if created else 200), request)
    if forced:
        error = refusals.forbidden_field("force", "may not be specified for non-apply patch")
        raise parameters.options_error("PatchOptions", error)
    body = await read_aside(
        call, raw, lambda: parse_json(raw, "" if kind is Patch.STRATEGIC else "error decoding patch: ")
    )
    request = replace(await _with_body(call, request, raw), raw=b"")
    if route.subresource == "scale":

        def scale_it(request: WriteRequest) -> Object:
            return patch_scale(store, call.kind, call.namespace, route.name, body, patch_kind=kind, request=request)

        return _warned(call.answer(await completed(scale_it, request)), request)

    def patch_it(request: WriteRequest) -> Object:
        return update.patch(
            store,
            call.kind,
            call.namespace,
            route.name,
            body,
            patch_kind=kind,
            subresource=route.subresource,
            request=request,
        )

    return _warned(written(call, await _written_once(raw, patch_it, request)), request)


async def _configuration(call: Call, raw: bytes, request: WriteRequest) -> Any:
    """Return what is to be applied; keys that it has twice are refused or warned of, as the request wants it."""
    try:
        found, errors = await yaml_of(call, raw)
    except BadRequestError as error:
        raise BadRequestError(f"error decoding YAML: {error.message}") from None
    if request.validation == "Ignore":
        return found
    if errors and request.validation == "Strict":
        lines = "".join(f"\n  {error}" for error in errors)
        text = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:"
        raise BadRequestError(f"{text}{lines}")
    request.warnings.extend(errors)
    return found


def _warn_of_orphans(call: Call, options: DeleteOptions, request: WriteRequest) -> None:
    """Say what becomes of dependents, where the request does not."""
    warning = call.world.store.rules(call.kind).orphan_warning
    if warning and options.propagation is None:
        request.warnings.append(warning)


async def delete(call: Call) -> web.StreamResponse:
    """Serve DELETE of one object."""
    raw = await read_body(call.request)
    body = parameters.read_delete_options(raw, call.request.headers.get("Content-Type", ""))
    request = WriteRequest(call.user, dry_run=parameters.is_dry(call.query, body), answers={})
    options = parameters.delete_options(call.query, body)
    _warn_of_orphans(call, options, request)
    store, route = call.world.store, call.route
    try:
        gone = await completed(
            lambda request: deletion.delete(store, call.kind, call.namespace, route.name, options, request), request
        )
    except ApiError as error:
        call.warnings.extend(text for text in request.warnings if text not in error.warnings)
        raise
    return _warned(written(call, gone), request)


async def delete_collection(call: Call) -> web.StreamResponse:
    """Delete all that is selected."""
    if "deletecollection" not in call.kind.verbs:
        raise refusals.wrong_method()
    raw = await read_body(call.request)
    body = parameters.read_delete_options(raw, call.request.headers.get("Content-Type", ""))
    request = WriteRequest(call.user, dry_run=parameters.is_dry(call.query, body), answers={})
    selection = select(
        call.kind,
        namespace=call.route.namespace,
        labels=call.query.get("labelSelector", ""),
        fields=call.query.get("fieldSelector", ""),
    )
    options = parameters.delete_options(call.query, body)
    _warn_of_orphans(call, options, request)
    gone = await deletion.delete_selected(call.world.store, call.kind, selection, options, request)
    return _warned(call.answer(list_body(call.kind, gone)), request)

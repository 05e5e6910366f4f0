"""GET: objects, lists, tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from mews.kube.api.errors import BadRequestError, ServerError
from mews.kube.api.objects import Object
from mews.kube.client.port import ObjectList
from mews.kube.emulated.core.objects import scales
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import answered
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import select
from mews.kube.emulated.core.store.store import read_version
from mews.kube.emulated.core.tables.cells import ColumnSpec, meta_age
from mews.kube.emulated.core.wire import parameters, tables
from mews.kube.emulated.core.wire.call import Call
from mews.kube.emulated.core.wire.negotiation import Form

_META = "meta.k8s.io"
_PATIENCE_S = 3.0
_SCALE_COLUMNS = (
    ColumnSpec("Name"),
    ColumnSpec("Desired", type="integer"),
    ColumnSpec("Available", type="integer"),
    ColumnSpec("Age"),
)


async def get(call: Call) -> web.StreamResponse:
    """Return one object, or the same in another form."""
    version = call.query.get("resourceVersion", "")
    if version and not version.isdecimal():
        raise ServerError(str(refusals.version_error(version)), reason="")
    await _await_version(call)
    obj = await answered(lambda: call.world.store.get(call.kind, call.namespace, call.route.name))
    if call.route.subresource == "scale":
        scale = scales.scale_of(call.kind, obj)
        return call.answer(_scale_table(call, scale) if call.forms[0].kind == "Table" else scale)
    return written(call, obj)


def check_there(call: Call) -> None:
    """404 unless the object of the request's path is there."""
    if call.world.store.find(call.kind, call.namespace, call.route.name) is None:
        raise refusals.missing(call.kind, call.route.name)


def _scale_table(call: Call, scale: Object) -> dict[str, Any]:
    """Return a Scale as a table, in the columns that kubectl shows of one."""
    cells = [scale["metadata"]["name"], scale["spec"].get("replicas", 0), scale["status"]["replicas"]]
    since = meta_age(scale, call.world.store.now())
    form = call.forms[0]
    return {
        "kind": "Table",
        "apiVersion": f"{_META}/{form.version}",
        "metadata": {"resourceVersion": scale["metadata"]["resourceVersion"]},
        "columnDefinitions": [column.shown() for column in _SCALE_COLUMNS],
        "rows": [{"cells": [*cells, since], "object": tables.partial(scale, form.version)}],
    }


def written(call: Call, obj: Object, status: int = 200) -> web.Response:
    """Return an object as the client asked to see it."""
    form = _form(call.forms, ("Table", "PartialObjectMetadata"))
    if form is not None and obj.get("kind") != "Status":
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return call.answer(shaped(call, form, [obj], metadata, single=True), status)
    return call.answer(obj, status)


def _form(forms: Sequence[Form], kinds: tuple[str, ...]) -> Form | None:
    """Return the first form if it is one of those, and in a version that is known."""
    for form in forms:
        if form.kind in kinds and form.group == _META and form.version in ("v1", "v1beta1"):
            return form
        if not form.kind:
            return None
    return None


def shaped(
    call: Call, form: Form, objects: Sequence[Object], metadata: dict[str, Any], *, single: bool, head: bool = True
) -> dict[str, Any]:
    """Objects as a Table or as metadata alone."""
    if form.kind == "Table":
        return tables.table(
            call.kind,
            objects,
            call.world.store.rules(call.kind).printer,
            now_s=call.world.store.now(),
            metadata=metadata,
            include=call.query.get("includeObject") or "Metadata",
            version=form.version,
            head=head,
        )
    items = [tables.partial(obj, form.version) for obj in objects]
    if single:
        return items[0]
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"{_META}/{form.version}",
        "metadata": metadata,
        "items": items or None,
    }


def single_form(call: Call) -> Form | None:
    """Return how one object is to be shaped, None for as it is."""
    return _form(call.forms, ("Table", "PartialObjectMetadata"))


async def list_(call: Call) -> web.StreamResponse:
    """Return a list, a Table of it, or its metadata."""
    store, query = call.world.store, call.query
    parameters.check_list_options(query)
    await _await_version(call)
    selection = select(
        call.kind,
        namespace=call.route.namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
    )
    limit, token = parameters.number(query, "limit"), query.get("continue", "")
    match, given = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if token and given not in ("", "0"):
        raise BadRequestError("specifying resource version is not allowed when using continue")
    # A page of a list at a version is of that very version, unless the client says otherwise
    if match == "Exact" or (not match and given not in ("", "0") and limit is not None and limit > 0):
        version = read_version(given)
        found = await answered(lambda: store.list_at(call.kind, selection, version, limit=limit))
    else:  # whoever is content with any version is served from memory, wholly
        unlimited = limit is None or limit < 0 or given == "0"
        most = None if unlimited else limit
        found = await answered(lambda: store.list(call.kind, selection, limit=most, token=token))
    form = _form(call.forms, ("Table", "PartialObjectMetadataList"))
    if form is not None:
        return call.answer(shaped(call, form, found.items, _list_metadata(found), single=False))
    return call.answer(list_body(call.kind, found))


def list_body(kind: Kind, found: ObjectList) -> dict[str, Any]:
    """Return a list as on the wire: items of built-in kinds carry no kind and apiVersion."""
    items = found.items if kind.custom else [_bare(obj) for obj in found.items]
    return {
        "kind": f"{kind.resource.kind}List",
        "apiVersion": kind.resource.api_version,
        "metadata": {**({"continue": ""} if kind.custom else {}), **_list_metadata(found)},
        "items": items,
    }


def _bare(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def _list_metadata(found: ObjectList) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": found.resource_version}
    if found.continue_token:
        metadata["continue"] = found.continue_token
        if found.remaining is not None:
            metadata["remainingItemCount"] = found.remaining
    return metadata


async def _await_version(call: Call) -> None:
    """A read from a version yet to come waits for it a little."""
    text = call.query.get("resourceVersion", "")
    wanted, store = read_version(text), call.world.store
    deadline = asyncio.get_running_loop().time() + _PATIENCE_S
    while store.version < wanted:
        if asyncio.get_running_loop().time() > deadline:
            raise refusals.future_version(wanted, store.version)
        await asyncio.sleep(0.05)

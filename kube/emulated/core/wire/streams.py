"""Watches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from mews.kube.api.errors import ApiError, GoneError
from mews.kube.api.objects import Object
from mews.kube.client.port import EventType, WatchEvent
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import answered
from mews.kube.emulated.core.store.selection import select
from mews.kube.emulated.core.store.shelf import WatchInbox
from mews.kube.emulated.core.store.views import all_shown, view_of
from mews.kube.emulated.core.wire import parameters, reads, tables
from mews.kube.emulated.core.wire.call import Call, headers, warning
from mews.kube.emulated.core.wire.negotiation import JSON, encode

_BOOKMARK_EVERY_S = 60.0
_LAST_BOOKMARK_S = 2.0
"""Before the end of a watch."""

_LONGEST_WATCH_S = 2400

_BACKLOG = 10_000
"""Events that a client may leave unread, beside what the network holds, before its watch ends."""

_AT_ONCE = 500
_SMALL = 32 * 1024
"""Bytes that never fill what a connection holds, when it holds nothing yet (64 KiB, asyncio's and aiohttp's)."""
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


async def watch(call: Call) -> web.StreamResponse:
    """Events as JSON lines, until the timeout or until the server hangs up."""
    query, store = call.query, call.world.store
    name = call.route.name
    fields = ",".join(
        part for part in (query.get("fieldSelector", ""), f"metadata.name={name}" if name else "") if part
    )
    selection = select(call.kind, namespace=call.route.namespace, labels=query.get("labelSelector", ""), fields=fields)
    parameters.check_watch_options(query)
    version = query.get("resourceVersion", "")
    bookmarks = parameters.flag(query, "allowWatchBookmarks")
    initial = parameters.flag(query, "sendInitialEvents") if "sendInitialEvents" in query else version in ("", "0")
    if version and not version.isdecimal():
        raise ApiError(str(refusals.version_error(version)))
    lasts_s = parameters.number(query, "timeoutSeconds") or _LONGEST_WATCH_S
    response = web.StreamResponse(headers={**headers(), "Content-Type": JSON})
    if call.kind.warning:
        response.headers.add("Warning", warning(call.kind.warning))
    try:
        subscription = store.watch(call.kind, selection, "" if initial else version or str(store.version))
    except GoneError as error:
        await response.prepare(call.request)
        await response.write(encode({"type": "ERROR", "object": error.status()}) + b"\n")
        return response
    call.world.watches[subscription] = None
    subscription.backlog = _BACKLOG
    try:
        await response.prepare(call.request)
        await _pump(call, subscription, response, initial=initial and bookmarks, lasts_s=lasts_s)
    except ApiError as error:  # nobody converts what is to be shown
        await _write(call, response, encode({"type": "ERROR", "object": error.status()}) + b"\n")
    except ConnectionError:
        pass  # the client is gone, and so is whoever would care
    except _TooSlowError:
        if call.request.transport is not None:
            call.request.transport.abort()
    finally:
        store.shelf(call.kind).unsubscribe(subscription)
        subscription.close()
        call.world.watches.pop(subscription, None)
    return response


async def _pump(
    call: Call, subscription: WatchInbox, response: web.StreamResponse, *, initial: bool, lasts_s: float
) -> None:
    loop = asyncio.get_running_loop()
    end_s = loop.time() + lasts_s
    bookmarks = parameters.flag(call.query, "allowWatchBookmarks")
    lines, written_s = _Lines(call), 0.0
    if initial:
        version, ready = call.world.store.version, subscription.ready()
        await _send_events(call, response, lines, ready)
        await _write(call, response, lines.bookmark(version, initial_end=True))
    last_s = end_s - _LAST_BOOKMARK_S
    while (left_s := end_s - loop.time()) > 0:
        to_bookmark_s = min(_BOOKMARK_EVERY_S, last_s - loop.time())
        due = bookmarks and to_bookmark_s > 0
        try:
            event = await subscription.next_by(loop.time() + (to_bookmark_s if due else left_s))
        except TimeoutError:
            if due:  # a bookmark says that all up to it was told, also what came in this very moment
                version, ready = call.world.store.version, subscription.ready()
                await _send_events(call, response, lines, ready)
                await _write(call, response, lines.bookmark(version))
            continue
        if event is None:
            return
        await call.world.beat.after(written_s, len(call.world.watches))
        await _send_events(call, response, lines, [event, *subscription.ready()])
        written_s = loop.time()


class _TooSlowError(Exception):
    """The client takes nothing any more."""


async def _send_events(call: Call, response: web.StreamResponse, lines: _Lines, events: Sequence[WatchEvent]) -> None:
    for start in range(0, len(events), _AT_ONCE):
        group = events[start : start + _AT_ONCE]
        if call.kind.forms is not None:
            await answered(partial(all_shown, call.kind, [each.object for each in group]))
        await _write(call, response, b"".join(lines.line(each) for each in group))


async def _write(call: Call, response: web.StreamResponse, data: bytes) -> None:
    transport = call.request.transport
    if len(data) <= _SMALL and transport is not None and not transport.get_write_buffer_size():
        await response.write(data)  # the network takes it at once: nobody has to be waited for, nor to be patient with
        return
    try:
        async with asyncio.timeout(call.world.patience_s):
            await response.write(data)
    except TimeoutError:
        raise _TooSlowError from None


class _Lines:
    """Writes events in the client's form; only the first Table carries its columns."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._form = reads.single_form(call)
        self._show = view_of(call.kind).show
        self._head = True

    def line(self, event: WatchEvent) -> bytes:
        """Return one event."""
        if self._form is None:
            return self._call.world.texts.line(event, self._call.kind)
        obj: Any = self._show(event.object)
        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        obj = reads.shaped(self._call, self._form, [obj], metadata, single=True, head=self._head)
        self._head = False
        return encode({"type": event.type.value, "object": obj}) + b"\n"

    def bookmark(self, version: int, *, initial_end: bool = False) -> bytes:
        """Return how far the watch has come."""
        resource = self._call.kind.resource
        metadata: Object = {"resourceVersion": str(version)}
        if initial_end:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        obj: Any = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if self._form is not None and self._form.kind != "Table":
            obj |= {"kind": self._form.kind, "apiVersion": f"meta.k8s.io/{self._form.version}"}
        elif self._form is not None:
            obj = self._table(metadata, obj if initial_end else None)
        return encode({"type": EventType.BOOKMARK.value, "object": obj}) + b"\n"

    def _table(self, metadata: Object, ended: Object | None) -> Object:
        """Return a Table without rows; at the end of the initial events with one, of an object that is nothing but
        that."""
        form = self._form
        assert form is not None
        version = {"resourceVersion": metadata["resourceVersion"]}
        table = {**reads.shaped(self._call, form, [], version, single=False, head=self._head), "rows": None}
        if ended is not None:
            shown = tables.partial(ended, form.version)
            table["rows"] = [
                {
                    "cells": tables.empty_cells(self._call.kind, self._call.world.store.rules(self._call.kind).printer),
                    "object": shown,
                }
            ]
        return table

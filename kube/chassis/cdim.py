"""ChassisApi over NEC's configuration manager and layout-apply (contract cohdi.md 2.4, 2.5).

A move is a layout of one procedure, in the words of the published document, that is followed to its end. Layouts are
applied one at a time: one that meets another waits for it. What a device and a host port are called in the chassis
stands in ``attribute``, which the document leaves open; where it does not, they are called by their IDs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.chassis.parsed import ParsedBodies
from mews.kube.chassis.placed import attach_placed, detach_placed
from mews.kube.chassis.port import (
    ChassisApi,
    ChassisError,
    ChassisReply,
    DeviceRecord,
    Listing,
    RedfishCredentials,
    ReplyOutcome,
    Transport,
    TransportError,
    WireRequest,
    WireResponse,
)
from mews.kube.clock import rest

API = "/cdim/api/v1"
RESOURCES = f"{API}/resources?detail=true"
APPLY = f"{API}/layout-apply"
JSON = {"Content-Type": "application/json"}
POLL_S = 1.0
"""How often a layout is looked at; the operator does it every 10 s."""
CPU, ADAPTERS = "CPU", ("sourceFabricAdapter", "destinationFabricAdapter")
NOT_THERE = "404"
"""How a disconnect is refused of a device that is not connected there: it is free, or in another node."""
BUSY, SUSPENDED = "E40010", "E40027"


class _Placed(Struct, frozen=True):
    """A listing, and what its devices and ports are called on the wire."""

    listing: Listing
    ids: Mapping[str, str]
    """Device -> ``deviceID``."""
    nodes: Mapping[str, str]
    """Host port -> ID of the node, which is that of its CPU."""
    places: Mapping[str, str]
    """Device -> node that it is connected to."""


class CdimClient:
    """One chassis. A layout is followed, and one that is in its way waited for, for ``patience_s`` each at most."""

    def __init__(self, transport: Transport, patience_s: float = 120.0) -> None:
        self._transport, self._patience_s = transport, patience_s
        self._known = _Placed(Listing(()), {}, {}, {})
        self._places: dict[str, str] = {}

    async def resources(self) -> Listing:
        """Return the device lookup table: all detected devices, and the nodes that they are connected to.

        Raises ChassisError.
        """
        try:
            response = await self._send("GET", RESOURCES)
        except TransportError as error:
            raise ChassisError(f"GET {RESOURCES}: {error}") from error
        if response.status != 200:
            raise ChassisError(f"GET {RESOURCES}: HTTP {response.status}: {_message(response)}")
        self._known = _listings(response.body)
        self._places = dict(self._known.places)
        return self._known.listing

    async def attach(self, device: str, port: str) -> ChassisReply:
        """Connect a free device to the node on a host port."""
        return await attach_placed(
            device,
            port,
            lambda: self._places,
            read=self.resources,
            find=lambda: (device in self._known.ids, self._known.nodes.get(port, "")),
            attach=lambda node: self._move("connect", node, self._known.ids[device]),
            noun="node",
        )

    async def detach(self, device: str) -> ChassisReply:
        """Disconnect a device from the node that it was last in; if that is unknown or wrong, it is looked for."""
        return await detach_placed(
            device,
            lambda: self._places,
            read=self.resources,
            is_listed=lambda: device in self._known.ids,
            detach=lambda node: self._move("disconnect", node, self._known.ids[device]),
            elsewhere=NOT_THERE,
        )

    async def _move(self, operation: str, node: str, device: str) -> ChassisReply:
        """Ask for a layout of that one procedure until it is taken, and follow it."""
        procedure = {
            "operationID": 1,
            "operation": operation,
            "targetCPUID": node,
            "targetDeviceID": device,
            "dependencies": [],
        }
        body = json.dumps({"procedures": [procedure]}, separators=(",", ":")).encode()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._patience_s
        while True:
            try:
                response = await self._send("POST", APPLY, body)
            except TransportError as error:
                return await self._lost(procedure, str(error))
            code = _json(response).get("code") if response.status == 409 else None
            if code not in (BUSY, SUSPENDED) or loop.time() >= deadline_s - 1e-9:
                break
            if code == SUSPENDED:
                await self._unblock()
            await rest(min(POLL_S, deadline_s - loop.time()))
        if response.status == 202:
            return await self._followed(str(_json(response).get("applyID") or ""))
        outcome = ReplyOutcome.UNKNOWN if response.status >= 500 else ReplyOutcome.FAILED
        return ChassisReply(outcome, f"HTTP {response.status}: {_message(response)}")

    async def _lost(self, procedure: Mapping[str, Any], why: str) -> ChassisReply:
        """The answer to a request is lost: its layout may be under way, and is followed then."""
        for layout in await self._layouts("IN_PROGRESS"):
            if layout.get("procedures") == [procedure]:
                return await self._followed(str(layout.get("applyID") or ""))
        return ChassisReply(ReplyOutcome.UNKNOWN, why)

    async def _unblock(self) -> None:
        """Cancel what is suspended: it changes nothing any more, and nothing else is applied as long as it is there."""
        for layout in await self._layouts("SUSPENDED"):
            await self._canceled(str(layout.get("applyID") or ""))

    async def _layouts(self, status: str) -> list[dict[str, Any]]:
        """Return those of that status, with their procedures; none where no answer comes."""
        try:
            response = await self._send("GET", f"{APPLY}?status={status}&fields=procedures")
        except TransportError:
            return []
        found = _json(response).get("applyResults") if response.status == 200 else None
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    async def _followed(self, layout: str) -> ChassisReply:
        """Look at a layout until it has ended; a lost answer is asked for again."""
        if not layout:
            return ChassisReply(ReplyOutcome.UNKNOWN, "202 without an applyID")
        loop = asyncio.get_running_loop()
        deadline_s, last = loop.time() + self._patience_s, "still in progress"
        while loop.time() < deadline_s - 1e-9:
            await rest(min(POLL_S, deadline_s - loop.time()))
            try:
                response = await self._send("GET", f"{APPLY}/{layout}")
            except TransportError as error:
                last = str(error)
                continue
            if response.status == 404:
                return ChassisReply(ReplyOutcome.UNKNOWN, f"layout {layout} is lost")
            ended = _ended(_json(response)) if response.status == 200 else None
            if ended is not None:
                if _json(response).get("status") == "SUSPENDED":
                    await self._canceled(layout)
                return ended
        return ChassisReply(ReplyOutcome.UNKNOWN, f"{last} after {self._patience_s:g} s")

    async def _canceled(self, layout: str) -> None:
        """Cancel a layout, so that others can be applied; without an answer the next one meets it again."""
        try:
            await self._send("PUT", f"{APPLY}/{layout}?action=cancel")
        except TransportError:
            return

    async def _send(self, method: str, path: str, body: bytes = b"") -> WireResponse:
        """Return the answer. Raises TransportError."""
        return await self._transport.send(WireRequest(method, path, body, JSON if body else {}))


def connect(transport: Transport, account: RedfishCredentials | None, patience_s: float) -> ChassisApi:
    """Return the client of the dialect ``cdim``, which knows no login."""
    return CdimClient(transport, patience_s)


def _ended(layout: Mapping[str, Any]) -> ChassisReply | None:
    """Return what the end of a layout of one procedure says; None while it goes on."""
    status = layout.get("status")
    if status in ("IN_PROGRESS", "CANCELING"):
        return None
    if status == "COMPLETED":
        return ChassisReply(ReplyOutcome.DONE)
    results = layout.get("applyResult")
    first = results[0] if isinstance(results, list) and results and isinstance(results[0], dict) else {}
    body = first.get("responseBody") if isinstance(first.get("responseBody"), dict) else {}
    code = first.get("statusCode")
    refused = status == "FAILED" and first.get("status") == "FAILED" and isinstance(code, int) and code < 500
    outcome = ReplyOutcome.FAILED if refused else ReplyOutcome.UNKNOWN
    text = str(body.get("message") or "") if isinstance(body, dict) else ""
    return ChassisReply(outcome, f"{code if refused else status}: {text}")


def _parsed(body: bytes) -> _Placed:
    try:
        found = [each for each in json.loads(body)["resources"] if each["detected"]]
        nodes: dict[str, str] = {}
        ports: dict[str, str] = {}
        records, ids, places = [], {}, {}
        for each in found:
            shown = each["device"]
            if shown["type"] == ADAPTERS[1]:
                node = _node(shown)
                port = str(shown["attribute"].get("hostPort") or node)
                nodes[port], ports[node] = node, port
        for each in found:
            shown = each["device"]
            if shown["type"] in (CPU, *ADAPTERS):
                continue
            known, attribute = str(shown["deviceID"]), shown.get("attribute") or {}
            device, node = str(attribute.get("name") or known), _node(shown)
            port_of = ports.get(node, node) if node else None
            records.append(DeviceRecord(device, str(attribute.get("uuid") or ""), port_of, str(shown["type"]).upper()))
            ids[device] = known
            if node:
                places[device] = node
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ChassisError(f"GET {RESOURCES}: in another form: {error!r}") from error
    return _Placed(Listing(tuple(records), tuple(nodes)), ids, nodes, places)


_listings = ParsedBodies(_parsed)


def _node(device: Mapping[str, Any]) -> str:
    """Return the node that a device is linked to, "" for none."""
    return next((str(each["deviceID"]) for each in device.get("links") or () if each["type"] == CPU), "")


def _json(response: WireResponse) -> dict[str, Any]:
    """Return the object of a body, or an empty one."""
    try:
        value = json.loads(response.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _message(response: WireResponse) -> str:
    """Code and text of an error, or nothing."""
    value = _json(response)
    return f"{value.get('code')} {value.get('details') or value.get('message')}" if "code" in value else ""

"""The table over NEC's configuration manager and layout-apply (contract chassis.md 6): a move is a layout."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.conformance.client import Client, HttpReply, below_500
from mews.harness.conformance.errors import MalformedError
from mews.harness.conformance.fields import at, objects, text
from mews.harness.conformance.table import ListedDevice, ListedTable, Versions, more_than_once

API = "/cdim/api/v1"
RESOURCES = f"{API}/resources?detail=true"
APPLY = f"{API}/layout-apply"
NOBODY = "00000000-0000-4000-8000-000000000000"
"""A device, node or group that no pool has."""
NO_LAYOUT = "0000000000"
CPU, SOURCE, DESTINATION = "CPU", "sourceFabricAdapter", "destinationFabricAdapter"
HOST_SIDE, FABRIC_SIDE = "eesv", "eeio"
FIXED = (CPU, SOURCE, DESTINATION)
"""Types that are the cabling of nodes, and no devices that move."""
BUSY, SUSPENDED = "E40010", "E40027"
GOING_ON = ("IN_PROGRESS", "CANCELING")
MOST_S = 300.0
"""A layout that has not ended by then is taken for one that failed: the documents' own examples take ten minutes, the
operator waits for one."""
REST_S, MOST_REST_S = 0.05, 1.0


class PlacedDevice(Struct, frozen=True):
    """What a device is called on the wire, its type, and the node that it was last linked to, "" for none."""

    id: str
    kind: str
    node: str


class CdimTableClient:
    """Devices are called by ``attribute.name``, host ports by ``attribute.hostPort`` of the adapter in the chassis; by
    the ID of the device, and of the node, where there are none."""

    content_types = ("application/json", "application/json; charset=utf-8")
    content_type = content_types[0]

    def __init__(self, client: Client) -> None:
        self._client = client
        self.nodes: dict[str, str] = {}
        """Host port -> node."""
        self.placed: dict[str, PlacedDevice] = {}
        self.last: dict[str, Any] = {}
        """The last layout that was followed to its end."""

    def send(self, method: str, path: str, body: bytes | None = None) -> HttpReply:
        """Return an answer below 500."""
        kind = {} if body is None else {"Content-Type": self.content_type}
        reply = self._client.send(method, path, body, {"Accept": "application/json", **kind})
        return below_500(reply, f"{method} {path}")

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object of a 200.

        Raises NoAnswerError, HttpServerError, MalformedError.
        """
        reply = self.send("GET", path)
        value = reply.json()
        if reply.status != 200 or not isinstance(value, dict):
            raise MalformedError(f"GET {path}: HTTP {reply.status}: must be 200 and an object: {reply.text[:120]!r}")
        return value

    # The table

    def read(self) -> ListedTable:
        """Return all devices that move, free ones included; those that are not detected are left out."""
        value = self.get(RESOURCES)
        if not isinstance(value.get("resources"), list):
            raise MalformedError(f"GET {RESOURCES}: must have resources, a list")
        found = [each for each in objects(value, "resources") if each.get("detected") is not False]
        ports: dict[str, str] = {}
        for each in found:
            device = at(each, "device")
            if text(device, "type") == DESTINATION and (node := link_of(device, CPU)):
                ports[node] = text(device, "attribute", "hostPort") or node
        self.nodes = {port: node for node, port in ports.items()}
        rows: dict[str, ListedDevice] = {}
        names: list[str] = []
        for each in found:
            device = at(each, "device")
            if text(device, "type") in FIXED or not text(device, "deviceID"):
                continue
            name, node = text(device, "attribute", "name") or text(device, "deviceID"), link_of(device, CPU)
            names.append(name)
            rows[name] = ListedDevice(text(device, "attribute", "uuid"), ports.get(node, node) or None)
            self.placed[name] = PlacedDevice(text(device, "deviceID"), text(device, "type"), node)
        return ListedTable(rows, tuple(self.nodes), more_than_once(names))

    def node(self, port: str) -> str:
        """Return the node on a host port; of one that there is not, one that no pool has."""
        return self.nodes.get(port, NOBODY)

    def id(self, device: str) -> str:
        """``deviceID`` of a device; of one that there is not, what it is called."""
        known = self.placed.get(device)
        return device if known is None else known.id

    def attach(self, device: str, port: str) -> bool:
        """Return a layout of one connect; whether it is completed."""
        return self.applied(procedure("connect", self.node(port), self.id(device)))

    def detach(self, device: str) -> bool:
        """Return a layout of one disconnect, from the node that the device was last linked to; whether it is
        completed."""
        return self.applied(procedure("disconnect", self._place(device), self.id(device)))

    def detach_again(self, device: str, port: str) -> bool:
        """Return the same from that port's node."""
        return self.applied(procedure("disconnect", self.node(port), self.id(device)))

    def _place(self, device: str) -> str:
        known = self.placed.get(device)
        return (known.node if known is not None else "") or next(iter(self.nodes.values()), NOBODY)

    def call(self, device: str, port: str | None) -> str:
        """Return the request that moves a device."""
        node, word = (self._place(device), "disconnect") if port is None else (self.node(port), "connect")
        return f"POST {APPLY} {layout_body([procedure(word, node, self.id(device))]).decode()}"

    # Layouts

    def applied(self, *procedures: Mapping[str, Any]) -> bool:
        """Return whether a layout of these is taken, and completed in the end."""
        reply = self.ask(layout_body(procedures))
        layout = text(reply.json(), "applyID") if reply.status < 300 else ""
        return bool(layout) and self.ended(layout).get("status") == "COMPLETED"

    def ask(self, body: bytes) -> HttpReply:
        """Return the answer to a layout-apply; one that meets another layout is asked for again, and a suspended one is
        canceled."""
        deadline_s, rest_s = self._until(), REST_S
        while True:
            reply = self.send("POST", APPLY, body)
            code = code_of(reply) if reply.status == 409 else ""
            if code not in (BUSY, SUSPENDED) or time.monotonic() > deadline_s:
                return reply
            if code == SUSPENDED:
                for each in objects(self.get(f"{APPLY}?status=SUSPENDED"), "applyResults"):
                    self.send("PUT", f"{APPLY}/{text(each, 'applyID')}?action=cancel")
            rest_s = _rested(rest_s)

    def ended(self, layout: str) -> dict[str, Any]:
        """Return a layout once it has ended, or as it is when it should have."""
        deadline_s, rest_s = self._until(), REST_S
        while True:
            self.last = self.get(f"{APPLY}/{layout}")
            if self.last.get("status") not in GOING_ON or time.monotonic() > deadline_s:
                return self.last
            rest_s = _rested(rest_s)

    def _until(self) -> float:
        return time.monotonic() + max(min(MOST_S, self._client.left_s()), 0.0)

    def versions(self) -> Versions:
        """Return the server's own name: the dialect has no word for versions."""
        reply = self.send("GET", f"{API}/nodes")
        return Versions({"Server": reply.headers["server"]} if "server" in reply.headers else {})

    def close(self) -> None:
        """Layouts that have ended are the chassis' own record: they stay."""


def procedure(operation: str, node: str, device: str, number: int = 1, after: Sequence[int] = ()) -> dict[str, Any]:
    """Return one in the words of the published document."""
    return {
        "operationID": number,
        "operation": operation,
        "targetCPUID": node,
        "targetDeviceID": device,
        "dependencies": list(after),
    }


def layout_body(procedures: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the body of a layout-apply."""
    return json.dumps({"procedures": list(procedures)}).encode()


def link_of(device: Any, kind: str) -> str:
    """Return the first device that a device is linked to by a link of that type, "" for none."""
    return next((text(each, "deviceID") for each in objects(device, "links") if each.get("type") == kind), "")


def code_of(reply: HttpReply) -> str:
    """Return the code of an error, "" where it has none."""
    try:
        return text(reply.json(), "code")
    except MalformedError:
        return ""


def _rested(rest_s: float) -> float:
    threading.Event().wait(rest_s)
    return min(rest_s * 1.6, MOST_REST_S)

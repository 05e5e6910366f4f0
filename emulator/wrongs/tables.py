"""Reads and writes of the table in each dialect's own words, as far as a wrong has to know them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from mews.emulator.dialects.h3api import GID, port_gid
from mews.emulator.dialects.wire import JSON, TEXT, Request, Response, as_json
from mews.emulator.wrongs.wrong import TARGET, dialect_of

ACTION = re.compile(r"(.*/Zones/)([^/]+)/Actions/Zone\.(Add|Remove)Endpoint")
UPDATE = re.compile(r"/fabric_manager/api/v1/machines/([^/]+)/update")
Records = list[dict[str, Any]]


class AskedMove(Struct, frozen=True):
    """A request to move a device; ``port`` None: off its port, which ``left`` is where a dialect has to name it."""

    device: str
    port: str | None
    left: str | None = None


class Words(Protocol):
    """One dialect."""

    def lists(self, request: Request) -> bool:
        """Return whether it asks for the listing."""
        ...

    def move(self, request: Request) -> AskedMove | None:
        """Return what it asks for; None where it is no move."""
        ...

    def asking(self, request: Request, move: AskedMove) -> Request:
        """Return a request for that move, sent as this one."""
        ...

    def answered(self, request: Request, *, done: bool) -> Response:
        """Return the answer to a move."""
        ...

    def is_done(self, reply: Response) -> bool:
        """Return whether a move was answered as done."""
        ...


class H3Api(Struct, frozen=True):
    """``h3api`` (contract chassis.md 2)."""

    listing: str = "/h3api/v1/resources"
    allocation: str = "/h3api/v1/allocation"
    device: str = "Dev_GID"
    port: str = "Host_Port#"
    uuid: str = "OB_GPU_GUID"

    def lists(self, request: Request) -> bool:
        """GET of the resources."""
        return request.method == "GET" and request.path == self.listing

    def move(self, request: Request) -> AskedMove | None:
        """POST or DELETE of the allocation."""
        value = _body(request, self.allocation)
        if value is None or not isinstance(value.get("dev_gid"), str):
            return None
        gid = GID.fullmatch(str(value.get("port_gid", "")))
        port = str(int(gid[1], 16)) if gid else str(value.get("port_gid", ""))
        return AskedMove(value["dev_gid"], port if request.method == "POST" else None)

    def asking(self, request: Request, move: AskedMove) -> Request:
        """Return the port by its ``Port_GID``."""
        content = {"gep": "0", "dev_gid": move.device}
        if move.port is not None:
            content["port_gid"] = port_gid(move.port) if move.port.isdecimal() else move.port
        return _asking(request, self.allocation, move, content)

    def answered(self, request: Request, *, done: bool) -> Response:
        """``result`` is a list of one boolean."""
        action = "assign" if request.method == "POST" else "unassign"
        remark = "done" if done else "link timeout"
        return Response(200, JSON, as_json({"action": action, "result": [done], "remark": remark}))

    def is_done(self, reply: Response) -> bool:
        """Return it by ``result``."""
        value = _json(reply.body)
        return isinstance(value, dict) and value.get("result") == [True]


class ResourcePool(Struct, frozen=True):
    """``resource-pool`` (contract chassis.md 3)."""

    listing: str = "/resources"
    allocation: str = "/allocation"
    device: str = "devid"
    port: str = "hostport"
    uuid: str = "uuid"

    def lists(self, request: Request) -> bool:
        """GET of the resources."""
        return request.method == "GET" and request.path == self.listing

    def move(self, request: Request) -> AskedMove | None:
        """POST or DELETE of the allocation."""
        value = _body(request, self.allocation)
        if value is None or not isinstance(value.get("devid"), str):
            return None
        return AskedMove(value["devid"], str(value.get("hostport", "")) if request.method == "POST" else None)

    def asking(self, request: Request, move: AskedMove) -> Request:
        """Return the port by its name."""
        content = {"devid": move.device} if move.port is None else {"devid": move.device, "hostport": move.port}
        return _asking(request, self.allocation, move, content)

    def answered(self, request: Request, *, done: bool) -> Response:
        """Return it by the status."""
        return Response(204, {}, b"") if done else Response(400, TEXT, b"timed out")

    def is_done(self, reply: Response) -> bool:
        """Return it by the status."""
        return reply.status < 400


class Fm(Struct, frozen=True):
    """``fm`` (contract chassis.md 5): moves that name a resource. Ports are the UUIDs of machines, null for none."""

    listing: str = "/fabric_manager/api/v1/resources"
    allocation: str = "/fabric_manager/api/v1/machines/{}/update"
    device: str = "res_uuid"
    port: str = "mach_uuid"
    uuid: str = "res_serial_num"

    def lists(self, request: Request) -> bool:
        """GET of all resources."""
        return request.method == "GET" and request.path == self.listing

    def updates(self, request: Request) -> bool:
        """Return whether it is sent to where a machine's resources are changed."""
        return request.method != "GET" and UPDATE.fullmatch(request.path) is not None

    def move(self, request: Request) -> AskedMove | None:
        """PATCH or DELETE of a machine's resources."""
        named = UPDATE.fullmatch(request.path) if request.method in ("PATCH", "DELETE") else None
        spec = self.specification(request) if named is not None else None
        if named is None or spec is None:
            return None
        if request.method == "DELETE":
            return AskedMove(str(spec.get("res_uuid")), None, named[1])
        conditions = spec.get("res_spec", {}).get("condition", ())
        chosen = [each.get("value") for each in conditions if each.get("column") == "res_uuid"]
        return AskedMove(str(chosen[0]), named[1]) if chosen else None

    def specification(self, request: Request) -> dict[str, Any] | None:
        """Return the first resource specification of a body."""
        try:
            spec = json.loads(request.body)["tenants"]["machines"][0]["resources"][0]["res_specs"][0]
        except (ValueError, KeyError, IndexError, TypeError):
            return None
        return spec if isinstance(spec, dict) else None

    def asking(self, request: Request, move: AskedMove) -> Request:
        """Return a resource by its UUID; one that is to leave leaves the machine that is named, or that of the
        request."""
        named = UPDATE.fullmatch(request.path)
        spec, tenant = self.specification(request), request.query.get("tenant_uuid", "")
        machine = move.port or move.left or (named[1] if named is not None else "")
        kind = spec.get("res_type", "gpu") if spec is not None else "gpu"
        if move.port is None:
            wanted: dict[str, Any] = {"res_type": kind, "res_uuid": move.device, "res_num": 1}
        else:
            condition = {"column": "res_uuid", "operator": "eq", "value": move.device}
            wanted = {"res_type": kind, "res_spec": {"condition": [condition]}, "res_num": 1}
        item = {"mach_uuid": machine, "resources": [{"res_specs": [wanted]}]}
        body = as_json({"tenants": {"tenant_uuid": tenant, "machines": [item]}})
        path = self.allocation.format(machine)
        headers = {**request.headers, TARGET: f"{path}?tenant_uuid={tenant}"}
        method = "DELETE" if move.port is None else "PATCH"
        return Request(method, path, request.query, headers, body, secure=request.secure, address=request.address)

    def answered(self, request: Request, *, done: bool) -> Response:
        """Return the reply of a detach, an attach of what the request asks for, or an error."""
        if not done:
            return fm_error(409, "link timeout")
        if request.method == "DELETE":
            return Response(204, {}, b"")
        named, spec = UPDATE.fullmatch(request.path), self.specification(request)
        assert named is not None and spec is not None
        conditions = spec["res_spec"]["condition"]
        uuid = next(each["value"] for each in conditions if each["column"] == "res_uuid")
        own = [each for each in conditions if each["column"] == "model"]
        resource = {"res_uuid": uuid, "res_type": spec["res_type"], "res_spec": {"condition": own}}
        machine = {"mach_uuid": named[1], "resources": [resource]}
        return Response(200, JSON, as_json({"data": {"machines": [machine]}}))

    def is_done(self, reply: Response) -> bool:
        """Return it by the status."""
        return reply.status in (200, 204)


def fm_error(status: int, text: str) -> Response:
    """Return an error in the form of the fabric manager."""
    detail = {"code": "E029999", "message": text, "data": {}}
    return Response(status, JSON, as_json({"status": status, "detail": detail}))


class Cdim(Struct, frozen=True):
    """``cdim`` (contract chassis.md 6): moves are layouts of one procedure. Ports are the IDs of nodes."""

    listing: str = "/cdim/api/v1/resources"
    allocation: str = "/cdim/api/v1/layout-apply"

    def lists(self, request: Request) -> bool:
        """GET of all resources in full."""
        return request.method == "GET" and request.path == self.listing and request.query.get("detail") == "true"

    def move(self, request: Request) -> AskedMove | None:
        """Return a layout that has one procedure of the published form."""
        procedures = self.procedures(request)
        if len(procedures) != 1:
            return None
        (only,) = procedures
        node, device = only.get("targetCPUID"), only.get("targetDeviceID")
        waits = only.get("dependencies") != []
        if waits or only.get("operation") not in ("connect", "disconnect") or not node or not device:
            return None
        return AskedMove(str(device), str(node) if only["operation"] == "connect" else None, str(node))

    def procedures(self, request: Request) -> Records:
        """Return the procedures that a request asks for; none of another request."""
        value = _json(request.body) if (request.method, request.path) == ("POST", self.allocation) else None
        found = value.get("procedures") if isinstance(value, dict) else None
        return found if isinstance(found, list) and all(isinstance(each, dict) for each in found) else []

    def asking(self, request: Request, move: AskedMove) -> Request:
        """Return a layout of one procedure."""
        procedure: dict[str, Any] = {
            "operationID": 1,
            "operation": "disconnect" if move.port is None else "connect",
            "targetCPUID": move.port or move.left or "",
            "targetDeviceID": move.device,
            "dependencies": [],
        }
        return self.layout(request, [procedure])

    def layout(self, request: Request, procedures: Records) -> Request:
        """Return a layout of these."""
        headers = {**request.headers, TARGET: self.allocation, "content-type": "application/json"}
        body = as_json({"procedures": procedures})
        return Request("POST", self.allocation, {}, headers, body, secure=request.secure, address=request.address)

    def answered(self, request: Request, *, done: bool) -> Response:
        """Return whether it is taken: what becomes of it, the layout says."""
        if done:
            return Response(202, JSON, as_json({"applyID": "0000000000"}))
        return cdim_error(409, "E40010", "Already running. Cannot start multiple instances.")

    def is_done(self, reply: Response) -> bool:
        """Return whether it was taken, or is completed."""
        value = _json(reply.body)
        return reply.status == 202 or (isinstance(value, dict) and value.get("status") == "COMPLETED")


def cdim_error(status: int, code: str, text: str) -> Response:
    """Return an error in the form of layout-apply."""
    return Response(status, {**JSON, "X-Content-Type-Options": "nosniff"}, as_json({"code": code, "message": text}))


class Redfish(Struct, frozen=True):
    """``redfish`` (contract chassis.md 4): the actions of a zone."""

    def lists(self, request: Request) -> bool:
        """GET of the endpoints."""
        return request.method == "GET" and request.path.rstrip("/").endswith("/Endpoints")

    def move(self, request: Request) -> AskedMove | None:
        """AddEndpoint or RemoveEndpoint."""
        named = ACTION.fullmatch(request.path) if request.method == "POST" else None
        value = _json(request.body) if named else None
        link = value.get("Endpoint") if isinstance(value, dict) else None
        where = link.get("@odata.id") if isinstance(link, dict) else None
        if named is None or not isinstance(where, str):
            return None
        return AskedMove(where.rpartition("/")[2], named[2] if named[3] == "Add" else None)

    def asking(self, request: Request, move: AskedMove) -> Request:
        """Return a move of a device within the zone that the request is about, or of that device to another zone."""
        named = ACTION.fullmatch(request.path)
        assert named is not None
        value = json.loads(request.body)
        above = value["Endpoint"]["@odata.id"].rpartition("/")[0]
        value["Endpoint"] = {"@odata.id": f"{above}/{move.device}"}
        zone, word = (named[2], "Remove") if move.port is None else (move.port, "Add")
        target = f"{named[1]}{zone}/Actions/Zone.{word}Endpoint"
        headers = {**request.headers, TARGET: target}
        return Request("POST", target, {}, headers, as_json(value), secure=request.secure, address=request.address)

    def answered(self, request: Request, *, done: bool) -> Response:
        """204, or 400 with an error."""
        if done:
            return Response(204, {"OData-Version": "4.0"}, b"")
        return redfish_error(400, "GeneralError", "The device did not train.")

    def is_done(self, reply: Response) -> bool:
        """Return it by the status."""
        return reply.status < 400


def redfish_error(status: int, word: str, text: str) -> Response:
    """Return an error in the protocol's form (DSP0266, error responses)."""
    name = f"Base.1.18.{word}"
    info = [{"@odata.type": "#Message.v1_2_0.Message", "MessageId": name, "Message": text, "Severity": "Critical"}]
    body = {"error": {"code": name, "message": text, "@Message.ExtendedInfo": info}}
    return Response(status, {**JSON, "OData-Version": "4.0"}, as_json(body))


H3API, POOL, REDFISH, FM, CDIM = H3Api(), ResourcePool(), Redfish(), Fm(), Cdim()
PLAIN: Mapping[str, H3Api | ResourcePool | Fm] = {"h3api": H3API, "resource-pool": POOL, "fm": FM}
WORDS: Mapping[str, Words] = {**PLAIN, "redfish": REDFISH, "cdim": CDIM}


def words_of(request: Request) -> Words:
    """Return the dialect of a request."""
    return WORDS[dialect_of(request)]


def records_of(reply: Response) -> Records | None:
    """Return the objects of a plain listing; None where the reply is none."""
    value = _json(reply.body) if reply.status == 200 else None
    if isinstance(value, dict) and isinstance(value.get("data"), dict):
        value = value["data"].get("resources")
    return value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else None


def with_records(reply: Response, records: Any) -> Response:
    """Return the same listing with other objects."""
    value = _json(reply.body)
    if isinstance(value, dict):
        return with_json(reply, {**value, "data": {**value["data"], "resources": records}})
    return with_json(reply, records)


def with_json(reply: Response, value: Any) -> Response:
    """Return the same reply with another body."""
    return Response(reply.status, reply.headers, as_json(value), reply.stream)


def _body(request: Request, path: str) -> dict[str, Any] | None:
    if request.path != path or request.method not in ("POST", "DELETE"):
        return None
    value = _json(request.body)
    return value if isinstance(value, dict) else None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _asking(request: Request, path: str, move: AskedMove, content: Mapping[str, str]) -> Request:
    method = "DELETE" if move.port is None else "POST"
    headers = {**request.headers, TARGET: path}
    body = as_json(dict(content))
    return Request(method, path, {}, headers, body, secure=request.secure, address=request.address)

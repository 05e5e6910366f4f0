"""Dialect ``h3api`` (contract chassis.md 2)."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MAY, SHOULD, Clause, moves_resting_on, must, noticed, resting_on, unseen
from mews.harness.conformance.client import Client, HttpReply, below_500
from mews.harness.conformance.dialects.registry import DialectClauses
from mews.harness.conformance.errors import MalformedError, NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import kind_of, shown, text
from mews.harness.conformance.moves import bare_delete, moving, one_device_each, reading, watched
from mews.harness.conformance.table import ListedDevice, ListedTable, Versions, more_than_once
from mews.harness.conformance.trial import REFUSED_KINDS

RESOURCES = "/h3api/v1/resources"
ALLOCATION = "/h3api/v1/allocation"
TEXT = {"Content-Type": "text/plain"}
DEVICE = frozenset({"dev_type", "Dev_GID", "Host_Port#", "OB_GPU_GUID"})
PORT = frozenset({"Port#", "Port_GID"})
UNKNOWN_PORT = "9999"


class H3ApiTableClient:
    """The table over h3api. ``port_gid`` of a port is what the listing says, else as the contract computes it."""

    content_types = ("text/plain", "application/json")
    """What moves can be sent in: as the real clients do, and as a box may ask for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._gids: dict[str, str] = {}
        self.content_type = self.content_types[0]

    def read(self) -> ListedTable:
        """Return the listing."""
        records = _records(self._client.send("GET", RESOURCES))
        ports = {port: text(record, "Port_GID") for record in records if (port := text(record, "Port#"))}
        self._gids = {port: gid for port, gid in ports.items() if gid}
        rows = {
            device: ListedDevice(text(record, "OB_GPU_GUID"), text(record, "Host_Port#") or None)
            for record in records
            if (device := text(record, "Dev_GID"))
        }
        return ListedTable(rows, tuple(ports), more_than_once(text(record, "Dev_GID") for record in records))

    def attach(self, device: str, port: str, content_type: str = "") -> bool:
        """Return what ``result`` says."""
        return self.send(*self._move(device, port), content_type)

    def detach(self, device: str, content_type: str = "") -> bool:
        """Return what ``result`` says."""
        return self.send(*self._move(device, None), content_type)

    def bare_delete(self) -> bool:
        """Return what ``result`` says to a DELETE without a body."""
        reply = self._client.send("DELETE", ALLOCATION)
        try:
            return _result(below_500(reply, f"DELETE {ALLOCATION}"))
        except MalformedError:
            return False

    def call(self, device: str, port: str | None) -> str:
        """Return the request that moves a device."""
        method, body = self._move(device, port)
        return f"{method} {ALLOCATION} {body.decode()} (Content-Type {self.content_type})"

    def send(self, method: str, body: bytes, content_type: str = "") -> bool:
        """Return what ``result`` says to a raw body."""
        reply = self._client.send(method, ALLOCATION, body, {"Content-Type": content_type or self.content_type})
        return _result(below_500(reply, f"{method} {ALLOCATION}"))

    def versions(self) -> Versions:
        """Return the server's own name: the dialect has no word for versions."""
        reply = self._client.send("GET", RESOURCES)
        return Versions({"Server": reply.headers["server"]} if "server" in reply.headers else {})

    def close(self) -> None:
        """Nothing is kept."""

    def _move(self, device: str, port: str | None) -> tuple[str, bytes]:
        if port is None:
            return "DELETE", json.dumps({"gep": "0", "dev_gid": device}).encode()
        return "POST", json.dumps({"gep": "0", "port_gid": self._gid(port), "dev_gid": device}).encode()

    def _gid(self, port: str) -> str:
        if not port:
            return ""
        return self._gids.get(port) or (f"{int(port):02X}h" if port.isdecimal() else port)


def _records(reply: HttpReply) -> list[dict[str, Any]]:
    records = below_500(reply, f"GET {RESOURCES}").json()
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise MalformedError(f"GET {RESOURCES}: must be an array of objects: {reply.text[:120]!r}")
    return records


def _result(reply: HttpReply) -> bool:
    """Return the boolean of a reply in the form ``{"action": text, "result": [boolean], "remark": text}``."""
    value = reply.json()
    shape = isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("action", "remark"))
    result = value.get("result") if shape else None
    if not isinstance(result, list) or len(result) != 1 or not isinstance(result[0], bool):
        wanted = '{"action": text, "result": [boolean], "remark": text}'
        raise MalformedError(f"the reply {reply.text[:120]!r}: must be {wanted}")
    return result[0]


def _listing(bench: ClauseContext) -> list[dict[str, Any]]:
    return bench.insist(lambda: _records(bench.client.send("GET", RESOURCES)))


def _devices(bench: ClauseContext) -> list[dict[str, Any]]:
    return [record for record in _listing(bench) if text(record, "Dev_GID")]


def _array(bench: ClauseContext) -> None:
    reply = bench.get(RESOURCES)
    must(reply.status == 200, f"GET {RESOURCES}: HTTP {reply.status}, must be 200")
    try:
        value = reply.json()
    except MalformedError as error:
        raise UnmetClauseError(str(error)) from error
    inside = [name for name, each in value.items() if isinstance(each, list)] if isinstance(value, dict) else []
    wrapped = f" that wraps it as {', '.join(map(repr, inside))}" if inside else ""
    must(isinstance(value, list), f"GET {RESOURCES}: {kind_of(value)}{wrapped}, must be an array")
    for record in value:
        must(isinstance(record, dict), f"GET {RESOURCES}: the element {shown(record)}: must be an object")


def _names(bench: ClauseContext) -> None:
    for record in _listing(bench):
        for name in ("Dev_GID", "Port#"):
            value = record.get(name, "")
            must(isinstance(value, str), f"{name} of {shown(record)}: {shown(value)} must be a string")


def _strings(bench: ClauseContext) -> None:
    """A null where a device is free, and what devices and ports are called by, are what other clauses are about."""
    for record in _listing(bench):
        for name, value in record.items():
            named = name in ("Dev_GID", "Port#")
            right = named or isinstance(value, str) or (name == "Host_Port#" and value is None)
            must(right, f"{name} of {shown(record)}: {shown(value)} must be a string")


def _kinds(bench: ClauseContext) -> None:
    for record in _listing(bench):
        wanted = PORT if "Port#" in record else DEVICE
        missing = sorted(wanted - set(record))
        must(not missing, f"record {shown(record)}: {', '.join(missing)} is missing; a record is a device or a port")


def _port_gid(bench: ClauseContext) -> None:
    ports = [record for record in _listing(bench) if text(record, "Port#") and isinstance(record.get("Port_GID"), str)]
    if not ports:
        raise NotJudgedError("the listing names no port with its Port_GID")
    for record in ports:
        number, gid = text(record, "Port#"), record["Port_GID"]
        must(number.isdecimal(), f"Port# {number!r}: must be a number")
        must(gid == f"{int(number):02X}h", f"Port_GID {gid!r} of port {number}: must be {int(number):02X}h")


def _join(bench: ClauseContext) -> None:
    records = _listing(bench)
    if any(not text(record, "Port#") for record in records if "Port#" in record):
        raise NotJudgedError("a Port# is neither text nor number")
    ports = {text(record, "Port#") for record in records}
    for record in records:
        port = text(record, "Host_Port#")
        must(not port or port in ports, f"Host_Port# {port!r} of {record.get('Dev_GID')}: no record has such a Port#")


def _free_is_empty(bench: ClauseContext) -> None:
    """Also in the listings of before: where changes are allowed, one device was free for a while."""
    free = [record for record in _devices(bench) if _is_free(record)] or _once_free(bench)
    if not free:
        raise NotJudgedError("no device is free")
    for record in free:
        found = shown(record["Host_Port#"])
        must(found == '""', f"Host_Port# of free device {record['Dev_GID']}: {found}, must be an empty string")


def _once_free(bench: ClauseContext) -> list[dict[str, Any]]:
    """Return the records of free devices in the first listing of the run that has some."""
    for exchange in bench.client.log:
        if exchange.path == RESOURCES and exchange.status == 200:
            try:
                records = _records(HttpReply(200, {}, exchange.reply.encode()))
            except MalformedError:
                continue
            free = [record for record in records if text(record, "Dev_GID") and _is_free(record)]
            if free:
                return free
    return []


def _is_free(record: dict[str, Any]) -> bool:
    return "Host_Port#" in record and record["Host_Port#"] in (None, "")


def _unique(bench: ClauseContext) -> None:
    records = _devices(bench)
    devices = [text(record, "Dev_GID") for record in records]
    twice = sorted({device for device in devices if devices.count(device) > 1})
    must(not twice, f"Dev_GID {', '.join(twice)} is listed more than once")
    one_device_each({text(record, "Dev_GID"): text(record, "OB_GPU_GUID") for record in records})


def _no_authentication(bench: ClauseContext) -> None:
    reply = bench.get(RESOURCES)
    must(reply.status not in (401, 403), f"GET {RESOURCES} without credentials: HTTP {reply.status}")


def _any_content_type(bench: ClauseContext) -> None:
    """What the first move found out, else both ways."""
    refused = bench.facts.get(REFUSED_KINDS)
    if refused:
        used = bench.face.content_type
        raise UnmetClauseError(f"a request with Content-Type {refused[0]} is refused, the same with {used} is not")
    device = bench.free()
    port = bench.ports[0]
    _sent_as(bench, device, port, "application/json")
    _sent_as(bench, device, None, "application/x-www-form-urlencoded")


def _sent_as(bench: ClauseContext, device: str, port: str | None, kind: str) -> None:
    """A move in that content type; where it fails, one in text/plain tells whether the type was to blame."""

    def ask() -> bool:
        return bool(bench.face.detach(device, kind) if port is None else bench.face.attach(device, port, kind))

    mark = bench.ledger.mark()
    if bench.move(device, port, ask):
        return
    if not bench.move(device, port):
        raise NotJudgedError(f"device {device} cannot be moved with text/plain either")
    bench.ledger.rewind(mark, "attach", "detach", "reply")
    raise UnmetClauseError(f"a request with Content-Type {kind} is refused, the same with text/plain is not")


def _result_on_failure(bench: ClauseContext) -> None:
    for body in (b"{", b"[]", b'{"gep":"0"}')[: bench.often(3)]:
        for method in ("POST", "DELETE"):
            reply = bench.insist(partial(_no_5xx, bench, method, body))
            try:
                failed = not _result(reply)
            except MalformedError as error:
                if _form_is_known(bench) and not reply.text.lstrip().startswith("{"):
                    raise UnmetClauseError(f"{method} {ALLOCATION} {body.decode()}: {error}") from error
                bench.note("reply", str(error))
                continue
            if not failed:
                bench.note("truth-attach" if method == "POST" else "truth-detach", f"{body.decode()} answered as done")


def _form_is_known(bench: ClauseContext) -> bool:
    """Return whether any write was answered in the right form: else it is no matter of failures."""
    for exchange in bench.client.log:
        if exchange.path == ALLOCATION and exchange.status is not None:
            try:
                _result(HttpReply(exchange.status, {}, exchange.reply.encode()))
            except MalformedError:
                continue
            return True
    return False


def _no_5xx(bench: ClauseContext, method: str, body: bytes) -> HttpReply:
    return below_500(bench.client.send(method, ALLOCATION, body, TEXT), f"{method} {ALLOCATION}")


def _empty_port(bench: ClauseContext) -> None:
    device = bench.free()
    bench.refused(device, "", lambda: bench.face.attach(device, ""), "attach without a port")


def _lower_case(bench: ClauseContext) -> None:
    replies = [exchange for exchange in bench.client.log if exchange.path == ALLOCATION and exchange.reply]
    if not replies:
        raise NotJudgedError("no write was answered")
    for exchange in replies:
        try:
            value = json.loads(exchange.reply)
        except ValueError:
            continue
        upper = [name for name in value if re.search("[A-Z]", name)] if isinstance(value, dict) else []
        must(not upper, f"the reply {exchange.reply[:120]!r}: keys must be lower case")


READ = "GET /h3api/v1/resources"
ATTACH = "POST /h3api/v1/allocation"
DETACH = "DELETE /h3api/v1/allocation"

NO_AUTH = Clause("2.no-auth", "no authentication is asked for", "chassis.md 2: No authentication", _no_authentication)
ARRAY = Clause("2.array", "the listing is a JSON array of objects", f"chassis.md 2: {READ}", _array)

NAMES = Clause("2.names", "devices and ports are named by strings", f"chassis.md 2: {READ}", _names)
PORT_GID = Clause("2.port-gid", "Port_GID is hex(Port#) and an h", f"chassis.md 2: {READ}", _port_gid)

EMPTY_PORT = Clause(
    "2.empty-port", "an attach without a port is refused", f"chassis.md 1, 2: {ATTACH}", _empty_port, changes=True
)
FAILURE = Clause(
    "2.failure",
    "a failure is result:[false] in a body, whatever the HTTP status",
    f"chassis.md 2: {ATTACH}, {DETACH}",
    _result_on_failure,
    changes=True,
)

RESTING: tuple[Clause, ...] = (
    NAMES,
    Clause("2.strings", "every value of the listing is a string", f"chassis.md 2: {READ}", _strings),
    Clause("2.kinds", "a record is a device or a port, with the members of its kind", f"chassis.md 2: {READ}", _kinds),
    PORT_GID,
    Clause("2.join", "Host_Port# of an attached device is the Port# of a port", f"chassis.md 2: {READ}", _join),
    Clause(
        "2.free",
        "Host_Port# of a free device is an empty string",
        f"chassis.md 2 (I): {READ}",
        _free_is_empty,
        assumed=True,
        last=True,
        grade=SHOULD,
    ),
    Clause(
        "2.one-port", "a device is listed once: it is on at most one host port", f"chassis.md 1, 2: {READ}", _unique
    ),
    *reading(2, read=READ),
    *moving(
        2,
        attach=ATTACH,
        detach=DETACH,
        unknown_port=UNKNOWN_PORT,
        free=(EMPTY_PORT, FAILURE),
        held=(bare_delete(2, detach=DETACH),),
    ),
    Clause(
        "2.content-type",
        "any Content-Type is accepted",
        f"chassis.md 2: {ATTACH}, {DETACH}",
        _any_content_type,
        changes=True,
    ),
    Clause(
        "2.lower-case",
        "replies to writes have lower-case keys",
        f"chassis.md 2: {DETACH}",
        _lower_case,
        changes=True,
        last=True,
    ),
    Clause(
        "2.reply",
        "a write is answered {action, result:[boolean], remark}",
        f"chassis.md 2: {ATTACH}, {DETACH}",
        noticed("reply", kind="detach"),
        changes=True,
        last=True,
        needs=("2.failure",),
    ),
    *watched(2, attach=ATTACH, detach=DETACH, read=READ),
    Clause(
        "2.times",
        "operations take no longer than on the measured boxes",
        "chassis.md 2: measured on the real boxes",
        noticed("times"),
        last=True,
        grade=SHOULD,
    ),
    Clause(
        "2.host-lag",
        "NVML on the host may answer an unknown error for a while after a hot-plug",
        "chassis.md 2: host side lags",
        unseen("seen on the host, not on the chassis' wire"),
        grade=MAY,
    ),
)

CLAUSES = (
    NO_AUTH,
    *resting_on((NO_AUTH.id,), (ARRAY, *resting_on((ARRAY.id,), moves_resting_on((NAMES.id, PORT_GID.id), RESTING)))),
)

DIALECT_CLAUSES = DialectClauses(H3ApiTableClient, CLAUSES, __file__, home=RESOURCES, words=("Dev_GID", "Port_GID"))

"""Dialect ``resource-pool`` (contract chassis.md 3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MAY, Clause, moves_resting_on, must, noticed, resting_on, unseen
from mews.harness.conformance.client import Client, HttpReply, below_500
from mews.harness.conformance.dialects.registry import DialectClauses
from mews.harness.conformance.errors import MalformedError, NotJudgedError, UnmetClauseError
from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.fields import kind_of, shown, text
from mews.harness.conformance.moves import UNKNOWN_DEVICE, bare_delete, moving, one_device_each, reading, watched
from mews.harness.conformance.table import ListedDevice, ListedTable, Versions, more_than_once, port_text
from mews.harness.conformance.trial import FIRST_ATTACH, FIRST_DETACH, FIRST_MOVES, FREE_DETACH, REFUSED_KINDS

RESOURCES = "/resources"
ALLOCATION = "/allocation"
NAMES = frozenset({"devid", "uuid", "hostport"})
UNKNOWN_PORT = "mews-no-such-port"

BAD_PAYLOADS = (b"{", b"", b"[]", b"7", b'{"devid":7}')
ATTACHED = (400, "Device is already attached. Detach it first.")
NO_PORT = (400, "HostPort is not given.")
PAYLOAD = (400, "Invalid request payload")
NOT_FOUND = (404, "Device not found")


class ResourcePoolTableClient:
    """The table over resource-pool. Ports are those that devices are on: the dialect lists no others."""

    content_types = ("application/json", "text/plain")
    """What moves can be sent in."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.content_type = self.content_types[0]

    def read(self) -> ListedTable:
        """Return the listing."""
        records = _records(self._client.send("GET", RESOURCES))
        rows = {
            device: ListedDevice(text(record, "uuid"), text(record, "hostport") or None)
            for record in records
            if (device := text(record, "devid"))
        }
        ports = tuple(dict.fromkeys(row.port for row in rows.values() if row.port is not None))
        return ListedTable(rows, ports, more_than_once(text(record, "devid") for record in records))

    def attach(self, device: str, port: str) -> bool:
        """Return whether the status says so."""
        return self._write("POST", _body(device, port))

    def detach(self, device: str) -> bool:
        """Return whether the status says so."""
        return self._write("DELETE", _body(device, None))

    def bare_delete(self) -> bool:
        """Return whether the status of a DELETE without a body says so."""
        return below_500(self._client.send("DELETE", ALLOCATION), f"DELETE {ALLOCATION}").status < 400

    def call(self, device: str, port: str | None) -> str:
        """Return the request that moves a device."""
        method = "DELETE" if port is None else "POST"
        return f"{method} {ALLOCATION} {_body(device, port).decode()} (Content-Type {self.content_type})"

    def send(self, method: str, body: bytes) -> HttpReply:
        """Return the answer to a raw body, below 500."""
        reply = self._client.send(method, ALLOCATION, body, {"Content-Type": self.content_type})
        return below_500(reply, f"{method} {ALLOCATION}")

    def versions(self) -> Versions:
        """Return the server's own name: the dialect has no word for versions."""
        reply = self._client.send("GET", RESOURCES)
        return Versions({"Server": reply.headers["server"]} if "server" in reply.headers else {})

    def close(self) -> None:
        """Nothing is kept."""

    def _write(self, method: str, body: bytes) -> bool:
        return self.send(method, body).status < 400


def _records(reply: HttpReply) -> list[dict[str, Any]]:
    records = below_500(reply, f"GET {RESOURCES}").json()
    records = [] if records is None else records
    whole = isinstance(records, list) and all(isinstance(record, dict) for record in records)
    if reply.status >= 400 or not whole:
        raise MalformedError(f"GET {RESOURCES}: HTTP {reply.status}: must be 200 and a list: {reply.text[:120]!r}")
    return list(records)


def _listing(bench: ClauseContext) -> list[dict[str, Any]]:
    return bench.insist(lambda: _records(bench.client.send("GET", RESOURCES)))


def _no_authentication(bench: ClauseContext) -> None:
    reply = bench.get(RESOURCES)
    must(reply.status not in (401, 403), f"GET {RESOURCES} without credentials: HTTP {reply.status}")


def _list(bench: ClauseContext) -> None:
    reply = bench.get(RESOURCES)
    must(reply.status == 200, f"GET {RESOURCES}: HTTP {reply.status}, must be 200")
    try:
        value = reply.json()
    except MalformedError as error:
        raise UnmetClauseError(str(error)) from error
    inside = [name for name, each in value.items() if isinstance(each, list)] if isinstance(value, dict) else []
    wrapped = f" that wraps it as {', '.join(map(repr, inside))}" if inside else ""
    whole = value is None or isinstance(value, list)
    must(whole, f"GET {RESOURCES}: {kind_of(value)}{wrapped}, must be a list, or null when empty")
    for record in value or []:
        must(isinstance(record, dict), f"GET {RESOURCES}: the element {shown(record)}: must be an object")


def _members(bench: ClauseContext) -> None:
    for record in _listing(bench):
        must(set(record) == NAMES, f"record {shown(record)}: must have devid, uuid and hostport, and no others")


def _names(bench: ClauseContext) -> None:
    for record in _listing(bench):
        value = record.get("devid", "")
        must(isinstance(value, str), f"devid of {shown(record)}: {shown(value)} must be a string")


def _strings(bench: ClauseContext) -> None:
    """A null where a device is free is what another clause is about."""
    for record in _listing(bench):
        for name, value in record.items():
            right = name == "devid" or isinstance(value, str) or (name == "hostport" and value is None)
            must(right, f"{name} of {shown(record)}: {shown(value)} must be a string")


def _unique(bench: ClauseContext) -> None:
    records = _listing(bench)
    devices = [device for record in records if (device := text(record, "devid"))]
    twice = sorted({device for device in devices if devices.count(device) > 1})
    must(not twice, f"devid {', '.join(twice)} is listed more than once")
    one_device_each({text(record, "devid"): text(record, "uuid") for record in records})


def _null(bench: ClauseContext) -> None:
    if _listing(bench):
        raise NotJudgedError("there are devices")
    reply = bench.get(RESOURCES)
    must(reply.text.strip() == "null", f"{reply.text[:60]!r}: must be null")


def _free(bench: ClauseContext) -> None:
    """Also in the listings of before: where changes are allowed, one device was free for a while."""
    free = [record for record in _listing(bench) if _is_free(record)] or _once_free(bench)
    if not free:
        raise NotJudgedError("no device is free")
    for record in free:
        found = shown(record["hostport"])
        must(found == '""', f"hostport of free device {shown(record.get('devid'))}: {found}, must be an empty string")


def _once_free(bench: ClauseContext) -> list[dict[str, Any]]:
    """Return the records of free devices in the first listing of the run that has some."""
    for exchange in bench.client.log:
        if exchange.path == RESOURCES and exchange.status == 200:
            try:
                free = [record for record in _records(HttpReply(200, {}, exchange.reply.encode())) if _is_free(record)]
            except MalformedError:
                continue
            if free:
                return free
    return []


def _is_free(record: Mapping[str, Any]) -> bool:
    return "hostport" in record and record["hostport"] in (None, "")


def _wrong_verbs(path: str, *verbs: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        for verb in verbs:
            reply = bench.get(path, verb)
            must(reply.status == 405, f"{verb} {path}: HTTP {reply.status}, must be 405")

    return check


def _no_content(bench: ClauseContext) -> None:
    """Judges the answers to the first move there and back; what that did not need is asked for now."""
    first: Mapping[str, Exchange] = bench.facts.get(FIRST_MOVES, {})
    for what in (FREE_DETACH, FIRST_ATTACH, FIRST_DETACH):
        made = first.get(what) or _made(bench, what)
        bench.borrowed = (made,)
        refused = made.status is None or (made.status >= 400 and what != FREE_DETACH)
        good = refused or (made.status, made.reply) == (204, "")
        must(good, f"{what}: HTTP {made.status} {made.reply[:60]!r}, must be 204 without a body")


def _made(bench: ClauseContext, what: str) -> Exchange:
    """Return the exchange of such a move."""
    device, port = bench.attached() if what == FIRST_DETACH else (bench.free(), bench.ports[0])
    if what == FREE_DETACH:
        bench.ask(device, None, lambda: bool(bench.face.detach(device)))
    elif not bench.move(device, None if what == FIRST_DETACH else port):
        raise NotJudgedError(f"device {device} cannot be moved")
    return bench.last_write()


def _body(device: str, port: str | None) -> bytes:
    return json.dumps({"devid": device} if port is None else {"devid": device, "hostport": port}).encode()


def _answered(bench: ClauseContext, device: str, port: str | None, method: str, body: bytes) -> HttpReply | None:
    """Return one write's reply, also told to the ledger; None where there was no answer."""
    replies: list[HttpReply] = []

    def ask() -> bool:
        replies.append(bench.face.send(method, body))
        return replies[0].status < 400

    bench.ask(device, port, ask)
    return replies[0] if replies else None


def _answers(
    wanted: tuple[int, str], method: str, body: Callable[[ClauseContext], tuple[str, Mapping[str, Any] | bytes]]
) -> Callable[[ClauseContext], None]:
    """Return a check that a request which must be refused is, with that status and text; it tries again without an
    answer."""

    def check(bench: ClauseContext) -> None:
        device, content = body(bench)
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        sent = raw.decode("utf-8", "replace")
        table = bench.read()
        before = table.port(device)
        for _ in range(3):
            reply = _answered(bench, device, before, method, raw)
            after = bench.read()
            bench.compare_others(device, table, after)
            if after.port(device) != before and device in after.rows:
                now = port_text(after.port(device))
                raise UnmetClauseError(f"{method} {sent}: device {device} was on {port_text(before)}, is on {now}")
            if reply is None:
                continue
            if reply.status < 400:
                bench.note("truth-attach" if method == "POST" else "truth-detach", f"{method} {sent}: answered as done")
                return
            words, kind = reply.text.strip(), reply.headers.get("content-type", "")
            answered = f"{method} {sent}: HTTP {reply.status} {words[:80]!r}"
            must(reply.status == wanted[0], f"{answered}, must be {wanted[0]} {wanted[1]!r}")
            if words != wanted[1]:
                bench.note("words", f"{answered}, must be {wanted[1]!r}")
            if not kind.startswith("text/plain"):
                bench.note("error-type", f"{answered}: Content-Type {kind!r}, must be text/plain")
            return
        raise NotJudgedError(f"{method} {sent}: no answer")

    return check


def _attached(port: str) -> Callable[[ClauseContext], tuple[str, Mapping[str, Any]]]:
    def body(bench: ClauseContext) -> tuple[str, Mapping[str, Any]]:
        device, at = bench.attached()
        return device, {"devid": device, "hostport": port or at if port != "empty" else ""}

    return body


def _portless(bench: ClauseContext) -> tuple[str, Mapping[str, Any]]:
    device = bench.free()
    return device, {"devid": device, "hostport": ""}


def _unknown(bench: ClauseContext) -> tuple[str, Mapping[str, Any]]:
    return UNKNOWN_DEVICE, {"devid": UNKNOWN_DEVICE, "hostport": bench.ports[0]}


def _payloads(method: str) -> Callable[[ClauseContext], None]:
    return _both(*(_answers(PAYLOAD, method, _raw(raw)) for raw in BAD_PAYLOADS))


def _raw(content: bytes) -> Callable[[ClauseContext], tuple[str, bytes]]:
    def body(bench: ClauseContext) -> tuple[str, bytes]:
        return UNKNOWN_DEVICE, content

    return body


def _both(*checks: Callable[[ClauseContext], None]) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        for each in checks[: bench.often(len(checks))]:
            each(bench)

    return check


def _json_type(bench: ClauseContext) -> None:
    """What the first move found out."""
    refused = bench.facts.get(REFUSED_KINDS)
    if refused:
        used = bench.face.content_type
        raise UnmetClauseError(f"a request with Content-Type {refused[0]} is refused, the same with {used} is not")
    if not bench.ledger.done["attach"]:
        raise NotJudgedError("no attach was made")


def _go_decodes(bench: ClauseContext) -> None:
    """What the published Go clients do: fail on a status of 400 or more, decode ``[]map[string]string``."""
    for record in _listing(bench):
        wrong = [name for name, value in record.items() if value is not None and not isinstance(value, str)]
        must(not wrong, f"{shown(record)} does not decode into map[string]string: {', '.join(wrong)}")


READ = "GET /resources"
ATTACH = "POST /allocation"
DETACH = "DELETE /allocation"

NO_AUTH = Clause("3.no-auth", "no authentication is asked for", f"chassis.md 3: {READ}", _no_authentication)
LIST = Clause("3.list", "the listing is 200 and a JSON list", f"chassis.md 3: {READ}", _list)

DEVICE_NAMES = Clause("3.names", "devices are named by strings", f"chassis.md 3: {READ}", _names)

NO_PORT_GIVEN = Clause(
    "3.no-port",
    "an attach without a hostport is 400",
    f"chassis.md 3: {ATTACH}",
    _answers(NO_PORT, "POST", _portless),
    changes=True,
)
UNKNOWN = Clause(
    "3.not-found",
    "an unknown device is 404",
    f"chassis.md 3: {ATTACH}, {DETACH}",
    _both(_answers(NOT_FOUND, "POST", _unknown), _answers(NOT_FOUND, "DELETE", _unknown)),
    changes=True,
    needs=("3.unknown-device",),
)
VERBS = Clause(
    "3.verbs",
    "other verbs are 405",
    "chassis.md 3: other verbs 405",
    _both(_wrong_verbs(ALLOCATION, "PUT", "PATCH"), _wrong_verbs(RESOURCES, "POST", "PUT", "PATCH", "DELETE")),
    changes=True,
    needs=("3.verbs-read",),
)
BAD_PAYLOAD = Clause(
    "3.payload",
    "a bad payload is 400",
    f"chassis.md 3: {ATTACH}, {DETACH}",
    _both(_payloads("POST"), _payloads("DELETE")),
    changes=True,
    needs=("3.delete-body",),
)
HELD = Clause(
    "3.attached",
    "an attach of an attached device is 400, checked before the empty hostport",
    f"chassis.md 3: {ATTACH}",
    _both(_answers(ATTACHED, "POST", _attached("")), _answers(ATTACHED, "POST", _attached("empty"))),
    changes=True,
    needs=("3.held", "3.retry"),
)

RESTING: tuple[Clause, ...] = (
    DEVICE_NAMES,
    Clause("3.members", "a record is devid, uuid and hostport", f"chassis.md 3: {READ}", _members),
    Clause("3.strings", "every value of the listing is a string", f"chassis.md 3: {READ}", _strings),
    Clause(
        "3.one-port", "a device is listed once: it is on at most one host port", f"chassis.md 1, 3: {READ}", _unique
    ),
    Clause("3.null", "an empty listing is null", f"chassis.md 3: {READ}", _null),
    Clause(
        "3.go-clients",
        "the published Go clients can read the listing",
        "chassis.md 3: Go clients",
        _go_decodes,
        needs=("3.strings", "3.names"),
    ),
    Clause(
        "3.verbs-read", "GET of the allocation is 405", "chassis.md 3: other verbs 405", _wrong_verbs(ALLOCATION, "GET")
    ),
    Clause("3.free", "hostport of a free device is an empty string", f"chassis.md 3: {READ}", _free, last=True),
    *moving(
        3,
        attach=ATTACH,
        detach=DETACH,
        unknown_port=UNKNOWN_PORT,
        free=(NO_PORT_GIVEN, UNKNOWN, VERBS),
        held=(bare_delete(3, detach=DETACH), BAD_PAYLOAD),
        retried=(HELD,),
    ),
    Clause(
        "3.no-content",
        "attach, detach, and detach of a free device are 204",
        f"chassis.md 3: {ATTACH}, {DETACH}",
        _no_content,
        changes=True,
        needs=("3.retry-detach",),
    ),
    *reading(3, read=READ),
    Clause(
        "3.content-type",
        "JSON is accepted as application/json",
        f"chassis.md 3: {ATTACH}, {DETACH}",
        _json_type,
        changes=True,
    ),
    Clause(
        "3.words",
        "errors are in the published words",
        f"chassis.md 3: {ATTACH}, {DETACH}",
        noticed("words"),
        changes=True,
        last=True,
    ),
    Clause(
        "3.error-type",
        "errors are text/plain",
        "chassis.md 3: errors are text/plain",
        noticed("error-type"),
        changes=True,
        last=True,
    ),
    *watched(3, attach=ATTACH, detach=DETACH, read=READ),
    Clause(
        "3.persistence",
        "the table outlives the process",
        "chassis.md 3: gaps, not to be copied: no persistence",
        unseen("would need a restart of the chassis"),
        grade=MAY,
    ),
    Clause(
        "3.start-file",
        "the table starts as the start file says",
        "chassis.md 3: start file",
        unseen("the start file is not on the wire"),
        grade=MAY,
    ),
)

CLAUSES = (
    NO_AUTH,
    *resting_on((NO_AUTH.id,), (LIST, *resting_on((LIST.id,), moves_resting_on((DEVICE_NAMES.id,), RESTING)))),
)

DIALECT_CLAUSES = DialectClauses(
    ResourcePoolTableClient, CLAUSES, __file__, lists_ports=False, home=RESOURCES, words=("devid", "hostport")
)

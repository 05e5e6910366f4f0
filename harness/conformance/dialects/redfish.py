"""Dialect ``redfish`` (contract chassis.md 4): the clauses that edit, and all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import Clause, moves_resting_on, must, noticed, resting_on
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.redfish_attach import ATTACH_CLAUSES
from mews.harness.conformance.dialects.redfish_model import ACCESS, MODEL, ROOT_CLAUSE, walk
from mews.harness.conformance.dialects.redfish_protocol import PROTOCOL, RULES, URIS, ask, extended, status
from mews.harness.conformance.dialects.redfish_table import ADD, REMOVE, ROOT, RedfishTableClient, tail
from mews.harness.conformance.dialects.registry import DialectClauses
from mews.harness.conformance.errors import NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import at, link_of, links, members, objects, text
from mews.harness.conformance.moves import moving, watched

__all__ = ["CLAUSES", "DIALECT_CLAUSES", "RedfishTableClient"]

UNKNOWN_PORT = "mews-no-such-port"


def _etag_parameter(bench: ClauseContext) -> None:
    device, port = bench.free(), bench.ports[0]
    for name in ("ZoneETag", "EndpointETag"):
        replies: list[HttpReply] = []

        def add(name: str = name, replies: list[HttpReply] = replies) -> bool:
            replies.append(bench.face.act(bench.face.zone(port), ADD, device, **{name: '"mews-stale"'}))
            return replies[-1].status < 400

        bench.refused(device, port, add, f"AddEndpoint with a stale {name}")
        status(_last(replies), 428, f"AddEndpoint with a stale {name}")


def _last(replies: list[HttpReply]) -> HttpReply:
    if not replies:
        raise NotJudgedError("the request was never answered")
    return replies[-1]


def _endpoints(bench: ClauseContext, port: str) -> list[dict[str, str]]:
    shown = ask(bench, "GET", bench.face.zone(port)).json()
    return [{"@odata.id": each} for each in links(shown, "Links", "Endpoints")]


def _patch(bench: ClauseContext, port: str, endpoints: list[dict[str, str]], **headers: str) -> HttpReply:
    body = {"Links": {"Endpoints": endpoints}}
    reply: HttpReply = bench.face.follow(bench.face.send("PATCH", bench.face.zone(port), body, headers))
    return reply


def _zone_patch(bench: ClauseContext) -> None:
    """Attach by the list with the device, detach by the list without; the assumed body."""
    device, port = bench.free(), bench.ports[0]
    own = {"@odata.id": bench.face.endpoint(device)}
    for target, word in ((port, "with"), (None, "without")):

        def patch(target: str | None = target) -> bool:
            others = [each for each in _endpoints(bench, port) if each != own]
            return _patch(bench, port, others if target is None else [*others, own]).status < 400

        mark = bench.ledger.mark()
        if bench.move(device, target, patch):
            continue
        if not bench.move(device, target):
            raise NotJudgedError(f"device {device} cannot be moved by actions either")
        bench.ledger.rewind(mark, "attach", "detach", "reply")
        raise UnmetClauseError(
            f"PATCH of {bench.face.zone(port)} with the list {word} device {device} does not move it"
        )


def _if_match(bench: ClauseContext) -> None:
    device, port = bench.free(), bench.ports[0]
    own = {"@odata.id": bench.face.endpoint(device)}
    replies: list[HttpReply] = []

    def patch() -> bool:
        replies.append(_patch(bench, port, [*_endpoints(bench, port), own], **{"If-Match": '"mews-stale"'}))
        return replies[-1].status < 400

    bench.refused(device, port, patch, "PATCH of a zone with a stale If-Match")
    status(_last(replies), 412, "PATCH of a zone with a stale If-Match")


def _refusal_keeps(bench: ClauseContext) -> None:
    device, port = bench.attached()
    path = bench.face.zone(port)
    claims: list[bool] = []

    def attach() -> bool:
        claims.append(bench.face.attach(device, port))
        return claims[-1]

    before = ask(bench, "GET", path)
    bench.refused(device, port, attach, "attach of an attached device")
    if claims != [False]:
        raise NotJudgedError("the attach of an attached device is not answered with 4xx")
    must(ask(bench, "GET", path).body == before.body, f"{path}: is not as it was after a refused attach")


def _pcie_device(bench: ClauseContext) -> Mapping[str, Any]:
    """Return a PCIeDevice with ReadyToRemove, of an idle device."""
    for value in walk(bench).of("PCIeDevice"):
        if text(value, "Id") in bench.devices and "ReadyToRemove" in value and link_of(value):
            return value
    raise NotJudgedError("no idle device has a PCIeDevice with ReadyToRemove")


def _patched(bench: ClauseContext, body: Mapping[str, Any]) -> HttpReply:
    reply: HttpReply = bench.insist(
        lambda: bench.face.follow(bench.face.send("PATCH", link_of(_pcie_device(bench)), body))
    )
    return reply


def _ready(bench: ClauseContext) -> bool:
    return bool(at(ask(bench, "GET", link_of(_pcie_device(bench))).json(), "ReadyToRemove"))


def _writable(bench: ClauseContext) -> None:
    status(_patched(bench, {"ReadyToRemove": _ready(bench)}), (200, 204), "PATCH of ReadyToRemove to what it is")


def _patch_bad(bench: ClauseContext) -> None:
    reply = _patched(bench, {"MewsNoSuchProperty": 1})
    status(reply, 400, "PATCH of unknown properties only")
    extended(reply, "PATCH of unknown properties only")


def _patch_mixed(bench: ClauseContext) -> None:
    reply = _patched(bench, {"ReadyToRemove": _ready(bench), "MewsNoSuchProperty": 1})
    status(reply, 200, "PATCH of a known and an unknown property")
    notes = [name for name in members(reply.json()) if name.endswith("@Message.ExtendedInfo")]
    must(notes, "PATCH of a known and an unknown property: no annotation says what was wrong")


def _patch_nothing(bench: ClauseContext) -> None:
    what = "PATCH of OData annotations only"
    reply = _patched(bench, {"@odata.id": link_of(_pcie_device(bench))})
    status(reply, 400, what)
    ids = [text(each, "MessageId") for each in objects(extended(reply, what), "@Message.ExtendedInfo")]
    must(any(name.endswith(".NoOperation") for name in ids), f"{what}: {', '.join(ids)}, must be NoOperation")


def _not_allowed(bench: ClauseContext) -> None:
    reply = ask(bench, "DELETE", "/redfish/v1/")
    status(reply, 405, "DELETE of the service root")
    must("GET" in reply.headers.get("allow", ""), "DELETE of the service root: 405 without Allow")


def _taken_block(bench: ClauseContext) -> None:
    device, port = bench.attached()
    blocks = [link_of(value) for value in walk(bench).of("ResourceBlock") if text(value, "Id") == device]
    name = "#ComputerSystem.AddResourceBlock"
    targets = [text(value, "Actions", name, "target") for value in walk(bench).of("ComputerSystem")]
    if not any(blocks) or not any(targets):
        raise NotJudgedError(f"there is no resource block of device {device}, or no system with AddResourceBlock")
    other = [port] if len(bench.ports) == 1 else [each for each in bench.ports if each != port]
    target = next(filter(None, reversed(targets)))
    body = {"ResourceBlock": {"@odata.id": blocks[0]}}
    bench.refused(
        device,
        other[0],
        lambda: bench.face.follow(bench.face.send("POST", target, body)).status < 400,
        f"composing {tail(blocks[0])}, which is taken",
    )


AT = "chassis.md 4"
READ = "GET Endpoints"
ATTACH = ADD.lstrip("#")
DETACH = REMOVE.lstrip("#")


def _changing(id_: str, title: str, reference: str, check: Any, *needs: str, assumed: bool = False) -> Clause:
    return Clause(id_, title, reference, check, changes=True, assumed=assumed, needs=needs)


ETAG_PARAMETER = _changing(
    "4.etag-parameter", "a mismatching ETag parameter is 428", f"{AT}: {ATTACH}, {DETACH}", _etag_parameter
)
IF_MATCH = _changing("4.if-match", "a stale If-Match is 412 and nothing is written", RULES, _if_match)
TAKEN_BLOCK = _changing(
    "4.taken-block", "a taken resource block is refused", f"{AT}: specific composition", _taken_block
)
REFUSAL_KEEPS = _changing(
    "4.refusal-keeps", "a 4xx leaves the resource as it was", RULES, _refusal_keeps, "4.etag-stays", "4.retry"
)

RESTING: tuple[Clause, ...] = (
    URIS,
    *MODEL,
    *PROTOCOL,
    # What writes and moves nothing comes before the moves: a slow chassis leaves time for it.
    _changing("4.ready-to-remove", "ReadyToRemove is writable", f"{AT}: PCIeDevice", _writable),
    _changing("4.patch-bad", "PATCH of bad properties only is 400", RULES, _patch_bad, "4.errors"),
    _changing("4.patch-mixed", "PATCH of good and bad ones is 200 with annotations", RULES, _patch_mixed),
    _changing(
        "4.patch-nothing", "PATCH of OData annotations only is 400 NoOperation", RULES, _patch_nothing, "4.errors"
    ),
    _changing("4.not-allowed", "405 comes with Allow", RULES, _not_allowed),
    *moving(
        4,
        attach=ATTACH,
        detach=DETACH,
        unknown_port=UNKNOWN_PORT,
        free=(ETAG_PARAMETER, IF_MATCH, *ATTACH_CLAUSES),
        held=(TAKEN_BLOCK,),
        retried=(REFUSAL_KEEPS,),
    ),
    _changing(
        "4.zone-patch",
        "PATCH of a zone replaces its whole list",
        f"{AT}: H3's dialect (I)",
        _zone_patch,
        "4.types",
        "4.zones",
        assumed=True,
    ),
    Clause(
        "4.monitor",
        "a task monitor is there, and answers 202 until the operation's own reply",
        RULES,
        noticed("task"),
        changes=True,
        last=True,
    ),
    Clause(
        "4.reply",
        "replies to writes are of the protocol's form",
        RULES,
        noticed("reply", kind="detach"),
        changes=True,
        last=True,
    ),
    *(
        clause if clause.id != "4.form" else replace(clause, needs=("4.json",))
        for clause in watched(4, attach=ATTACH, detach=DETACH, read=READ)
    ),
)

_MOVES = moves_resting_on((URIS.id,), RESTING)
CLAUSES = (ROOT_CLAUSE, *resting_on((ROOT_CLAUSE.id,), (ACCESS, *resting_on((ACCESS.id,), _MOVES))))

DIALECT_CLAUSES = DialectClauses(
    RedfishTableClient,
    CLAUSES,
    __file__,
    login=True,
    home=ROOT,
    words=("RedfishVersion", "@odata.id", "@odata.type"),
    gates=("4.root", "4.access", "4.json", "4.form", "4.answers", "4.server-errors"),
)

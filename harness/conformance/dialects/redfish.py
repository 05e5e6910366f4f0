"""Dialect ``redfish`` (contract chassis.md 4): the clauses that edit, and all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import Clause, moves_resting_on, must, noticed, resting_on
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.redfish_model import ACCESS, MODEL, ROOT_CLAUSE, walk
from mews.harness.conformance.dialects.redfish_protocol import PROTOCOL, RULES, URIS, ask, extended, in_pages, status
from mews.harness.conformance.dialects.redfish_table import ADD, REMOVE, ROOT, RedfishTableClient, durable_name, tail
from mews.harness.conformance.dialects.registry import DialectClauses
from mews.harness.conformance.errors import Malformed, NotJudged, Unmet
from mews.harness.conformance.fields import at, link_of, links, members, objects, text
from mews.harness.conformance.moves import moving, watched

__all__ = ["CLAUSES", "DIALECT_CLAUSES", "RedfishTableClient"]

UNKNOWN_PORT = "mews-no-such-port"


def _tag(bench: ClauseContext, path: str) -> str:
    found = ask(bench, "GET", path).headers.get("etag")
    if not found:
        raise NotJudged(f"{path} has no ETag")
    return found


def _etag_changes(bench: ClauseContext) -> None:
    device, port = bench.free(), bench.ports[0]
    path = bench.face.zone(port)
    before = _tag(bench, path)
    if not bench.move(device, port):
        raise NotJudged(f"device {device} cannot be attached")
    must(_tag(bench, path) != before, f"{path}: ETag {before} is the same after an attach")


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
        raise NotJudged("the request was never answered")
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
            raise NotJudged(f"device {device} cannot be moved by actions either")
        bench.ledger.rewind(mark, "attach", "detach", "reply")
        raise Unmet(f"PATCH of {bench.face.zone(port)} with the list {word} device {device} does not move it")


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
        raise NotJudged("the attach of an attached device is not answered with 4xx")
    must(ask(bench, "GET", path).body == before.body, f"{path}: is not as it was after a refused attach")


def _pcie_device(bench: ClauseContext) -> Mapping[str, Any]:
    """A PCIeDevice with ReadyToRemove, of an idle device."""
    for value in walk(bench).of("PCIeDevice"):
        if text(value, "Id") in bench.devices and "ReadyToRemove" in value and link_of(value):
            return value
    raise NotJudged("no idle device has a PCIeDevice with ReadyToRemove")


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


def _task(bench: ClauseContext) -> None:
    """What the last attach went through."""
    device = bench.free()
    if not bench.move(device, bench.ports[0]):
        raise NotJudged(f"device {device} cannot be attached")
    replies: list[HttpReply] = bench.face.task
    _last(replies)
    if replies[0].status != 202:
        raise NotJudged(f"an attach is answered at once, with HTTP {replies[0].status}")
    if not replies[0].headers.get("location"):
        raise NotJudged("4.monitor does not hold: 202 without the Location of a task monitor")
    must(replies[0].headers.get("retry-after"), "202 without Retry-After")
    must(replies[-1].status in (200, 201, 202, 204), f"the task monitor ends with HTTP {replies[-1].status}")


def _task_state(bench: ClauseContext) -> None:
    """The task of the last attach, once its device is where it was to go."""
    replies: list[HttpReply] = bench.face.task
    first = next((reply for reply in replies if reply.status == 202), None)
    if first is None:
        raise NotJudged("no operation went on after its answer")
    try:
        where = link_of(first.json()) if first.body else ""
    except Malformed:
        where = ""
    if not where:
        raise NotJudged("the 202 names no task")
    began_s = time.monotonic()
    while True:
        reply = ask(bench, "GET", where)
        if reply.status == 404:
            raise NotJudged(f"{where}: is gone already")
        state = text(reply.json(), "TaskState")
        if state in ENDED or time.monotonic() - began_s > bench.limits.settle_s:
            break
        threading.Event().wait(0.1)
    must(
        state in ENDED,
        f"{where}: TaskState {state}, though its operation has ended: must be {', '.join(ENDED[:3])} or such",
    )


def _training(bench: ClauseContext) -> None:
    device = bench.free()
    shown = ask(bench, "GET", bench.face.endpoint(device)).json()
    ports = links(shown, "Links", "ConnectedPorts")
    if not ports:
        raise NotJudged(f"the endpoint of device {device} names no port")
    statuses: list[str] = []
    bench.face.during = lambda: statuses.append(text(ask(bench, "GET", ports[0]).json(), "LinkStatus"))
    try:
        bench.move(device, bench.ports[0])
    finally:
        bench.face.during = lambda: None
    if not statuses:
        raise NotJudged("an attach is answered at once")
    must("Training" in statuses, f"{ports[0]}: LinkStatus {', '.join(statuses)} during an attach")


def _taken_block(bench: ClauseContext) -> None:
    device, port = bench.attached()
    blocks = [link_of(value) for value in walk(bench).of("ResourceBlock") if text(value, "Id") == device]
    name = "#ComputerSystem.AddResourceBlock"
    targets = [text(value, "Actions", name, "target") for value in walk(bench).of("ComputerSystem")]
    if not any(blocks) or not any(targets):
        raise NotJudged(f"there is no resource block of device {device}, or no system with AddResourceBlock")
    other = [port] if len(bench.ports) == 1 else [each for each in bench.ports if each != port]
    target = next(filter(None, reversed(targets)))
    body = {"ResourceBlock": {"@odata.id": blocks[0]}}
    bench.refused(
        device,
        other[0],
        lambda: bench.face.follow(bench.face.send("POST", target, body)).status < 400,
        f"composing {tail(blocks[0])}, which is taken",
    )


def _pages_stay(bench: ClauseContext) -> None:
    """A reader of pages does not know that a device moves meanwhile: which endpoints there are is the same."""
    device = bench.free()

    def attach() -> None:
        if not bench.move(device, bench.ports[0]):
            raise NotJudged(f"device {device} cannot be attached")

    in_pages(bench, bench.face.path("Endpoints"), 2, attach)


def _names_stay(bench: ClauseContext) -> None:
    """A device's endpoint is the same resource wherever the device is."""
    device, _ = bench.attached()
    where = bench.face.endpoint(device)
    before = durable_name(ask(bench, "GET", where).json())
    if not bench.move(device, None):
        raise NotJudged(f"device {device} cannot be detached")
    must(durable_name(ask(bench, "GET", where).json()) == before, f"{where}: its DurableName is another after a detach")


ENDED = ("Completed", "Exception", "Cancelled", "Killed", "Interrupted")
"""Of TaskState (DSP2046, Task): nothing goes on any more."""
AT = "chassis.md 4"
READ = "GET Endpoints"
ATTACH = ADD.lstrip("#")
DETACH = REMOVE.lstrip("#")


def _changing(id_: str, title: str, reference: str, check: Any, *needs: str, assumed: bool = False) -> Clause:
    return Clause(id_, title, reference, check, changes=True, assumed=assumed, needs=needs)


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
    *moving(4, attach=ATTACH, detach=DETACH, unknown_port=UNKNOWN_PORT),
    _changing("4.etag-changes", "an ETag changes on each write", RULES, _etag_changes, "4.etag-stays"),
    _changing("4.etag-parameter", "a mismatching ETag parameter is 428", f"{AT}: {ATTACH}, {DETACH}", _etag_parameter),
    _changing("4.if-match", "a stale If-Match is 412 and nothing is written", RULES, _if_match),
    _changing(
        "4.zone-patch",
        "PATCH of a zone replaces its whole list",
        f"{AT}: H3's dialect (I)",
        _zone_patch,
        "4.types",
        "4.zones",
        assumed=True,
    ),
    _changing(
        "4.refusal-keeps", "a 4xx leaves the resource as it was", RULES, _refusal_keeps, "4.etag-stays", "4.retry"
    ),
    _changing("4.task", "a long operation is 202, Location, Retry-After, then its own reply", RULES, _task),
    Clause(
        "4.task-state",
        "a task's TaskState says that it has ended once it has",
        f"{AT}: Task",
        _task_state,
        changes=True,
        needs=("4.task",),
    ),
    _changing("4.training", "a port's LinkStatus is Training during an attach", f"{AT}: Port", _training),
    _changing("4.taken-block", "a taken resource block is refused", f"{AT}: specific composition", _taken_block),
    _changing("4.pages-stay", "pages name each member once while a device moves", RULES, _pages_stay, "4.pages"),
    _changing("4.endpoint-stays", "an endpoint keeps its DurableName when it moves", f"{AT}: Endpoint", _names_stay),
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

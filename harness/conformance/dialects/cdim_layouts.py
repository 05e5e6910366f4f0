"""Clauses of dialect ``cdim`` about layouts, beside those that all dialects share (contract chassis.md 6)."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.cdim_read import note_error_form, whole
from mews.harness.conformance.dialects.cdim_table import (
    APPLY,
    DESTINATION,
    GOING_ON,
    NOBODY,
    RESOURCES,
    code_of,
    layout_body,
    link_of,
    procedure,
)
from mews.harness.conformance.errors import NotJudgedError
from mews.harness.conformance.fields import at, objects, shown, text
from mews.harness.conformance.table import port_text

BAD = (b"", b"{", b"[]", b"{}", b'{"procedures":[{}]}')
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
ENDED = ("COMPLETED", "FAILED", "CANCELED")


def reply(bench: ClauseContext) -> None:
    """202 with an ID of ten hexadecimal digits; what it names is there at once."""
    answer, layout = _moved(bench)
    value = answer.json()
    must(answer.status == 202, f"POST {APPLY}: HTTP {answer.status}, must be 202")
    good = re.fullmatch("[0-9a-f]{10}", text(value, "applyID"))
    must(good, f"POST {APPLY}: applyID {shown(at(value, 'applyID'))} must be 10 hexadecimal digits")
    must(layout.get("applyID") == text(value, "applyID"), f"GET {APPLY}/…: applyID must be the one that was given")


def shown_layout(bench: ClauseContext) -> None:
    """What is always there, and what is there once it has ended."""
    _, layout = _moved(bench)
    where = f"GET {APPLY}/{text(layout, 'applyID')}"
    must(layout.get("status") in ENDED, f"{where}: status {shown(layout.get('status'))}, must have ended")
    for name in ("startedAt", "endedAt"):
        found = layout.get(name)
        must(isinstance(found, str) and TIME.fullmatch(found), f"{where}: {name} {shown(found)} must be a time")
    sent = [at(each, "targetDeviceID") for each in objects(layout, "procedures")]
    must(
        len(sent) == 1 and all(sent), f"{where}: procedures {shown(layout.get('procedures'))} must be as they were sent"
    )


def result(bench: ClauseContext) -> None:
    """Of a procedure that was carried out."""
    _, layout = _moved(bench)
    where = f"GET {APPLY}/{text(layout, 'applyID')}"
    found = objects(layout, "applyResult")
    must(len(found) == 1, f"{where}: applyResult {shown(layout.get('applyResult'))} must have one result")
    (first,) = found
    must(first.get("operationID") == 1, f"{where}: operationID {shown(first.get('operationID'))}, must be 1")
    must(first.get("status") == "COMPLETED", f"{where}: status {shown(first.get('status'))}, must be COMPLETED")
    lacks = [name for name in ("uri", "method", "statusCode", "startedAt", "endedAt") if name not in first]
    must(not lacks, f"{where}: its applyResult lacks {', '.join(lacks)}")


def listed(bench: ClauseContext) -> None:
    """The newest first, by the time of its beginning; found by its status, too. Times are whole seconds, so before the
    layout that was just applied there may only be later ones."""
    _, layout = _moved(bench)
    mine = text(layout, "applyID")
    for path in (f"{APPLY}?limit=5", f"{APPLY}?status={layout.get('status')}&limit=5"):
        found = objects(whole(bench, path), "applyResults")
        ids = [text(each, "applyID") for each in found]
        must(mine in ids, f"GET {path}: lacks {mine}, which was just applied")
        times = [text(each, "startedAt") for each in found]
        last = ids.index(mine)
        in_order = times == sorted(times, reverse=True) and all(each > times[last] for each in times[:last])
        must(in_order, f"GET {path}: must be the newest first")


def _moved(bench: ClauseContext) -> tuple[HttpReply, dict[str, Any]]:
    """A device is moved, be it on or off: the answer to it, and the layout once it has ended."""
    face, (device, port) = bench.face, bench.attached()
    replies: list[HttpReply] = []

    def ask() -> bool:
        replies.append(face.ask(layout_body([procedure("disconnect", face.node(port), face.id(device))])))
        layout = text(replies[-1].json(), "applyID") if replies[-1].status < 300 else ""
        return bool(layout) and face.ended(layout).get("status") == "COMPLETED"

    if not bench.move(device, None, ask) or not replies or replies[-1].status >= 300:
        raise NotJudgedError(f"device {device} cannot be detached")
    found: dict[str, Any] = face.last
    if found.get("status") != "COMPLETED":
        raise NotJudgedError(f"the layout that detaches device {device} is {shown(found.get('status'))}")
    return replies[-1], found


def operator_body(bench: ClauseContext) -> None:
    """``sourceDeviceID``, the adapter in the chassis, and ``destinationDeviceID``, as the operator names them."""
    face, device, port = bench.face, bench.free(), bench.ports[0]
    found = [at(each, "device") for each in objects(whole(bench, RESOURCES), "resources")]
    node = face.node(port)
    far = next((each for each in found if text(each, "type") == DESTINATION and link_of(each, "CPU") == node), None)
    if far is None:
        raise NotJudgedError(f"the node on {port_text(port)} has no {DESTINATION}")
    body = {
        "operationID": 1,
        "operation": "connect",
        "sourceDeviceID": text(far, "deviceID"),
        "destinationDeviceID": face.id(device),
        "dependencies": [],
    }
    claim = bench.ask(device, port, lambda: bool(face.applied(body)))
    after = bench.once(lambda table: table.port(device) == port, bench.limits.settle_s if claim else 0.0)
    bench.saw(device, after.port(device))
    what = f"POST {APPLY}: a connect by sourceDeviceID and destinationDeviceID"
    must(after.port(device) == port, f"{what}: device {device} is on {port_text(after.port(device))}")


def empty(bench: ClauseContext) -> None:
    """There is nothing to change, and that is well."""
    face = bench.face
    answer: HttpReply = bench.insist(lambda: face.ask(layout_body([])))
    must(answer.status < 300, f"POST {APPLY}: HTTP {answer.status} to an empty list of procedures, must be 202")
    layout = bench.insist(lambda: face.ended(text(answer.json(), "applyID")))
    status = layout.get("status")
    must(status == "COMPLETED", f"POST {APPLY}: an empty list of procedures is {shown(status)}, must be COMPLETED")


def bad_body(bench: ClauseContext) -> None:
    """400, and nothing changes."""
    face = bench.face
    before = bench.read()
    device, port = bench.devices[0], bench.ports[0]
    good = procedure("connect", face.node(port), face.id(device))
    wrong = [{**good, "operation": "mews"}, {**good, "dependencies": [7]}]
    bodies = (*BAD, *(json.dumps({"procedures": [each]}).encode() for each in wrong))
    for body in bodies[: bench.often(len(bodies))]:
        answer: HttpReply = bench.insist(partial(face.send, "POST", APPLY, body))
        must(answer.status == 400, f"POST {APPLY}: HTTP {answer.status} to the body {body.decode()!r}, must be 400")
        note_error_form(bench, answer, f"POST {APPLY}", layouts=True)
    bench.compare_others("", before, bench.read())


def dependencies(bench: ClauseContext) -> None:
    """A procedure waits for those it names, whatever the order of the list."""
    face, (device, port) = bench.face, bench.attached()
    target = next((each for each in bench.ports if each != port), port)
    first = procedure("disconnect", face.node(port), face.id(device), 1)
    second = procedure("connect", face.node(target), face.id(device), 2, (1,))
    bench.ask(device, target, lambda: bool(face.applied(second, first)))
    after = bench.once(lambda table: table.port(device) == target, bench.limits.settle_s)
    bench.saw(device, after.port(device))
    if face.last.get("status") == "COMPLETED":
        where = f"device {device} is on {port_text(after.port(device))}, must be on {port_text(target)}"
        must(after.port(device) == target, f"POST {APPLY}: a disconnect, then a connect: {where}")
    status = shown(face.last.get("status"))
    must(face.last.get("status") == "COMPLETED", f"POST {APPLY}: a connect that waits for a disconnect is {status}")


def skipped(bench: ClauseContext) -> None:
    """What waits for a procedure that failed is skipped, and the layout has failed."""
    face, (device, port) = bench.face, bench.attached()
    first = procedure("connect", face.node(port), NOBODY, 1)
    second = procedure("disconnect", face.node(port), face.id(device), 2, (1,))
    done = bench.refused(device, None, lambda: bool(face.applied(first, second)), "a layout that fails", judged=False)
    status, words = face.last.get("status"), [each.get("status") for each in objects(face.last, "applyResult")]
    what = f"POST {APPLY}: a connect of an unknown device, and a disconnect that waits for it"
    must(not done and status in ("FAILED", "SUSPENDED"), f"{what}: is {shown(status)}, must be FAILED")
    must(words == ["FAILED", "SKIPPED"], f"{what}: results are {shown(words)}, must be FAILED and SKIPPED")


def busy(bench: ClauseContext) -> None:
    """Judged where a layout takes long enough to meet another one."""
    face, device, port = bench.face, bench.free(), bench.ports[0]
    body = layout_body([procedure("connect", face.node(port), face.id(device))])
    met: list[HttpReply] = []
    during: list[str] = []

    def ask() -> bool:
        answer = face.ask(body)
        layout = text(answer.json(), "applyID") if answer.status < 300 else ""
        if not layout:
            return False
        met.append(face.send("POST", APPLY, layout_body([])))
        during.append(text(face.get(f"{APPLY}/{layout}"), "status"))
        return bool(face.ended(layout).get("status") == "COMPLETED")

    bench.move(device, port, ask)
    if not met or during[-1] not in GOING_ON:
        raise NotJudgedError("no layout took so long that another one met it")
    code = code_of(met[-1])
    must(met[-1].status == 409, f"POST {APPLY}: HTTP {met[-1].status} while a layout is applied, must be 409")
    must(code == "E40010", f"POST {APPLY}: code {code!r} while a layout is applied, must be E40010")
    note_error_form(bench, met[-1], f"POST {APPLY}", layouts=True)


def ended(bench: ClauseContext) -> None:
    """One that has ended cannot be canceled, need not be resumed, and is gone once it is deleted."""
    face = bench.face
    answer: HttpReply = bench.insist(lambda: face.ask(layout_body([])))
    layout = text(answer.json(), "applyID") if answer.status < 300 else ""
    if not layout or bench.insist(lambda: face.ended(layout)).get("status") not in ENDED:
        raise NotJudgedError("no layout has ended")
    for action, wanted in (("cancel", 409), ("resume", 200)):
        path = f"{APPLY}/{layout}?action={action}"
        found: HttpReply = bench.insist(partial(face.send, "PUT", path))
        must(found.status == wanted, f"PUT {path}: HTTP {found.status} of one that has ended, must be {wanted}")
        if wanted == 409:
            note_error_form(bench, found, f"PUT {path}", layouts=True)
    path = f"{APPLY}/{layout}"
    gone: HttpReply = bench.insist(partial(face.send, "DELETE", path))
    must(gone.status == 204, f"DELETE {path}: HTTP {gone.status}, must be 204")
    status = bench.insist(partial(face.send, "GET", path)).status
    must(status == 404, f"GET {path}: HTTP {status} after its DELETE, must be 404")

"""Clauses of dialect ``fm`` that move devices, beside those that all dialects share (contract chassis.md 5)."""

from __future__ import annotations

import json
from functools import partial

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.fm_read import note_error_form, specifications
from mews.harness.conformance.dialects.fm_table import model_of
from mews.harness.conformance.errors import MalformedError, NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import objects, shown, text

BAD = (b"", b"{", b"[]", b'{"tenants":{}}')


def attach_reply(bench: ClauseContext) -> None:
    """The new device first, with type and model, in the machine that was asked for."""
    face, device, port = bench.face, bench.free(), bench.ports[0]
    replies: list[HttpReply] = []

    def ask() -> bool:
        replies.append(face.ask_attach(device, port))
        return replies[-1].status == 200

    if not bench.move(device, port, ask) or not replies:
        raise NotJudgedError(f"device {device} cannot be attached")
    if replies[-1].status != 200:
        raise NotJudgedError(f"the attach of device {device} was answered with HTTP {replies[-1].status}")
    _judge_new(bench, replies[-1], device, port)


def _judge_new(bench: ClauseContext, reply: HttpReply, device: str, port: str) -> None:
    known, machine = bench.face.placed[device], bench.face.machine(port)
    where = f"PATCH {bench.face.at(bench.face.update_path(machine))}"
    try:
        found = objects(reply.json(), "data", "machines")
    except MalformedError as error:
        raise UnmetClauseError(f"{where}: {error}") from error
    must(len(found) == 1, f"{where}: data.machines must be a list of the one machine: {reply.text[:80]!r}")
    must(text(found[0], "mach_uuid") == machine, f"{where}: mach_uuid must be {machine}")
    resources = objects(found[0], "resources")
    must(resources, f"{where}: resources must have the new device")
    first = resources[0]
    what = f"{where}: the first resource is {text(first, 'res_uuid')}, must be the new one, {known.uuid}"
    must(text(first, "res_uuid") == known.uuid, what)
    kind = first.get("res_type")
    must(kind == known.kind, f"{where}: res_type {shown(kind)}, must be {known.kind}")
    must(model_of(first) == known.model, f"{where}: model {model_of(first)!r}, must be {known.model!r}")


def by_model(bench: ClauseContext) -> None:
    """As the operator asks for one: whichever free device comes is of that model, and is named first. Judged where
    the only free devices are those that may be moved."""
    face, device, port = bench.face, bench.free(), bench.ports[0]
    before = bench.read()
    known = face.placed[device]
    free = [each for each, row in before.rows.items() if row.port is None and face.placed[each].model == known.model]
    if not set(free) <= set(bench.devices):
        raise NotJudgedError(f"there are other free devices of model {known.model}, one of which may come")
    machine = face.machine(port)
    replies: list[HttpReply] = []

    def ask() -> bool:
        replies.append(face.send("PATCH", face.update_path(machine), face.by_model(known.kind, known.model, machine)))
        return replies[-1].status == 200

    claim = bench.ask(device, port, ask)
    after = bench.read()
    came = [each for each in free if after.port(each) is not None]
    for each in came:
        bench.saw(each, after.port(each))
    if claim is None or not replies:
        raise NotJudgedError("no answer")
    where = f"PATCH {face.at(face.update_path(machine))}"
    must(len(came) == 1, f"{where}: {len(came)} devices came, must be one of model {known.model}")
    must(after.port(came[0]) == port, f"{where}: device {came[0]} is on port {after.port(came[0])!r}, must be {port!r}")
    if claim is False:
        bench.note("truth-attach", f"{where}: HTTP {replies[0].status}, and device {came[0]} came")
        return
    _judge_new(bench, replies[0], came[0], port)


def bad_body(bench: ClauseContext) -> None:
    """Of PATCH and DELETE; nothing changes."""
    face = bench.face
    before = bench.read()
    machine = face.machine(bench.ports[0])
    path = face.update_path(machine)
    for method in ("PATCH", "DELETE"):
        for body in BAD[: bench.often(len(BAD))]:
            reply: HttpReply = bench.insist(partial(face.send, method, path, body))
            where = f"{method} {face.at(path)}"
            must(400 <= reply.status < 500, f"{where}: HTTP {reply.status} to the body {body.decode()!r}, must be 4xx")
            note_error_form(bench, reply, where)
    bench.compare_others("", before, bench.read())


def target(bench: ClauseContext) -> None:
    """``device_count`` is a target: asked for as many as are there, the machine stays as it is."""
    face, port = bench.face, bench.attached()[1]
    uuid = face.machine(port)
    before = bench.read()
    spec = next((s for _, machine, s in specifications(bench) if machine == uuid and s.get("device_count")), None)
    if spec is None:
        raise NotJudgedError(f"no specification of machine {uuid} has a device")
    path = face.cluster_path(f"/machines/{uuid}/actions/resize")
    asked = {"spec_uuid": text(spec, "spec_uuid"), "device_count": spec["device_count"]}
    body = json.dumps({"increase_resource_count": asked}).encode()
    statuses = [bench.insist(lambda: face.send("POST", path, body)).status for _ in range(2)]
    after = bench.once(lambda table: _came(before.rows, table.rows) != [], bench.limits.settle_s)
    came = _came(before.rows, after.rows)
    for each in came:
        bench.saw(each, after.port(each))
        bench.ask(each, None, partial(face.detach, each))
    must(not came, f"POST {path}: {', '.join(came)} came, though as many as asked for were there")
    refused = next((status for status in statuses if not 200 <= status < 300), None)
    must(refused is None, f"POST {path}: HTTP {refused} for a target that is reached, must be 2xx")


def no_specification(bench: ClauseContext) -> None:
    """``spec_uuid`` "" is what a client sends that found none."""
    face = bench.face
    specifications(bench)
    path = face.cluster_path(f"/machines/{face.machine(bench.ports[0])}/actions/resize")
    body = json.dumps({"increase_resource_count": {"spec_uuid": "", "device_count": 1}}).encode()
    reply = bench.insist(lambda: face.send("POST", path, body))
    must(400 <= reply.status < 500, f"POST {path}: HTTP {reply.status} to an empty spec_uuid, must be 4xx")
    note_error_form(bench, reply, f"POST {path}")


def _came(before: object, after: object) -> list[str]:
    """Devices that were free and are on a port now."""
    assert isinstance(before, dict) and isinstance(after, dict)
    return [each for each, row in after.items() if row.port and each in before and before[each].port is None]

"""Clauses of dialect ``fm`` that only read (contract chassis.md 5)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from mews.emulator.clock import unix_s
from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.fm_table import FABRIC, NO_MACHINE, RESOURCES, model_of, token_of
from mews.harness.conformance.errors import MalformedError, NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import at, kind_of, objects, shown, text
from mews.harness.conformance.json_reads import insist_on_object
from mews.harness.conformance.moves import one_device_each

MACHINES = f"{FABRIC}/machines"
TEXT, NUMBER, LIST = str, int, list
MACHINE_MEMBERS: Mapping[str, type] = {
    "fabric_uuid": TEXT, "fabric_id": NUMBER, "mach_uuid": TEXT, "mach_id": NUMBER, "mach_name": TEXT,
    "tenant_uuid": TEXT, "mach_status": NUMBER, "mach_status_detail": TEXT, "resources": LIST,
}  # fmt: skip
RESOURCE_MEMBERS: Mapping[str, type] = {
    "res_uuid": TEXT, "res_name": TEXT, "res_type": TEXT, "res_status": NUMBER, "res_op_status": TEXT,
    "res_serial_num": TEXT,
}  # fmt: skip
CLAIMS = "claims"
"""Among the bench's facts: what the token says of itself."""
LASTS_S = 30
"""Clients renew a token so long before its end."""


# The token


def token_needed(bench: ClauseContext) -> None:
    """Asked without an Authorization."""
    face = bench.face
    face.bearer()
    path = face.at(MACHINES)
    reply = bench.get(path)
    must(reply.status == 401, f"GET {path}: HTTP {reply.status} without a token, must be 401")
    challenge = reply.headers.get("www-authenticate", "")
    if not challenge.lower().startswith("bearer"):
        bench.note("challenge", f"GET {path}: HTTP 401 with WWW-Authenticate {challenge!r}, must be Bearer")
    note_error_form(bench, reply, f"GET {path}")


def token_form(bench: ClauseContext) -> None:
    """Three parts, the second of which is base64url without padding of an object with an integer ``exp``."""
    face = bench.face
    face.bearer()
    login: HttpReply | None = face.login
    where = f"POST {face.token_path()}"
    if login is None:
        login = bench.insist(face.ask_for_token)
    must(login.status == 200, f"{where}: HTTP {login.status}, must be 200")
    token = token_of(login)
    must(token, f"{where}: must have an access_token, a text")
    parts = token.split(".")
    must(len(parts) == 3, f"{where}: the access_token has {len(parts)} parts, must be a JWT of 3")
    must("=" not in parts[1], f"{where}: part 2 of the access_token is padded, must be base64url without padding")
    claims = _claims(parts[1], where)
    exp = claims.get("exp")
    must(isinstance(exp, int) and not isinstance(exp, bool), f"{where}: exp {shown(exp)} must be an integer")
    kind = at(login.json(), "token_type")
    if kind != "Bearer":
        bench.note("token-type", f"{where}: token_type {shown(kind)}, must be 'Bearer'")
    bench.facts[CLAIMS] = claims


def token_lasts(bench: ClauseContext) -> None:
    """From ``iat`` on, or by this machine's clock where there is none."""
    claims = bench.facts[CLAIMS]
    begun_s = claims["iat"] if isinstance(claims.get("iat"), int) else unix_s()
    left_s = claims["exp"] - begun_s
    where = f"POST {bench.face.token_path()}"
    must(left_s > LASTS_S, f"{where}: exp is {left_s:.0f} s ahead, must be more than the {LASTS_S} s of renewal")


def token_raw(bench: ClauseContext) -> None:
    """With a raw space and the key ``response``."""
    reply = bench.insist(lambda: bench.face.ask_for_token(raw=True))
    where = f"POST {bench.face.token_path()}"
    must(token_of(reply), f"{where}: HTTP {reply.status} to a form that is not encoded, must give a token")


def token_refused(bench: ClauseContext) -> None:
    """A password that is not the account's."""
    reply = bench.insist(lambda: bench.face.ask_for_token(password="mews-no-such-password"))
    where = f"POST {bench.face.token_path()}"
    refused = 400 <= reply.status < 500 and not token_of(reply)
    must(refused, f"{where}: HTTP {reply.status} to a wrong password, must be refused")


def token_checked(bench: ClauseContext) -> None:
    """The same token with another signature, and one of another service."""
    face = bench.face
    token = face.bearer().get("Authorization", "").removeprefix("Bearer ")
    head, _, signature = token.rpartition(".")
    path = face.at(MACHINES)
    for forged in (f"{head}.{signature[::-1]}", "eyJhbGciOiJub25lIn0.eyJleHAiOjk5OTk5OTk5OTl9.x"):
        reply = bench.get(path, Authorization=f"Bearer {forged}")
        must(reply.status == 401, f"GET {path}: HTTP {reply.status} with a forged token, must be 401")


# The fabric manager


def listing(bench: ClauseContext) -> None:
    """``data.machines`` and ``data.resources``."""
    _object(bench, RESOURCES, "machines", "resources")


def machines(bench: ClauseContext) -> None:
    """``{"data": {"machines": [{"fabric_id": integer or null, "mach_uuid": text}]}}``."""
    where = f"GET {bench.face.at(MACHINES)}"
    for each in _object(bench, MACHINES, "machines"):
        fabric = each.get("fabric_id")
        good = "fabric_id" in each and (fabric is None or _is(fabric, NUMBER))
        must(good, f"{where}: fabric_id {shown(fabric)} must be an integer or null")
        must(_is(each.get("mach_uuid"), TEXT), f"{where}: mach_uuid {shown(each.get('mach_uuid'))} must be a text")


def machine(bench: ClauseContext) -> None:
    """Each one, alone in its list, with all members that the clients decode."""
    for uuid in _known(bench):
        path = f"{MACHINES}/{uuid}"
        found = _object(bench, path, "machines")
        must(len(found) == 1, f"GET {bench.face.at(path)}: {len(found)} machines, must be the one that was asked for")
        must(text(found[0], "mach_uuid") == uuid, f"GET {bench.face.at(path)}: mach_uuid must be {uuid}")
        _members(found[0], MACHINE_MEMBERS, f"GET {bench.face.at(path)}")


def resources(bench: ClauseContext) -> None:
    """Their members' types, in the list of all and in each machine's."""
    for where, each in _everywhere(bench):
        _members(each, {name: kind for name, kind in RESOURCE_MEMBERS.items() if name != "res_op_status"}, where)


def operational(bench: ClauseContext) -> None:
    """``res_op_status`` decides by its first character: 0 good, 1 warning, 2 critical."""
    for where, each in _everywhere(bench):
        found = each.get("res_op_status")
        good = isinstance(found, str) and found[:1] in ("0", "1", "2")
        must(good, f"{where}: res_op_status {shown(found)} of {text(each, 'res_name')}: must begin with 0, 1 or 2")


def model(bench: ClauseContext) -> None:
    """Without it an attach is not recognised by the operator, and made again."""
    for where, each in _everywhere(bench):
        conditions = objects(each, "res_spec", "condition")
        named = [one for one in conditions if one.get("column") == "model" and one.get("operator") == "eq"]
        must(named and model_of(each), f"{where}: {text(each, 'res_name')}: must have a condition model eq TEXT")


def one_place(bench: ClauseContext) -> None:
    """By UUID, in the list of all."""
    found = _object(bench, RESOURCES, "resources")
    uuids = [text(each, "res_uuid") for each in found]
    twice = sorted({uuid for uuid in uuids if uuids.count(uuid) > 1})
    must(not twice, f"GET {bench.face.at(RESOURCES)}: res_uuid {', '.join(twice)} is listed more than once")
    one_device_each({text(each, "res_uuid"): text(each, "res_serial_num") for each in found})


def one_table(bench: ClauseContext) -> None:
    """A machine's resources are those that the list of all has in it."""
    for uuid in _known(bench):
        path = f"{MACHINES}/{uuid}"
        (found, *_) = _object(bench, path, "machines") or [{}]
        inside = {text(each, "res_uuid") for each in objects(found, "resources")}
        listed = {each.uuid for each in bench.face.placed.values() if each.machine == uuid}
        must(inside == listed, f"GET {bench.face.at(path)}: {len(inside)} resources, GET /resources has {len(listed)}")


def available(bench: ClauseContext) -> None:
    """Counted at the top level, for each model, asked of one machine as composable-dra-driver does."""
    uuid = next(iter(_known(bench)))
    path = f"{MACHINES}/{uuid}/available-reserved-resources"
    gpus = [each for each in bench.face.placed.values() if each.kind == "gpu"]
    models = {each.model for each in gpus}
    for name in (*sorted(models - {""}), "mews-no-such-model"):
        asked = {"res_type": "gpu", "condition": json.dumps({"column": "model", "operator": "eq", "value": name})}
        value = _whole(bench, path, **asked)
        where = f"GET {bench.face.at(path, **asked)}"
        count, fabric = value.get("reserved_res_num_per_fabric"), value.get("fabric_id")
        must(_is(count, NUMBER), f"{where}: reserved_res_num_per_fabric {shown(count)} must be an integer, at the top")
        must(_is(fabric, NUMBER), f"{where}: fabric_id {shown(fabric)} must be an integer, at the top")
        wanted = sum(each.model == name and not each.machine for each in gpus)
        must(count == wanted, f"{where}: {count} {name} are available, {wanted} are free")


def unknown_machine(bench: ClauseContext) -> None:
    """By a UUID that no fabric has."""
    face = bench.face
    for path in (f"{MACHINES}/{NO_MACHINE}", f"{MACHINES}/{NO_MACHINE}/available-reserved-resources"):
        query = {"res_type": "gpu"} if path.endswith("resources") else {}
        reply: HttpReply = bench.insist(partial(face.send, "GET", path, query=query))
        where = f"GET {face.at(path, **query)}"
        must(400 <= reply.status < 500, f"{where}: HTTP {reply.status}, must be 4xx")
        note_error_form(bench, reply, where)


def tenant(bench: ClauseContext) -> None:
    """One that there is not."""
    face = bench.face
    reply = bench.insist(lambda: face.send("GET", MACHINES, tenant=NO_MACHINE))
    where = f"GET {face.at(MACHINES, NO_MACHINE)}"
    must(400 <= reply.status < 500, f"{where}: HTTP {reply.status} for another tenant, must be 4xx")
    note_error_form(bench, reply, where)


# The cluster manager


def cluster_machine(bench: ClauseContext) -> None:
    """``data.cluster.machine`` with its specifications."""
    for where, _, spec in specifications(bench):
        for name in ("min_resspec_count", "max_resspec_count", "device_count"):
            must(_is(spec.get(name), NUMBER), f"{where}: {name} {shown(spec.get(name))} must be an integer")
        must(text(spec, "spec_uuid"), f"{where}: spec_uuid must be a text")
        must(_selected(spec), f"{where}: selector.expression.conditions must have model eq TEXT")
        must(isinstance(spec.get("devices"), list), f"{where}: devices must be a list")


def cluster_devices(bench: ClauseContext) -> None:
    """Named by the GPU's UUID, those of the fabric manager's machine."""
    for where, uuid, spec in specifications(bench):
        listed = bench.face.placed.values()
        own = [each for each in listed if each.machine == uuid and each.model == _selected(spec)]
        wanted = sorted((each.serial, each.uuid) for each in own)
        there = [each for each in objects(spec, "devices") if each.get("status") == "ADD_COMPLETE"]
        found = sorted((text(each, "device_id"), text(each, "detail", "res_uuid")) for each in there)
        must(found == wanted, f"{where}: devices {shown(found)}: must be {shown(wanted)}, as the fabric manager has it")


def cluster_count(bench: ClauseContext) -> None:
    """It is what a target is compared with."""
    for where, _, spec in specifications(bench):
        there = [each for each in objects(spec, "devices") if each.get("status") == "ADD_COMPLETE"]
        count = spec.get("device_count")
        must(count == len(there), f"{where}: device_count {shown(count)}, {len(there)} devices are there")


def groups(bench: ClauseContext) -> None:
    """At the top level; each with its machines."""
    face = bench.face
    path = face.cluster_path("/nodegroups", "v2")
    found = _cluster(bench, path).get("nodegroups")
    must(isinstance(found, list), f"GET {path}: nodegroups {kind_of(found)}: must be a list, at the top")
    for each in objects({"nodegroups": found}, "nodegroups"):
        must(text(each, "uuid") and text(each, "name"), f"GET {path}: {shown(each)}: must have uuid and name")
        one = f"{path}/{text(each, 'uuid')}"
        group = _cluster(bench, one)
        ids = group.get("mach_ids")
        right = isinstance(ids, list) and all(_is(machine_id, TEXT) for machine_id in ids)
        must(right, f"GET {one}: mach_ids {shown(ids)}: must be a list of texts, at the top")


def specifications(bench: ClauseContext) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return where it was asked, machine and specification, of each machine. Raises NotJudgedError where there is no
    cluster."""
    found = []
    for uuid in _known(bench):
        path = bench.face.cluster_path(f"/machines/{uuid}")
        value = _cluster(bench, path)
        own = at(value, "data", "cluster", "machine")
        must(text(own, "uuid") == uuid, f"GET {path}: data.cluster.machine.uuid must be {uuid}")
        must(isinstance(at(own, "resspecs"), list), f"GET {path}: data.cluster.machine.resspecs must be a list")
        found += [(f"GET {path}", uuid, spec) for spec in objects(own, "resspecs")]
    return found


def _selected(spec: Mapping[str, Any]) -> str:
    return model_of({"res_spec": {"condition": at(spec, "selector", "expression", "conditions")}})


def _cluster(bench: ClauseContext, path: str) -> dict[str, Any]:
    """Return an object of the cluster manager."""

    def ask() -> HttpReply:
        reply: HttpReply = bench.face.send("GET", path)
        if reply.status in (403, 404):
            raise NotJudgedError(f"GET {path}: HTTP {reply.status}: no cluster of that name; MEWS_FM_CLUSTER names one")
        return reply

    return insist_on_object(bench, ask, f"GET {path}", most=299)[1]


# What they share


def note_error_form(bench: ClauseContext, reply: HttpReply, where: str) -> None:
    """Note an error that has another form than the contract's."""
    try:
        value = reply.json()
    except MalformedError:
        value = None
    status, detail = at(value, "status"), at(value, "detail")
    good = _is(status, NUMBER) and bool(text(detail, "code")) and "message" in (detail or {})
    if not good:
        wanted = '{"status": number, "detail": {"code", "message", "data"}}'
        bench.note("error-form", f"{where}: HTTP {reply.status} {reply.text[:80]!r}, must be {wanted}")


def _object(bench: ClauseContext, path: str, *names: str) -> list[Mapping[str, Any]]:
    """Return the objects of the first of these members of ``data``, all of which must be lists."""
    value = _whole(bench, path)
    for name in names:
        found = at(value, "data", name)
        must(isinstance(found, list), f"GET {bench.face.at(path)}: data.{name}: {kind_of(found)}, must be a list")
        strange = next((each for each in found if not isinstance(each, dict)), None)
        must(strange is None, f"GET {bench.face.at(path)}: data.{name}: {shown(strange)}: must be an object")
    return objects(value, "data", names[0])


def _whole(bench: ClauseContext, path: str, **query: str) -> dict[str, Any]:
    def ask() -> HttpReply:
        found: HttpReply = bench.face.send("GET", path, query=query)
        return found

    return insist_on_object(bench, ask, f"GET {bench.face.at(path, **query)}")[1]


def _known(bench: ClauseContext) -> list[str]:
    """Return the machines of the list of all. Raises NotJudgedError where there are none."""
    bench.read()
    found = list(bench.face.machines.values())
    if not found:
        raise NotJudgedError("there are no machines")
    return found


def _everywhere(bench: ClauseContext) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every resource, with where it was listed."""
    found = [(f"GET {bench.face.at(RESOURCES)}", each) for each in _object(bench, RESOURCES, "resources")]
    for uuid in _known(bench):
        path = f"{MACHINES}/{uuid}"
        for shown_machine in _object(bench, path, "machines"):
            found += [(f"GET {bench.face.at(path)}", each) for each in objects(shown_machine, "resources")]
    return found


def _members(value: Mapping[str, Any], wanted: Mapping[str, type], where: str) -> None:
    for name, kind in wanted.items():
        words = {TEXT: "a text", NUMBER: "an integer", LIST: "a list"}
        right = name in value and (_is(value[name], kind) or (name == "res_serial_num" and value[name] == ""))
        must(right, f"{where}: {name} {shown(value.get(name))}: must be {words[kind]}")


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is NUMBER and isinstance(value, bool))


def _claims(part: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError as error:
        raise UnmetClauseError(f"{where}: part 2 of the access_token is not base64url-encoded JSON") from error
    must(isinstance(value, dict), f"{where}: part 2 of the access_token must be an object")
    found: dict[str, Any] = value
    return found

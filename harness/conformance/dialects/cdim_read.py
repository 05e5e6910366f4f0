"""Clauses of dialect ``cdim`` that only read (contract chassis.md 6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.cdim_table import (
    API,
    APPLY,
    CPU,
    DESTINATION,
    FABRIC_SIDE,
    FIXED,
    HOST_SIDE,
    NO_LAYOUT,
    NOBODY,
    RESOURCES,
    SOURCE,
    link_of,
)
from mews.harness.conformance.errors import MalformedError, NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import at, kind_of, objects, shown, text
from mews.harness.conformance.json_reads import insist_on_object
from mews.harness.conformance.moves import one_device_each

DEFAULT_GROUP = "00000000-0000-7000-8000-000000000000"
BRIEF = {"deviceID", "type", "status"}
Found = Mapping[str, Any]


# Resources


def listing(bench: ClauseContext) -> None:
    """``{"count", "resources": [{"device": {…}}]}``."""
    for each in _list(bench, RESOURCES, "resources"):
        must(isinstance(each.get("device"), dict), f"GET {RESOURCES}: {shown(each)}: must have device, an object")


def count(bench: ClauseContext) -> None:
    """Of each list that has one."""
    for path, name in ((RESOURCES, "resources"), (f"{API}/nodes", "nodes"), (f"{API}/resource-groups", GROUPS)):
        value = whole(bench, path)
        listed = value.get(name)
        if isinstance(listed, list):
            must(value.get("count") == len(listed), f"GET {path}: count {shown(value.get('count'))}, has {len(listed)}")


def strings(bench: ClauseContext) -> None:
    """Members that clients decode."""
    for each in _list(bench, RESOURCES, "resources"):
        device = each.get("device")
        where = f"GET {RESOURCES}: {text(device, 'deviceID')}"
        for name in ("deviceID", "type"):
            found = at(device, name)
            must(isinstance(found, str) and found, f"{where}: device.{name} {shown(found)} must be a text")
        detected, nodes = each.get("detected"), each.get("nodeIDs")
        must(isinstance(detected, bool), f"{where}: detected {shown(detected)} must be a boolean")
        good = isinstance(nodes, list) and all(isinstance(one, str) for one in nodes)
        must(good, f"{where}: nodeIDs {shown(nodes)} must be a list of texts")


def order(bench: ClauseContext) -> None:
    """Clients take the first that fits: the order decides which."""
    ids = [text(each, "device", "deviceID") for each in _list(bench, RESOURCES, "resources")]
    must(ids == sorted(ids), f"GET {RESOURCES}: must be in ascending order of deviceID")


def brief(bench: ClauseContext) -> None:
    """Without ``detail``, and with it false."""
    for path in (f"{API}/resources", f"{API}/resources?detail=false"):
        for each in _list(bench, path, "resources"):
            found = set(each.get("device") or {})
            must(found == BRIEF, f"GET {path}: device has {', '.join(sorted(found))}, must be deviceID, type, status")


def any_case(bench: ClauseContext) -> None:
    """``TRUE`` is true."""
    path = f"{API}/resources?detail=TRUE"
    for each in _list(bench, path, "resources"):
        must(set(each.get("device") or {}) > BRIEF, f"GET {path}: must be in full detail")


def other_word(bench: ClauseContext) -> None:
    """Neither true nor false."""
    _refused(bench, f"{API}/resources?detail=mews", 400)


def status(bench: ClauseContext) -> None:
    """By it one sees what can be used."""
    for where, device in _devices(bench):
        for name in ("state", "health"):
            found = at(device, "status", name)
            must(isinstance(found, str) and found, f"{where}: status.{name} {shown(found)} must be a text")


def model(bench: ClauseContext) -> None:
    """Of each GPU: the operator looks for one by it."""
    for where, device in _devices(bench):
        if text(device, "type").lower() == "gpu":
            found = at(device, "model")
            must(isinstance(found, str) and found, f"{where}: model {shown(found)} must be a text")


def one_place(bench: ClauseContext) -> None:
    """Listed once, and linked to one node at most."""
    found = _list(bench, RESOURCES, "resources")
    ids = [text(each, "device", "deviceID") for each in found]
    twice = sorted({each for each in ids if ids.count(each) > 1})
    must(not twice, f"GET {RESOURCES}: {', '.join(twice)} is listed more than once")
    one_device_each({text(each, "device", "deviceID"): text(each, "device", "attribute", "uuid") for each in found})
    for each in found:
        nodes = each.get("nodeIDs") or []
        must(len(nodes) < 2, f"GET {RESOURCES}: {text(each, 'device', 'deviceID')}: is linked to {len(nodes)} nodes")


def node_links(bench: ClauseContext) -> None:
    """A link of type CPU and ``nodeIDs`` name the same node, or both are empty."""
    for each in _movable(bench):
        device = each.get("device")
        linked, nodes = link_of(device, CPU), each.get("nodeIDs")
        wanted = [linked] if linked else []
        where = f"GET {RESOURCES}: {text(device, 'deviceID')}"
        must(nodes == wanted, f"{where}: nodeIDs {shown(nodes)}, its link of type CPU is {linked!r}")


def operator_links(bench: ClauseContext) -> None:
    """By them the operator sees what is free, and where to disconnect it from."""
    for each in _movable(bench):
        device = each.get("device")
        where = f"GET {RESOURCES}: {text(device, 'deviceID')}"
        near, far = link_of(device, FABRIC_SIDE), link_of(device, DESTINATION)
        must(near == far, f"{where}: its links of types eeio and destinationFabricAdapter are {near!r} and {far!r}")
        attached = bool(each.get("nodeIDs"))
        must(bool(far) == attached, f"{where}: its link of type destinationFabricAdapter is {far!r}, {_is(attached)}")


def _is(attached: bool) -> str:
    return "and it is linked to a node" if attached else "and it is linked to no node"


def adapters(bench: ClauseContext) -> None:
    """Each node has an adapter that leads to one in the chassis; else the operator cannot connect anything to it."""
    found = {text(each, "device", "deviceID"): at(each, "device") for each in _list(bench, RESOURCES, "resources")}
    for node in _list(bench, f"{API}/nodes?detail=true", "nodes"):
        where = f"GET {API}/nodes?detail=true: {text(node, 'id')}"
        own = [at(each, "device") for each in objects(node, "resources") if each.get("detected")]
        near = [each for each in own if text(each, "type") == SOURCE and _side(each) == HOST_SIDE]
        must(near, f"{where}: must have a detected {SOURCE} with status {HOST_SIDE}")
        far = found.get(link_of(near[0], DESTINATION))
        good = text(far, "type") == DESTINATION and _side(far) == FABRIC_SIDE
        must(good, f"{where}: its {SOURCE} must have a link to a {DESTINATION} with status {FABRIC_SIDE}")


def _side(device: Any) -> str:
    return text(device, "attribute", "deviceSpecificInformation", "status")


def single(bench: ClauseContext) -> None:
    """One resource is what the list has of it."""
    for each in _list(bench, RESOURCES, "resources")[: bench.often(5)]:
        path = f"{API}/resources/{text(each, 'device', 'deviceID')}"
        must(whole(bench, path) == each, f"GET {path}: must be what GET {RESOURCES} has of it")


def unknown_resource(bench: ClauseContext) -> None:
    """By an ID that no pool has."""
    _refused(bench, f"{API}/resources/{NOBODY}", 404)


def available(bench: ClauseContext) -> None:
    """Enabled, OK, detected and available; in ascending order of type, then ID."""
    path = f"{API}/resources/available"
    found = [text(each, "device", "deviceID") for each in _list(bench, path, "resources")]
    usable = [each for each in _list(bench, RESOURCES, "resources") if _usable(each)]
    wanted = {text(each, "device", "deviceID") for each in usable}
    must(set(found) == wanted, f"GET {path}: {len(found)} resources, {len(wanted)} are available")


def by_type(bench: ClauseContext) -> None:
    """The order of what is available, and of what is unused."""
    for path in (f"{API}/resources/available", f"{API}/resources/unused"):
        found = [at(each, "device") for each in _list(bench, path, "resources")]
        keys = [(text(each, "type"), text(each, "deviceID")) for each in found]
        must(keys == sorted(keys), f"GET {path}: must be in ascending order of type, then of deviceID")


def unused(bench: ClauseContext) -> None:
    """What is available and has no links; nothing is said of nodes and detection."""
    path = f"{API}/resources/unused"
    found = _list(bench, path, "resources")
    free = [each for each in _list(bench, RESOURCES, "resources") if _usable(each) and not at(each, "device", "links")]
    wanted = sorted(text(each, "device", "deviceID") for each in free)
    got = sorted(text(each, "device", "deviceID") for each in found)
    must(got == wanted, f"GET {path}: {len(got)} resources, {len(wanted)} are available and have no links")
    more = [name for each in found for name in ("detected", "nodeIDs") if name in each]
    must(not more, f"GET {path}: has {', '.join(sorted(set(more)))}, must have no such member")


def _usable(resource: Found) -> bool:
    good = (
        text(resource, "device", "status", "state") == "Enabled" and at(resource, "device", "status", "health") == "OK"
    )
    return good and resource.get("detected") is True and at(resource, "annotation", "available") is True


# Nodes and groups


def nodes(bench: ClauseContext) -> None:
    """In ascending order of ID, with their resources in brief."""
    path = f"{API}/nodes"
    found = _list(bench, path, "nodes")
    ids = [text(each, "id") for each in found]
    must(ids == sorted(ids) and all(ids), f"GET {path}: must have texts as id, in ascending order")
    for each in found:
        must(isinstance(each.get("resources"), list), f"GET {path}: {text(each, 'id')}: resources must be a list")
        for one in objects(each, "resources"):
            members = set(at(one, "device") or {})
            must(members == BRIEF, f"GET {path}: device has {', '.join(sorted(members))}, must be in brief")


def nodes_in_full(bench: ClauseContext) -> None:
    """The operator reads the nodes with ``detail=true``, which the document has for resources only."""
    path = f"{API}/nodes?detail=true"
    for node in _list(bench, path, "nodes"):
        for each in objects(node, "resources"):
            found = set(at(each, "device") or {})
            must(found > BRIEF, f"GET {path}: {text(node, 'id')}: its devices must be in full detail")


def node(bench: ClauseContext) -> None:
    """One node in full; its resources have no ``nodeIDs``."""
    for listed in _list(bench, f"{API}/nodes", "nodes"):
        path = f"{API}/nodes/{text(listed, 'id')}"
        value = whole(bench, path)
        must(value.get("id") == listed.get("id"), f"GET {path}: id {shown(value.get('id'))}, must be the asked one")
        for each in objects(value, "resources"):
            must("nodeIDs" not in each, f"GET {path}: a resource of a node must have no nodeIDs")
            must(set(at(each, "device") or {}) > BRIEF, f"GET {path}: its devices must be in full detail")


def same_table(bench: ClauseContext) -> None:
    """A node's resources are those that the list links to it."""
    listed = _list(bench, RESOURCES, "resources")
    for each in _list(bench, f"{API}/nodes", "nodes"):
        own = {text(one, "device", "deviceID") for one in objects(each, "resources")}
        wanted = {text(one, "device", "deviceID") for one in listed if text(each, "id") in (one.get("nodeIDs") or [])}
        must(own == wanted, f"GET {API}/nodes: {text(each, 'id')} has {len(own)}, {len(wanted)} are linked to it")


def unknown_node(bench: ClauseContext) -> None:
    """By an ID that no pool has."""
    _refused(bench, f"{API}/nodes/{NOBODY}", 404)


GROUPS = "resourceGroups"


def groups(bench: ClauseContext) -> None:
    """In ascending order of ID, the default group first."""
    path = f"{API}/resource-groups"
    found = _list(bench, path, GROUPS)
    ids = [text(each, "id") for each in found]
    must(ids[:1] == [DEFAULT_GROUP] and ids == sorted(ids), f"GET {path}: must be in order, {DEFAULT_GROUP} first")


def members(bench: ClauseContext) -> None:
    """A group has the resources that name it."""
    listed = _list(bench, RESOURCES, "resources")
    path = f"{API}/resource-groups/{DEFAULT_GROUP}"
    own = {text(each, "device", "deviceID") for each in objects(whole(bench, path), "resources")}
    wanted = {
        text(each, "device", "deviceID") for each in listed if DEFAULT_GROUP in (each.get("resourceGroupIDs") or [])
    }
    must(own == wanted, f"GET {path}: {len(own)} resources, {len(wanted)} name it")


def unknown_group(bench: ClauseContext) -> None:
    """404 where it is asked for; as a filter it is an empty list."""
    _refused(bench, f"{API}/resource-groups/{NOBODY}", 404)
    path = f"{API}/resources/available?resourceGroupID={NOBODY}"
    must(_list(bench, path, "resources") == [], f"GET {path}: must be an empty list")


# Layouts


def layouts(bench: ClauseContext) -> None:
    """``{"count", "totalCount", "applyResults"}``; at most as many as asked for."""
    path = f"{APPLY}?limit=1"
    value = whole(bench, path)
    listed = value.get("applyResults")
    must(isinstance(listed, list), f"GET {path}: applyResults: {kind_of(listed)}, must be a list")
    assert isinstance(listed, list)
    for name in ("count", "totalCount"):
        good = isinstance(value.get(name), int) and not isinstance(value.get(name), bool)
        must(good, f"GET {path}: {name} {shown(value.get(name))} must be an integer")
    must(
        value["count"] == len(listed) <= 1, f"GET {path}: count {value['count']}, has {len(listed)}, must be 1 at most"
    )


def bad_query(bench: ClauseContext) -> None:
    """Words that there are not, and a limit of none."""
    for query in ("status=MEWS", "sortBy=mews", "limit=0"):
        _refused(bench, f"{APPLY}?{query}", 400)


def unknown_layout(bench: ClauseContext) -> None:
    """An ID of the right form that there is not."""
    reply = _refused(bench, f"{APPLY}/{NO_LAYOUT}", 404)
    code = text(_value(reply), "code")
    must(code == "E40020", f"GET {APPLY}/{NO_LAYOUT}: code {code!r}, must be E40020")


def layout_id(bench: ClauseContext) -> None:
    """An ID is ten hexadecimal digits."""
    _refused(bench, f"{APPLY}/mews", 400)


def migration(bench: ClauseContext) -> None:
    """From a node to what it is already there is nothing to do. Nothing is moved by it."""
    path = f"{API}/migration-procedures"
    for each in _list(bench, f"{API}/nodes", "nodes")[:1]:
        whole_node = whole(bench, f"{API}/nodes/{text(each, 'id')}")
        own = [at(one, "device") for one in objects(whole_node, "resources")]
        moves = [one for one in own if text(one, "type") not in FIXED]
        gpus = [{"deviceID": text(one, "deviceID")} for one in moves if text(one, "type").lower() == "gpu"]
        device: dict[str, Any] = {"cpu": {"deviceIDs": [text(each, "id")]}, "gpu": gpus}
        for one in moves:
            if text(one, "type").lower() != "gpu":
                device.setdefault(text(one, "type"), {"deviceIDs": []})["deviceIDs"].append(text(one, "deviceID"))
        body = json.dumps({"targetNodeIDs": [text(each, "id")], "desiredLayout": {"nodes": [{"device": device}]}})
        reply: HttpReply = bench.insist(partial(bench.face.send, "POST", path, body.encode()))
        must(reply.status == 200, f"POST {path}: HTTP {reply.status}, must be 200")
        found = _value(reply)
        must(found == [], f"POST {path}: {shown(found)} for a node as it is, must be []")
        return
    raise NotJudgedError("there are no nodes")


# What they share


def note_error_form(bench: ClauseContext, reply: HttpReply, where: str, *, layouts: bool) -> None:
    """Note an error that has another form than the documents'."""
    value = _value(reply)
    code, message = at(value, "code"), at(value, "message")
    if layouts:
        good = isinstance(code, str) and code[:2] in ("E4", "E5") and isinstance(message, str)
        topic, wanted = "layout-error", '{"code": "E4…", "message"}'
    else:
        good = all(isinstance(at(value, name), str) for name in ("code", "message", "details"))
        topic, wanted = "error-form", '{"code", "message", "details"}'
    if not good:
        bench.note(topic, f"{where}: HTTP {reply.status} {reply.text[:80]!r}, must be {wanted}")


def _refused(bench: ClauseContext, path: str, status: int) -> HttpReply:
    reply: HttpReply = bench.insist(lambda: bench.face.send("GET", path))
    must(reply.status == status, f"GET {path}: HTTP {reply.status}, must be {status}")
    note_error_form(bench, reply, f"GET {path}", layouts=path.startswith(APPLY))
    return reply


def _list(bench: ClauseContext, path: str, name: str) -> list[Found]:
    found = whole(bench, path).get(name)
    must(isinstance(found, list), f"GET {path}: {name}: {kind_of(found)}, must be a list")
    assert isinstance(found, list)
    strange = next((each for each in found if not isinstance(each, dict)), None)
    must(strange is None, f"GET {path}: {name}: {shown(strange)}: must be an object")
    return found


def whole(bench: ClauseContext, path: str) -> dict[str, Any]:
    """Return the object of a 200; headers that are not the documents' are noted. Raises as insist_on_object."""

    def ask() -> HttpReply:
        found: HttpReply = bench.face.send("GET", path)
        return found

    reply, value = insist_on_object(bench, ask, f"GET {path}")
    if reply.headers.get("x-content-type-options", "").lower() != "nosniff":
        bench.note("sniffing", f"GET {path}: must have X-Content-Type-Options: nosniff")
    return value


def _value(reply: HttpReply) -> Any:
    try:
        return reply.json()
    except MalformedError as error:
        raise UnmetClauseError(str(error)) from error


def _devices(bench: ClauseContext) -> Iterable[tuple[str, Any]]:
    """Yield every device, with where it was listed."""
    for each in _list(bench, RESOURCES, "resources"):
        yield f"GET {RESOURCES}: {text(each, 'device', 'deviceID')}", at(each, "device")


def _movable(bench: ClauseContext) -> list[Found]:
    """Return all but the cabling of the nodes."""
    return [each for each in _list(bench, RESOURCES, "resources") if text(each, "device", "type") not in FIXED]

"""Wrongs of NEC's configuration manager and layout-apply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from mews.emulator.dialects.wire import JSON, Request, Response, as_json
from mews.emulator.wrongs.parts import Make, headers, instead_of, moved, replies, settled
from mews.emulator.wrongs.tables import CDIM as WORDS
from mews.emulator.wrongs.tables import AskedMove, cdim_error, with_json
from mews.emulator.wrongs.wrong import Ask, Handler, Reply, Stage, Wrong, on_target

CDIM = ("cdim",)
_API = "/cdim/api/v1"
_RESOURCES, _RESOURCE = f"{_API}/resources", rf"{_API}/resources/[0-9a-f-]{{36}}"
_AVAILABLE, _UNUSED = f"{_API}/resources/available", f"{_API}/resources/unused"
_NODES, _NODE = f"{_API}/nodes", rf"{_API}/nodes/[^/]+"
_GROUPS, _GROUP = f"{_API}/resource-groups", rf"{_API}/resource-groups/[^/]+"
_APPLY, _LAYOUT = WORDS.allocation, rf"{WORDS.allocation}/[^/]+"
When = Callable[[Request], bool]


def _gets(pattern: str, **query: str) -> When:
    def when(request: Request) -> bool:
        asked = all(request.query.get(name) == value for name, value in query.items())
        return request.method == "GET" and re.fullmatch(pattern, request.path) is not None and asked

    return when


def _sends(method: str, pattern: str) -> When:
    return lambda request: request.method == method and re.fullmatch(pattern, request.path) is not None


def _value(when: When, change: Callable[[Any], Any]) -> Make:
    """Return the JSON of every good reply to such a request, changed."""

    def changed(reply: Response) -> Response:
        return with_json(reply, change(json.loads(reply.body))) if reply.status < 300 and reply.body else reply

    return replies(when, changed)


def _error(when: When, change: Callable[[Any], Any]) -> Make:
    """Return the JSON of every refusal of such a request, changed."""

    def changed(reply: Response) -> Response:
        return with_json(reply, change(json.loads(reply.body))) if 400 <= reply.status < 500 else reply

    return replies(when, changed)


def _each(find: Callable[[Any], Iterator[dict[str, Any]]], change: Callable[[dict[str, Any]], object]) -> Make:
    """Return every such object in a reply of the configuration manager, changed in its place."""

    def changed(value: Any) -> Any:
        for each in find(value):
            change(each)
        return value

    inventory: When = lambda request: request.method == "GET" and not request.path.startswith(_APPLY)  # noqa: E731
    return _value(inventory, changed)


def _resources_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "device" in value:
            yield value
        for each in value.values():
            yield from _resources_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _resources_in(each)


def _devices_in(value: Any) -> Iterator[dict[str, Any]]:
    return (each["device"] for each in _resources_in(value))


def _listed(pattern: str, name: str, change: Callable[[list[Any]], list[Any]], **query: str) -> Make:
    """Return the list of a reply, changed."""
    return _value(_gets(pattern, **query), lambda value: {**value, name: change(value[name])})


def _turned(values: list[Any]) -> list[Any]:
    return values[::-1]


def _asked_with(when: When, **query: str) -> Make:
    """Such a request is carried out with another query."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            if not when(request):
                return ask(request)
            asked = {**request.query, **query}
            written = "&".join(f"{name}={value}" for name, value in asked.items())
            return ask(on_target(request, f"{request.path}?{written}"))

        return handler

    return make


def _missed(pattern: str, status: int, reply: Response) -> Make:
    return instead_of(lambda asked, found: found.status == status and _gets(pattern)(asked), reply)


def _no_health(device: dict[str, Any]) -> None:
    if "status" in device:
        device["status"] = {"state": "Enabled"}


def _no_node_ids(resource: dict[str, Any]) -> None:
    if "nodeIDs" in resource:
        resource["nodeIDs"] = []


def _no_adapters(device: dict[str, Any]) -> None:
    if device["type"] == "sourceFabricAdapter" and "attribute" in device:
        device["attribute"] = {}


def _no_eeio(device: dict[str, Any]) -> None:
    if "links" in device:
        device["links"] = [each for each in device["links"] if each["type"] != "eeio"]


def _node_lacks_gpu(nodes: list[Any]) -> list[Any]:
    for node in nodes:
        gpus = [each for each in node["resources"] if each["device"]["type"] == "GPU"]
        node["resources"] = [each for each in node["resources"] if each not in gpus[:1]]
    return nodes


def _with_node_ids(resources: list[Any]) -> list[Any]:
    return [{**each, "nodeIDs": []} for each in resources]


def _lacks(name: str) -> Callable[[Any], Any]:
    return lambda value: {key: each for key, each in value.items() if key != name}


def _operators_refused(stage: Stage) -> Handler:
    """A procedure by sourceDeviceID is refused."""

    def handler(request: Request, ask: Ask) -> Reply:
        theirs = any("sourceDeviceID" in each for each in WORDS.procedures(request))
        return cdim_error(400, "E40001", "'targetDeviceID' is a required property") if theirs else ask(request)

    return handler


def _at_once(stage: Stage) -> Handler:
    """Procedures do not wait for each other."""

    def handler(request: Request, ask: Ask) -> Reply:
        found = WORDS.procedures(request)
        known = {each.get("operationID") for each in found}
        if not found or not all(set(each.get("dependencies") or ()) <= known for each in found):
            return ask(request)
        return ask(WORDS.layout(request, [{**each, "dependencies": []} for each in found]))

    return handler


def _any_body(stage: Stage) -> Handler:
    """A body in another form is taken for one that has nothing to do."""

    def handler(request: Request, ask: Ask) -> Reply:
        reply = ask(request)
        wrong = isinstance(reply, Response) and reply.status == 400 and _sends("POST", _APPLY)(request)
        return ask(WORDS.layout(request, [])) if wrong else reply

    return handler


def _no_empty(stage: Stage) -> Handler:
    """An empty list of procedures is refused."""

    def handler(request: Request, ask: Ask) -> Reply:
        empty = _sends("POST", _APPLY)(request) and request.body.replace(b" ", b"") == b'{"procedures":[]}'
        return cdim_error(400, "E40001", "procedures is too short") if empty else ask(request)

    return handler


def _lies(operation: str) -> Make:
    """Such a move is answered as done and is not: an empty layout is applied in its place."""

    def act(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
        struck = (move.port is not None) == (operation == "connect")
        node = "" if operation == "connect" else move.left
        could = struck and _node_of(request, move.device, ask) == node and _get(request, f"{_NODES}/{move.left}", ask)
        return ask(WORDS.layout(request, []) if could else request)

    return moved(act)


def _get(request: Request, target: str, ask: Ask) -> dict[str, Any] | None:
    """Return the object of a 200 to a GET."""
    found = ask(on_target(replace(request, method="GET", body=b""), target))
    value: dict[str, Any] | None = json.loads(found.body) if isinstance(found, Response) else None
    return value if isinstance(found, Response) and found.status == 200 else None


def _node_of(request: Request, device: str, ask: Ask) -> str | None:
    """Return the node that a device is linked to, "" for none; None of a device that there is not."""
    found = _get(request, f"{_RESOURCES}/{device}", ask)
    return None if found is None else "".join(found["nodeIDs"])


def _denies(operation: str) -> Make:
    """Return a layout of one such procedure that is completed is said to have failed."""

    def changed(value: Any) -> Any:
        procedures = value.get("procedures") or []
        if len(procedures) != 1 or procedures[0]["operation"] != operation or value["status"] != "COMPLETED":
            return value
        if "sourceDeviceID" in procedures[0]:
            return value
        return {**value, "status": "FAILED", "applyResult": [{"operationID": 1, "status": "FAILED"}]}

    return _value(_gets(_LAYOUT), changed)


def _moves_connected(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
    """What is connected is disconnected first."""
    if move.port is not None:
        node = _node_of(request, move.device, ask)
        if node and node != move.port:
            settled(request, ask(WORDS.asking(request, AskedMove(move.device, None, node))), ask, stage)
    return ask(request)


def _skips_nothing(value: Any) -> Any:
    for each in value.get("applyResult") or []:
        each["status"] = {"SKIPPED": "COMPLETED"}.get(each["status"], each["status"])
    return value


def _bare_result(value: Any) -> Any:
    kept = [{key: one for key, one in each.items() if key != "uri"} for each in value.get("applyResult") or []]
    return {**value, "applyResult": kept}


_NOTHING = Response(200, {**JSON, "X-Content-Type-Options": "nosniff"}, b"{}")
_NO_GROUP = Response(
    400, {**JSON, "X-Content-Type-Options": "nosniff"}, as_json({"code": "badRequest", "message": "", "details": ""})
)
_NO_LAYOUTS = Response(200, _NOTHING.headers, as_json({"count": 0, "totalCount": 0, "applyResults": []}))
_FULL = _gets(_RESOURCES, detail="true")


def _another_word(request: Request) -> bool:
    given = request.query.get("detail", "")
    return _gets(_RESOURCES)(request) and given.lower() not in ("true", "false", "")


OF_CDIM: tuple[Wrong, ...] = (
    Wrong("no-device", "a resource has no device", CDIM, _listed(_RESOURCES, "resources", lambda found: [{}, *found])),
    Wrong(
        "detected-text", "detected is a text", CDIM, _each(_resources_in, lambda one: one.update(detected="true"))
    ),
    Wrong("miscounted", "count is one more", CDIM, _value(_FULL, lambda v: {**v, "count": v["count"] + 1})),
    Wrong("unordered", "resources are in descending order", CDIM, _listed(_RESOURCES, "resources", _turned)),
    Wrong(
        "always-full",
        "resources always have full detail",
        CDIM,
        _asked_with(lambda r: _gets(_RESOURCES)(r) and not _another_word(r), detail="true"),
    ),
    Wrong("lower-case", "TRUE is not taken for true", CDIM, _asked_with(_gets(_RESOURCES, detail="TRUE"), detail="")),
    Wrong("any-word", "detail may be any word", CDIM, _asked_with(_another_word, detail="true")),
    Wrong("no-health", "a device has no health", CDIM, _each(_devices_in, _no_health)),
    Wrong("no-gpu-model", "a device has no model", CDIM, _each(_devices_in, lambda one: one.pop("model", None))),
    Wrong(
        "listed-again",
        "the first resource is listed twice",
        CDIM,
        _value(_FULL, lambda v: {**v, "count": v["count"] + 1, "resources": [v["resources"][0], *v["resources"]]}),
    ),
    Wrong("no-node-ids", "nodeIDs is empty", CDIM, _each(_resources_in, _no_node_ids)),
    Wrong("no-eeio", "an attached device has no link of type eeio", CDIM, _each(_devices_in, _no_eeio)),
    Wrong("no-adapter-status", "the adapters of nodes have no status", CDIM, _each(_devices_in, _no_adapters)),
    Wrong("resource-differs", "one resource has no annotation", CDIM, _value(_gets(_RESOURCE), _lacks("annotation"))),
    Wrong("any-resource", "a resource that there is not is an empty object", CDIM, _missed(_RESOURCE, 404, _NOTHING)),
    Wrong("nodes-unordered", "nodes are in descending order", CDIM, _listed(_NODES, "nodes", _turned)),
    Wrong(
        "nodes-always-brief",
        "detail of nodes is ignored",
        CDIM,
        _asked_with(_gets(_NODES, detail="true"), detail="false"),
    ),
    Wrong("node-ids-inside", "resources of a node have nodeIDs", CDIM, _listed(_NODE, "resources", _with_node_ids)),
    Wrong("node-lacks", "nodes lack a GPU that is linked to them", CDIM, _listed(_NODES, "nodes", _node_lacks_gpu)),
    Wrong("any-node", "a node that there is not is an empty object", CDIM, _missed(_NODE, 404, _NOTHING)),
    Wrong("less-available", "a resource is left out", CDIM, _listed(_AVAILABLE, "resources", lambda f: f[1:])),
    Wrong("available-turned", "available resources are in descending order", CDIM,
          _listed(_AVAILABLE, "resources", _turned)),
    Wrong("unused-with-nodes", "unused resources have nodeIDs", CDIM, _listed(_UNUSED, "resources", _with_node_ids)),
    Wrong("default-group-named", "the default group has another ID", CDIM,
          _listed(_GROUPS, "resourceGroups", lambda found: [{**each, "id": "default"} for each in found])),
    Wrong("group-lacks", "a group lacks a resource that names it", CDIM,
          _listed(_GROUP, "resources", lambda found: found[1:])),
    Wrong(
        "group-filter-refused",
        "a filter by an unknown group is refused",
        CDIM,
        instead_of(lambda asked, found: "resourceGroupID" in asked.query, _NO_GROUP),
    ),
    Wrong("total-text", "totalCount is a text", CDIM,
          _value(_gets(_APPLY), lambda value: {**value, "totalCount": str(value["totalCount"])})),
    Wrong(
        "any-query",
        "a query that makes no sense is an empty list",
        CDIM,
        _missed(_APPLY, 400, _NO_LAYOUTS),
    ),
    Wrong("other-code", "an unknown layout has another code", CDIM,
          _error(_gets(_LAYOUT), lambda value: {**value, "code": "E40099"})),
    Wrong(
        "id-not-checked",
        "an ID in another form is 404",
        CDIM,
        _missed(_LAYOUT, 400, cdim_error(404, "E40020", "Specified Layout Apply ID is not found")),
    ),
    Wrong("migration-wrapped", "procedures of a migration are wrapped in an object", CDIM,
          _value(_sends("POST", f"{_API}/migration-procedures"), lambda value: {"procedures": value})),
    Wrong("no-details", "an error of the configuration manager has no details", CDIM,
          _error(lambda r: not r.path.startswith(_APPLY), _lacks("details"))),
    Wrong("no-message", "an error of layout-apply has no message", CDIM,
          _error(lambda r: r.path.startswith(_APPLY), _lacks("message"))),
    Wrong("sniffable", "replies do not forbid to guess their type", CDIM,
          headers(lambda r: True, X_Content_Type_Options=None)),
    Wrong("accepted-200", "a layout is accepted with 200", CDIM,
          replies(_sends("POST", _APPLY), lambda reply: replace(reply, status=200) if reply.status == 202 else reply)),
    Wrong("no-ended-at", "a layout that has ended has no endedAt", CDIM, _value(_gets(_LAYOUT), _lacks("endedAt"))),
    Wrong("no-uri", "a procedure's result has no uri", CDIM, _value(_gets(_LAYOUT), _bare_result)),
    Wrong("oldest-first", "layouts are listed with the oldest first", CDIM,
          _listed(_APPLY, "applyResults", _turned, limit="5")),
    Wrong("operator-refused", "a body with sourceDeviceID is refused", CDIM, _operators_refused),
    Wrong("no-order", "procedures do not wait for each other", CDIM, _at_once),
    Wrong("skips-nothing", "a skipped procedure is said to be completed", CDIM,
          _value(_gets(_LAYOUT), _skips_nothing)),
    Wrong("any-layout", "a body in another form is accepted", CDIM, _any_body),
    Wrong("no-empty-layout", "an empty list of procedures is refused", CDIM, _no_empty),
    Wrong(
        "cancels-ended",
        "a layout that has ended can be canceled",
        CDIM,
        instead_of(lambda asked, found: found.status == 409 and _sends("PUT", _LAYOUT)(asked), _NOTHING),
    ),
    Wrong(
        "other-conflict",
        "a layout that meets another one has another code",
        CDIM,
        _error(lambda r: _sends("POST", _APPLY)(r), lambda v: {**v, "code": v["code"].replace("E40010", "E40027")}),
        lasting=True,
    ),
    Wrong("connect-lies", "a connect is answered as completed and is not", CDIM, _lies("connect")),
    Wrong("disconnect-lies", "a disconnect is answered as completed and is not", CDIM, _lies("disconnect")),
    Wrong("connect-denies", "a connect is said to have failed and is done", CDIM, _denies("connect")),
    Wrong("disconnect-denies", "a disconnect is said to have failed and is done", CDIM, _denies("disconnect")),
    Wrong("moves-connected", "a connect moves what is connected", CDIM, moved(_moves_connected)),
)  # fmt: skip

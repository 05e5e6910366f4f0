"""Wrongs of a Redfish service: its resources, its protocol, its tasks and its sessions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mews.emulator.dialects.wire import TEXT, Request, Response, as_json
from mews.emulator.wrongs.parts import Make, headers, instead, kind_of, looks, reads, replies, resources
from mews.emulator.wrongs.tables import REDFISH as REDFISH_WORDS
from mews.emulator.wrongs.tables import redfish_error, with_json
from mews.emulator.wrongs.wrong import TARGET, Ask, Handler, Reply, Stage, Wrong, on_target

REDFISH = ("redfish",)
ROOT = "/redfish/v1"
LINK = "@odata.id"


def _links(change: Callable[[str], str]) -> Make:
    """Return every link of every resource."""

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                if name == LINK and isinstance(each, str):
                    value[name] = change(each)
                else:
                    walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    def changed(reply: Response) -> Response:
        if reply.status != 200 or not reply.body.startswith(b"{"):
            return reply
        whole = json.loads(reply.body)
        walk(whole)
        return with_json(reply, whole)

    return replies(reads, changed)


def _absolute(link: str) -> str:
    return f"http://chassis.example{link}" if "/Endpoints/" in link else link


def _slashed(link: str) -> str:
    return f"{link}/" if "/Endpoints/" in link else link


def _slashless(stage: Stage) -> Handler:
    """What is asked for with a slash at its end is the same without it."""
    inner = _links(_slashed)(stage)

    def handler(request: Request, ask: Ask) -> Reply:
        target = request.headers.get(TARGET, request.path)
        path, mark, query = target.partition("?")
        bare = path.rstrip("/") if path.rstrip("/") != ROOT else path
        plain = on_target(request, f"{bare}{mark}{query}") if bare != path else request
        return inner(replace(plain, body=request.body.replace(b'/"}', b'"}')), ask)

    return handler


def _cased(reply: Response) -> Response:
    """A resource of an endpoint names itself in another case than its links do."""
    if reply.status != 200 or b'"#Endpoint.' not in reply.body:
        return reply
    whole = json.loads(reply.body)
    if kind_of(whole) == "Endpoint" and isinstance(whole.get(LINK), str):
        whole[LINK] = whole[LINK].replace("/Fabrics/", "/fabrics/")
    return with_json(reply, whole)


def _counted(value: dict[str, Any]) -> None:
    if isinstance(value.get("Members@odata.count"), int):
        value["Members@odata.count"] += 1


def _put(name: str, convert: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def change(value: dict[str, Any]) -> None:
        if name in value:
            value[name] = convert(value[name])

    return change


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda value: value.pop(name, None)


def _numbered(value: dict[str, Any]) -> None:
    for each in value.get("Identifiers") or ():
        each["DurableName"] = 7


def _unnamed(value: dict[str, Any]) -> None:
    for each in value.get("Identifiers") or ():
        each.pop("DurableName", None)


def _reversed(value: dict[str, Any]) -> None:
    links = value.get("Links")
    if isinstance(links, dict) and isinstance(links.get("Endpoints"), list):
        links["Endpoints"] = [*links["Endpoints"][1:], *links["Endpoints"][:1]]


def _stripped(*names: str) -> Make:
    """The chassis does not see these request headers."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            kept = {name: value for name, value in request.headers.items() if name not in names}
            return ask(replace(request, headers=kept))

        return handler

    return make


def _errors(change: Callable[[Response], Response]) -> Make:
    """Errors to those who are let in."""
    return replies(lambda request: True, lambda reply: change(reply) if reply.status in (400, 404) else reply)


def _no_queries(names: tuple[str, ...], *, keep: bool) -> Make:
    """Only these query parameters are seen, or all but these."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            path, _, query = request.headers.get(TARGET, request.path).partition("?")
            parts = [part for part in query.split("&") if part]
            kept = [part for part in parts if (part.partition("=")[0] in names) == keep]
            return (
                ask(on_target(request, "?".join(filter(None, (path, "&".join(kept))))))
                if parts != kept
                else ask(request)
            )

        return handler

    return make


def _open_to_all(stage: Stage) -> Handler:
    """Who shows no token is who showed the last one."""
    token: list[str] = []

    def handler(request: Request, ask: Ask) -> Reply:
        shown = request.headers.get("x-auth-token")
        if shown:
            token[:] = [shown]
        elif token and "authorization" not in request.headers:
            return ask(replace(request, headers={**request.headers, "x-auth-token": token[0]}))
        return ask(request)

    return handler


def _closed_root(request: Request) -> bool:
    return request.path.rstrip("/") == f"{ROOT}/$metadata" and "x-auth-token" not in request.headers


def _new_tag(stage: Stage) -> Handler:
    """The ETag is another with each reply."""
    count = [0]

    def handler(request: Request, ask: Ask) -> Reply:
        bare = {name: value for name, value in request.headers.items() if name != "if-none-match"}
        reply = ask(replace(request, headers=bare))
        if not isinstance(reply, Response) or reply.status != 200 or not reply.body.startswith(b"{"):
            return reply
        value = json.loads(reply.body)
        if "@odata.etag" not in value:
            return reply
        with stage.lock:
            count[0] += 1
        value["@odata.etag"] = tag = f'W/"{count[0]}"'
        kept = {name: each for name, each in reply.headers.items() if name.lower() != "etag"}
        return Response(200, {**kept, "ETag": tag}, as_json(value))

    return handler


def _same_page(stage: Stage) -> Handler:
    """$skip skips nothing."""

    def handler(request: Request, ask: Ask) -> Reply:
        if "$skip" not in request.query or not request.query["$skip"].isdecimal():
            return ask(request)
        path, _, query = request.headers.get(TARGET, request.path).partition("?")
        kept = [part for part in query.split("&") if not part.startswith(("$skip", "%24skip"))]
        return ask(on_target(request, "?".join(filter(None, (path, "&".join(kept))))))

    return handler


def _moving_pages(stage: Stage) -> Handler:
    """Pages of endpoints have those of devices that were attached last."""
    held: set[str] = set()

    def handler(request: Request, ask: Ask) -> Reply:
        move = REDFISH_WORDS.move(request)
        reply = ask(request)
        if not isinstance(reply, Response):
            return reply
        if move is not None and REDFISH_WORDS.is_done(reply):
            (held.discard if move.port is None else held.add)(move.device)
        paged = request.method == "GET" and request.path.endswith("/Endpoints") and "$top" in request.query
        if not paged or reply.status != 200 or "$expand" in request.query:
            return reply
        page, whole = json.loads(reply.body), ask(on_target(request, request.path))
        assert isinstance(whole, Response)
        members = json.loads(whole.body)["Members"]
        members.sort(key=lambda each: each[LINK].rpartition("/")[2] in held)
        first = int(request.query.get("$skip", "0"))
        return with_json(reply, {**page, "Members": members[first : first + int(request.query["$top"])]})

    return handler


def _patched(answer: Callable[[Request, Ask], Reply]) -> Make:
    """PATCH of a resource that is no zone."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            return answer(request, ask) if request.method == "PATCH" and "/Zones/" not in request.path else ask(request)

        return handler

    return make


def _lenient(request: Request, ask: Ask) -> Reply:
    reply = ask(request)
    bad = isinstance(reply, Response) and reply.status == 400 and b"MewsNoSuchProperty" in request.body
    return Response(200, {"OData-Version": "4.0"}, b"") if bad else reply


def _idle(request: Request, ask: Ask) -> Reply:
    reply = ask(request)
    bad = isinstance(reply, Response) and reply.status == 400 and b"NoOperation" in reply.body
    return Response(200, {"OData-Version": "4.0"}, b"") if bad else reply


def _trained(value: dict[str, Any]) -> None:
    if value.get("LinkStatus") == "Training":
        value["LinkStatus"] = "LinkUp"


def _untagged(stage: Stage) -> Handler:
    """The ETag parameters of a zone's actions are ignored."""

    def handler(request: Request, ask: Ask) -> Reply:
        if "/Actions/Zone." not in request.path:
            return ask(request)
        try:
            value = json.loads(request.body)
        except ValueError:
            return ask(request)
        if not isinstance(value, dict):
            return ask(request)
        kept = {name: each for name, each in value.items() if not name.endswith("ETag")}
        return ask(replace(request, body=as_json(kept)))

    return handler


OF_REDFISH: tuple[Wrong, ...] = (
    Wrong("absolute-ids", "links name a host", REDFISH, _links(_absolute)),
    Wrong("slashed-ids", "links end with a slash", REDFISH, _slashless),
    Wrong("cased-ids", "a resource names itself in another case than links do", REDFISH, replies(reads, _cased)),
    Wrong("count", "Members@odata.count is one more than there are", REDFISH, resources(_counted)),
    Wrong(
        "members-object",
        "Members of a collection is an object",
        REDFISH,
        resources(_put("Members", lambda found: {}), "SensorCollection"),
    ),
    Wrong("number-name", "a DurableName is a number", REDFISH, resources(_numbered, "Endpoint")),
    Wrong("no-durable-name", "an endpoint has no DurableName", REDFISH, resources(_unnamed, "Endpoint")),
    Wrong("links-text", "a zone's Links is a text", REDFISH, resources(_put("Links", lambda found: "none"), "Zone")),
    Wrong("host-last", "a zone names its host port last", REDFISH, resources(_reversed, "Zone")),
    Wrong("no-actions", "a zone has no actions", REDFISH, resources(_without("Actions"), "Zone")),
    Wrong("no-link-status", "a port has no LinkStatus", REDFISH, resources(_without("LinkStatus"), "Port")),
    Wrong(
        "other-vendor",
        "a GPU's VendorId is another",
        REDFISH,
        resources(_put("VendorId", lambda found: "0x1234"), "PCIeFunction"),
    ),
    Wrong(
        "no-gpu", "no processor is a GPU", REDFISH, resources(_put("ProcessorType", lambda found: "CPU"), "Processor")
    ),
    Wrong(
        "no-fabric-switch",
        "a switch cannot be read",
        REDFISH,
        instead(lambda request: "/Switches/" in request.path, redfish_error(500, "InternalError", "oops")),
    ),
    Wrong(
        "no-json",
        "a resource is not JSON",
        REDFISH,
        instead(
            lambda request: request.path.endswith("/NetworkProtocol"),
            Response(200, {"Content-Type": "application/json", "OData-Version": "4.0"}, b"<html>"),
        ),
    ),
    Wrong(
        "no-odata-version", "replies have no OData-Version", REDFISH, headers(lambda request: True, OData_Version=None)
    ),
    Wrong("any-odata-version", "any OData-Version of a request will do", REDFISH, _stripped("odata-version")),
    Wrong("no-allow", "replies have no Allow", REDFISH, headers(looks, Allow=None)),
    Wrong("no-schema-link", "replies have no Link to their schema", REDFISH, headers(reads, Link=None)),
    Wrong(
        "other-etag",
        "the ETag header is another than @odata.etag",
        REDFISH,
        replies(
            looks,
            lambda reply: (
                Response(reply.status, {**reply.headers, "ETag": '"0"'}, reply.body, reply.stream)
                if "ETag" in reply.headers
                else reply
            ),
        ),
    ),
    Wrong("new-etag", "the ETag changes while nothing does", REDFISH, _new_tag),
    Wrong("if-none-match", "If-None-Match is ignored", REDFISH, _stripped("if-none-match")),
    Wrong("if-match", "If-Match is ignored", REDFISH, _stripped("if-match")),
    Wrong("etag-parameters", "the ETag parameters of an action are ignored", REDFISH, _untagged),
    Wrong(
        "head-without-allow",
        "HEAD has other headers than GET",
        REDFISH,
        headers(lambda request: request.method == "HEAD", Allow=None),
    ),
    Wrong(
        "error-text",
        "errors are plain text",
        REDFISH,
        _errors(lambda reply: Response(reply.status, {**TEXT, "OData-Version": "4.0"}, b"no")),
    ),
    Wrong(
        "error-type",
        "errors are said to be HTML",
        REDFISH,
        _errors(lambda reply: Response(reply.status, {**reply.headers, "Content-Type": "text/html"}, reply.body)),
    ),
    Wrong("any-query", "an unknown $x is ignored", REDFISH, _no_queries(("$frobnicate",), keep=False)),
    Wrong("same-page", "$skip skips nothing", REDFISH, _same_page),
    Wrong("moving-pages", "pages are in another order once a device has moved", REDFISH, _moving_pages),
    Wrong("open", "nobody is asked for credentials once somebody has logged in", REDFISH, _open_to_all),
    Wrong(
        "closed-metadata",
        "$metadata asks for credentials",
        REDFISH,
        instead(_closed_root, Response(401, {"WWW-Authenticate": 'Basic realm="x"', "OData-Version": "4.0"}, b"")),
    ),
    Wrong(
        "no-challenge",
        "401 comes without WWW-Authenticate",
        REDFISH,
        headers(lambda request: True, WWW_Authenticate=None),
    ),
    Wrong("not-training", "a port does not train", REDFISH, resources(_trained, "Port"), lasting=True),
    Wrong("bad-patch", "PATCH of unknown properties is accepted", REDFISH, _patched(_lenient)),
    Wrong("idle-patch", "PATCH of nothing is accepted", REDFISH, _patched(_idle)),
    Wrong(
        "metadata-json",
        "$metadata is said to be JSON",
        REDFISH,
        headers(lambda request: request.path.endswith("$metadata"), Content_Type="application/json"),
    ),
    Wrong(
        "wrapped-root",
        "the service root is wrapped in an object",
        REDFISH,
        replies(
            lambda request: request.path.rstrip("/") == ROOT,
            lambda reply: (
                with_json(reply, {"data": json.loads(reply.body)}) if reply.status == 200 and reply.body else reply
            ),
        ),
    ),
)

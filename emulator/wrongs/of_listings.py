"""Wrongs of a plain listing's form and content, and of the words of its writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mews.emulator.dialects.wire import JSON, Request, Response
from mews.emulator.wrongs.over_http import PLAIN, TABLES
from mews.emulator.wrongs.parts import Make, detaches, each_device, listing, member, replies, table, writes
from mews.emulator.wrongs.tables import H3API, AskedMove, Records, with_json, words_of
from mews.emulator.wrongs.wrong import Ask, Handler, Reply, Stage, Wrong, dialect_of

H3, POOL = ("h3api",), ("resource-pool",)


def _number(text: str) -> Any:
    return int(text) if text.isdecimal() else text


def _renamed(records: Records) -> Records:
    def other(name: str) -> str:
        return name.title() if name == name.lower() else name.lower()

    return [{other(name): value for name, value in record.items()} for record in records]


def _bare_uuid(uuid: str) -> str:
    return uuid.removeprefix("GPU-").replace("-", "")


def _nowhere(records: Records) -> Records:
    """Return the last device that is on a port is on one that the listing lacks."""
    held = [record for record in records if record.get("Host_Port#")]
    if held:
        held[-1]["Host_Port#"] = "77"
    return records


def _decimal_gid(records: Records) -> Records:
    for record in records:
        if "Port#" in record:
            record["Port_GID"] = f"{int(record['Port#']) + 100}"
    return records


def _json_reply(change: Callable[[dict[str, Any]], Any]) -> Make:
    def changed(reply: Response) -> Response:
        try:
            value = json.loads(reply.body)
        except ValueError:
            return reply
        return with_json(reply, change(value)) if isinstance(value, dict) else reply

    return replies(writes, changed)


def _plain_failure(reply: Response) -> Response:
    return reply if H3API.is_done(reply) else Response(400, {"Content-Type": "text/plain"}, b"no")


def _unsupported(request: Request) -> Response:
    if dialect_of(request) == "h3api":
        return words_of(request).answered(request, done=False)
    return Response(415, {"Content-Type": "text/plain"}, b"Unsupported Media Type")


def _takes(kind: str) -> Make:
    """Writes of another Content-Type are refused."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            meant = writes(request) and request.method in ("POST", "DELETE")
            if not meant or request.headers.get("content-type", "").startswith(kind):
                return ask(request)
            return _unsupported(request)

        return handler

    return make


def _no_delete_body(stage: Stage) -> Handler:
    """The body of a DELETE is lost on its way."""

    def handler(request: Request, ask: Ask) -> Reply:
        bare = request.method == "DELETE" and writes(request)
        return ask(replace(request, body=b"") if bare else request)

    return handler


def _frees_all(stage: Stage) -> Handler:
    """A DELETE without a body takes the first device off its port."""

    def handler(request: Request, ask: Ask) -> Reply:
        if request.method != "DELETE" or not writes(request) or request.body:
            return ask(request)
        words = words_of(request)
        held = [device for device, port in table(request, ask).items() if port]
        return ask(words.asking(request, AskedMove(held[0], None))) if held else ask(request)

    return handler


def _unknown_is_done(stage: Stage) -> Handler:
    """Moves of devices that the chassis lacks are answered as done."""

    def handler(request: Request, ask: Ask) -> Reply:
        words = words_of(request)
        move = words.move(request)
        unknown = move is not None and move.device not in table(request, ask)
        return words.answered(request, done=True) if unknown else ask(request)

    return handler


def _status(old: int, new: int, method: str = "") -> Make:
    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            reply = ask(request)
            meant = isinstance(reply, Response) and reply.status == old and method in ("", request.method)
            return Response(new, reply.headers, reply.body) if meant and isinstance(reply, Response) else reply

        return handler

    return make


def _error_text(change: Callable[[Response], Response]) -> Make:
    def changed(reply: Response) -> Response:
        return change(reply) if reply.status in (400, 404) else reply

    return replies(writes, changed)


def _as_json_error(reply: Response) -> Response:
    return Response(reply.status, JSON, reply.body)


def _other_words(reply: Response) -> Response:
    return Response(reply.status, reply.headers, b"Bad Request" if reply.status == 400 else b"Not Found")


def _free_detach(stage: Stage) -> Handler:
    """A detach of a free device is refused."""

    def handler(request: Request, ask: Ask) -> Reply:
        move = words_of(request).move(request)
        free = detaches(request) and move is not None and table(request, ask).get(move.device) == ""
        return Response(400, {"Content-Type": "text/plain"}, b"Device is not attached") if free else ask(request)

    return handler


OF_LISTINGS: tuple[Wrong, ...] = (
    Wrong("number-port", "a device's port is a number", PLAIN, member("port", _number)),
    Wrong("number-device", "a device's name is a number", PLAIN, member("device", _number)),
    Wrong("null-uuid", "a device's UUID is null", PLAIN, member("uuid", lambda found: None)),
    Wrong("null-free", "a free device is on null", PLAIN, member("port", lambda found: found or None)),
    Wrong("dash-free", "a free device is on port '-'", H3, member("port", lambda found: found or "-")),
    Wrong(
        "one-uuid",
        "all devices have one UUID",
        PLAIN,
        member("uuid", lambda found: "GPU-16a0c321-0000-4000-8000-000000000001"),
    ),
    Wrong("bare-uuid", "a UUID is hexadecimal digits without its form", PLAIN, member("uuid", _bare_uuid)),
    Wrong(
        "no-uuid",
        "a record has no UUID",
        PLAIN,
        each_device(lambda record: record.pop("OB_GPU_GUID", record.pop("uuid", None))),
    ),
    Wrong("no-type", "a record has no dev_type", H3, each_device(lambda record: record.pop("dev_type", None))),
    Wrong("further-member", "a record has a member more", POOL, each_device(lambda record: record.update(slot="1"))),
    Wrong("twice", "a device is listed twice", TABLES, listing(lambda records: [*records, records[0]])),
    Wrong("wrapped", "the listing is wrapped in an object", PLAIN, listing(lambda records: {"resources": records})),
    Wrong("renamed", "the members of a record are in another case", PLAIN, listing(_renamed)),
    Wrong("unknown-place", "a device is on a port that the listing lacks", H3, listing(_nowhere)),
    Wrong("port-gid", "Port_GID is decimal", H3, listing(_decimal_gid)),
    Wrong("a-string-in-it", "an element of the listing is a string", PLAIN, listing(lambda records: [*records, "end"])),
    Wrong(
        "bare-boolean",
        "result is a boolean in no list",
        H3,
        _json_reply(lambda value: {**value, "result": value.get("result", [None])[0]}),
    ),
    Wrong(
        "upper-case-keys",
        "a reply to a write has upper-case keys",
        H3,
        _json_reply(lambda value: {**value, "Time": "1"}),
    ),
    Wrong(
        "no-remark",
        "a reply to a write has no remark",
        H3,
        _json_reply(lambda value: {k: v for k, v in value.items() if k != "remark"}),
    ),
    Wrong(
        "empty-replies",
        "writes are answered without a body",
        H3,
        replies(writes, lambda reply: Response(200, JSON, b"")),
    ),
    Wrong("plain-failures", "failures are plain text", H3, replies(writes, _plain_failure)),
    Wrong("json-only", "writes must be application/json", H3, _takes("application/json")),
    Wrong("text-only", "writes must be text/plain", PLAIN, _takes("text/plain")),
    Wrong("no-delete-body", "the body of a DELETE is lost", TABLES, _no_delete_body),
    Wrong("delete-without-body", "a DELETE without a body detaches a device", TABLES, _frees_all),
    Wrong("unknown-is-done", "moves of unknown devices are answered as done", TABLES, _unknown_is_done),
    Wrong("ok-for-204", "a move is 200 in place of 204", POOL, _status(204, 200)),
    Wrong("created-for-204", "an attach is 201 in place of 204", POOL, _status(204, 201, "POST")),
    Wrong("422-for-404", "an unknown device is 422 in place of 404", POOL, _status(404, 422)),
    Wrong("500-for-400", "a refusal is HTTP 500", POOL, _status(400, 500)),
    Wrong("any-verb", "a verb that there is not is 200", POOL, _status(405, 200)),
    Wrong("json-errors", "errors are said to be JSON", POOL, _error_text(_as_json_error)),
    Wrong("other-words", "errors are in other words", POOL, _error_text(_other_words)),
    Wrong("free-detach", "a detach of a free device is refused", POOL, _free_detach),
)

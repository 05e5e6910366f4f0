"""What is unusual and breaks no rule: a client must live with it, and a judge must not call it wrong."""

from __future__ import annotations

import json
from typing import Any

from mews.emulator.dialects.wire import Request, Response
from mews.emulator.wrongs.over_http import PLAIN, TABLES, WIRED
from mews.emulator.wrongs.parts import (
    Make,
    each_device,
    headers,
    instead,
    later,
    listing,
    lists,
    member,
    reads,
    replies,
    resources,
    sometimes,
)
from mews.emulator.wrongs.wrong import Handler, Stage, Wrong

CHUNKED = "x-mews-chunked"
"""Reply header by which the front is told to send chunks; it goes no further."""


def _rewritten(**options: Any) -> Make:
    def changed(reply: Response) -> Response:
        try:
            value = json.loads(reply.body)
        except ValueError:
            return reply
        return Response(reply.status, reply.headers, json.dumps(value, **options).encode(), reply.stream)

    return replies(reads, changed)


def _charset(reply: Response) -> Response:
    kind = next((value for name, value in reply.headers.items() if name.lower() == "content-type"), "")
    if "json" not in kind or "charset" in kind:
        return reply
    kept = {name: value for name, value in reply.headers.items() if name.lower() != "content-type"}
    return Response(reply.status, {**kept, "content-type": f"{kind}; charset=utf-8"}, reply.body, reply.stream)


def _escaped(reply: Response) -> Response:
    try:
        json.loads(reply.body)
    except ValueError:
        return reply
    return Response(reply.status, reply.headers, reply.body.replace(b"GPU", b"\\u0047PU"), reply.stream)


def _oem(stage: Stage) -> Handler:
    """What was selected is not added to."""
    more = resources(lambda value: value.setdefault("Oem", {"Acme": {"Colour": "blue"}}))(stage)
    return lambda request, ask: ask(request) if "$select" in request.query else more(request, ask)


def _any(request: Request) -> bool:
    return True


def _upper(uuid: str) -> str:
    return f"{uuid[:4]}{uuid[4:].upper()}"


def _busy(status: int) -> Make:
    return sometimes(instead(lists, Response(status, {"Content-Type": "text/plain", "Retry-After": "1"}, b"")), lists)


ODD: tuple[Wrong, ...] = (
    Wrong(
        "odd-order",
        "records and members are in another order",
        TABLES,
        listing(lambda records: [dict(reversed(each.items())) for each in reversed(records)]),
        legal=True,
    ),
    Wrong(
        "odd-member",
        "records have members more",
        ("h3api",),
        each_device(lambda record: record.update(Vendor="x")),
        legal=True,
    ),
    Wrong(
        "odd-oem",
        "resources have Oem members",
        ("redfish",),
        _oem,
        legal=True,
    ),
    Wrong("odd-space", "JSON is indented", WIRED, _rewritten(indent=4), legal=True),
    Wrong("odd-escapes", "JSON has escapes", WIRED, replies(reads, _escaped), legal=True),
    Wrong("odd-charset", "Content-Type names a charset, in lower case", WIRED, replies(_any, _charset), legal=True),
    Wrong("odd-chunks", "bodies come in chunks", WIRED, headers(reads, X_Mews_Chunked="7"), legal=True),
    Wrong("odd-close", "each reply ends its connection", WIRED, headers(_any, Connection="close"), legal=True),
    Wrong("odd-busy", "a read now and then is 429 with Retry-After", WIRED, _busy(429), legal=True),
    Wrong("odd-unavailable", "a read now and then is 503 with Retry-After", WIRED, _busy(503), legal=True),
    Wrong("odd-slow", "every reply takes a tenth of a second", TABLES, later(_any, 0.1), legal=True),
    Wrong("odd-upper-uuid", "a UUID is in upper case", PLAIN, member("uuid", _upper), legal=True),
    Wrong("odd-server", "the Server header is another", WIRED, headers(_any, Server="acme/1.0 (chassis)"), legal=True),
)

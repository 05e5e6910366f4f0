"""Wrongs of the wire: statuses, connections, codings and times, in any dialect."""

from __future__ import annotations

import gzip

from mews.emulator.dialects.wire import TEXT, Dropped, Response
from mews.emulator.wrongs.parts import (
    attaches,
    headers,
    instead,
    later,
    lists,
    moves,
    reads,
    replies,
    sometimes,
    text,
    writes,
)
from mews.emulator.wrongs.wrong import Cut, Wrong

ALL = ("h3api", "resource-pool", "redfish")
PLAIN = ("h3api", "resource-pool")
EACH = (*ALL, "fm")
TABLES = (*PLAIN, "fm")
WIRED = (*EACH, "cdim")
PAGE = b"<html><body>Please log in</body></html>"
SLOW_S = 70.0
"""Longer than an attach on any measured box by far (contract chassis.md 2: 18.20 s)."""


def _status(status: int, text: str = "") -> Response:
    return Response(status, TEXT, text.encode())


def _zipped(reply: Response) -> Response:
    content = {**reply.headers, "Content-Encoding": "gzip"}
    return Response(reply.status, content, gzip.compress(reply.body, mtime=0)) if reply.body else reply


def _cut(reply: Response) -> Cut:
    return Cut(reply, len(reply.body) // 2)


def _half(reply: Response) -> Response:
    return Response(reply.status, reply.headers, reply.body[: len(reply.body) // 2])


OVER_HTTP: tuple[Wrong, ...] = (
    Wrong("asks-credentials", "reading asks for credentials", PLAIN, instead(lists, _status(401))),
    Wrong("forbids-reading", "reading is forbidden", PLAIN, instead(lists, _status(403))),
    Wrong("asks-credentials-to-write", "moves ask for credentials", PLAIN, instead(writes, _status(401))),
    Wrong("reads-fail", "the listing is HTTP 500", WIRED, instead(lists, _status(500, "oops"))),
    Wrong(
        "reads-fail-sometimes",
        "a listing now and then is HTTP 500",
        WIRED,
        sometimes(instead(lists, _status(500)), lists),
    ),
    Wrong("moves-fail", "every move is HTTP 500 and none is carried out", WIRED, instead(moves, _status(500, "oops"))),
    Wrong(
        "reads-drop-sometimes",
        "a connection now and then is dropped",
        WIRED,
        sometimes(instead(lists, Dropped()), lists),
    ),
    Wrong("moves-drop", "every move's connection is dropped and none is carried out", WIRED, instead(moves, Dropped())),
    Wrong(
        "moves-drop-after",
        "moves are carried out and their connections dropped",
        WIRED,
        replies(moves, lambda reply: Dropped()),
    ),
    Wrong("cut", "a listing ends before its Content-Length", WIRED, replies(lists, _cut)),
    Wrong(
        "cut-sometimes",
        "a listing now and then ends before its Content-Length",
        WIRED,
        sometimes(replies(lists, _cut), lists),
    ),
    Wrong(
        "half-sometimes", "a listing now and then is half a JSON text", WIRED, sometimes(replies(lists, _half), lists)
    ),
    Wrong("gzip", "the listing is compressed unasked", WIRED, replies(lists, _zipped)),
    Wrong(
        "gzip-sometimes",
        "a listing now and then is compressed unasked",
        WIRED,
        sometimes(replies(lists, _zipped), lists),
    ),
    Wrong("byte-order-mark", "the listing begins with a byte order mark", WIRED, text(lambda found: f"\ufeff{found}")),
    Wrong(
        "member-twice",
        "an object names a member twice",
        WIRED,
        text(lambda found: found.replace("{", '{"Id": "1", "Id": "2", ', 1)),
    ),
    Wrong("not-a-number", "the listing has NaN", WIRED, text(lambda found: found.replace("{", '{"Slot": NaN, ', 1))),
    Wrong("more-behind", "the listing has more text behind its JSON", WIRED, text(lambda found: f"{found}\nOK")),
    Wrong(
        "a-page",
        "the listing is an HTML page now and then",
        WIRED,
        sometimes(instead(lists, Response(200, {"Content-Type": "text/html"}, PAGE)), lists),
    ),
    Wrong(
        "accepted",
        "reading is 202 in place of 200",
        PLAIN,
        replies(lists, lambda reply: Response(202, reply.headers, reply.body)),
    ),
    Wrong(
        "busy", "a read now and then is 429 without Retry-After", WIRED, sometimes(instead(lists, _status(429)), lists)
    ),
    Wrong(
        "unavailable",
        "a read now and then is 503 without Retry-After",
        WIRED,
        sometimes(instead(lists, _status(503)), lists),
    ),
    Wrong(
        "clock-of-1970", "the Date header is that of 1970", WIRED, headers(reads, Date="Thu, 01 Jan 1970 00:00:10 GMT")
    ),
    Wrong("no-date", "the Date header is no date", WIRED, headers(reads, Date="today")),
    Wrong("slow-attach", "an attach takes longer than on any measured box", ("h3api",), later(attaches, SLOW_S)),
)

"""GETs in plain words, read and answered in one go: without a body, an escape, a query or a header that changes how the
rest is read. What is not of that form is left to the server's long way, which knows all forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus

from msgspec import Struct

from mews.emulator.clock import unix_s
from mews.emulator.dialects.wire import Dropped, Request, Response

_HEAD = re.compile(rb"GET (/[A-Za-z0-9._~$@:+=,*'()/-]*) HTTP/1\.1\r\n((?:[A-Za-z0-9-]+:[\x20-\x7e]*\r\n)+)\r\n")
_LONGER = frozenset({"content-length", "content-encoding", "expect", "te", "trailer", "transfer-encoding", "upgrade"})
"""Headers that change how a request is read."""
_STATUS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_OF_BODIES = frozenset({"allow", "content-encoding", "content-length", "content-type"})
"""Left out where nothing is sent because nothing changed."""


class QuickRequest(Struct, frozen=True):
    """A request, how many bytes it was, and whether its sender wants no further one."""

    request: Request
    length: int
    close: bool


class QuickReply(Struct, frozen=True):
    """What goes over the wire, None for nothing at all; ``close``: the connection ends then."""

    wire: bytes | None
    close: bool


SERVER_NAME = "mews"

QuickAnswer = Callable[[Request, bool], QuickReply | None]
"""The answer to a request, whose sender wants no further one (True); None leaves it to the long way."""


def read_quickly(head: bytes, *, secure: bool, address: str) -> QuickRequest | None:
    """Return the request that these bytes begin with, if it is one in plain words and all there."""
    match = _HEAD.match(head)
    if match is None or b"//" in match[1]:
        return None
    lines = match[2].decode("ascii").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines[:-1]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    connection = headers.get("connection", "keep-alive").lower()
    if (
        "host" not in headers
        or len(headers) != len(lines) - 1
        or connection not in ("keep-alive", "close")
        or not _LONGER.isdisjoint(headers)
    ):
        return None
    request = Request("GET", match[1].decode("ascii"), {}, headers, b"", secure=secure, address=address)
    return QuickRequest(request, match.end(), connection == "close")


class _Clock:
    """The ``Date`` header, made anew each second."""

    def __init__(self) -> None:
        self._second = -1
        self._line = b""

    def line(self) -> bytes:
        """Return the header."""
        second = int(unix_s())
        if second != self._second:
            self._line = f"Date: {formatdate(second, usegmt=True)}\r\nServer: {SERVER_NAME}\r\n".encode()
            self._second = second
        return self._line


_CLOCK = _Clock()


def quick_answer(
    answer: Callable[[Request], Response | Dropped], admit: Callable[[Request], Response | None]
) -> QuickAnswer:
    """Return the short way to an answer: who is not let in is refused, and the connection ends."""

    def reply(request: Request, close: bool) -> QuickReply | None:
        refusal = admit(request)
        if refusal is not None:
            return QuickReply(written(refusal, close=True), close=True)
        found = answer(request)
        if isinstance(found, Dropped):
            return QuickReply(None, close=True)
        if found.stream is not None:
            found.stream.close()  # the long way asks again, and keeps it
            return None
        return QuickReply(written(found, close=close), close)

    return reply


def written(reply: Response, *, close: bool) -> bytes:
    """Return a reply as it goes over the wire, with the headers that the long way gives it."""
    shown = dict(reply.headers)
    if reply.status == HTTPStatus.NOT_MODIFIED:
        shown = {name: value for name, value in shown.items() if name.lower() not in _OF_BODIES}
    elif reply.status != HTTPStatus.NO_CONTENT:
        shown["Content-Length"] = str(len(reply.body))
    if close:
        shown["Connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in shown.items()).encode("latin-1")
    return b"".join((_STATUS[reply.status], lines, _CLOCK.line(), b"\r\n", reply.body))

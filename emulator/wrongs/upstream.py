"""The chassis behind a proxy: asks it over HTTP what a client asked, and changes nothing."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from msgspec import Struct

from mews.emulator.dialects.wire import Dropped, Request, Response, Stream
from mews.emulator.wrongs.wrong import TARGET, Reply
from mews.listening.limits import HOP_BY_HOP

MOST_BYTES = 64 << 20


class Upstream(Struct, frozen=True):
    """``scheme://host:port`` of a chassis; ``context`` where it speaks TLS."""

    url: str
    context: ssl.SSLContext | None = None
    patience_s: float = 60.0

    def ask(self, request: Request) -> Reply:
        """Return its answer; a connection that fails is one that is dropped."""
        parts = urlsplit(self.url)
        target = request.headers.get(TARGET) or quote(request.path)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = parts.hostname or ""
        wire: http.client.HTTPConnection = (
            http.client.HTTPConnection(host, port, timeout=self.patience_s)
            if self.context is None
            else http.client.HTTPSConnection(host, port, timeout=self.patience_s, context=self.context)
        )
        kept = {
            name: value
            for name, value in request.headers.items()
            if name not in HOP_BY_HOP and name not in (TARGET, "host", "content-length")
        }
        try:
            wire.request(request.method, parts.path.rstrip("/") + target, request.body or None, kept)
            answer = wire.getresponse()
            found = {name: value for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP}
            if found.get("Content-Type", "").startswith("text/event-stream"):
                return Response(answer.status, found, b"", _stream(wire, answer))
            body = answer.read(MOST_BYTES)
        except (OSError, http.client.HTTPException):
            wire.close()
            return Dropped()
        wire.close()
        return Response(answer.status, self._here(found), body)

    def _here(self, found: dict[str, str]) -> dict[str, str]:
        """A Location at the chassis itself is one behind the proxy."""
        return {
            name: value.removeprefix(self.url) or "/" if name.lower() == "location" else value
            for name, value in found.items()
        }


def _stream(wire: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> Stream:
    parts = iter(_parts(answer))
    return Stream(lambda: next(parts, None), wire.close)


def _parts(answer: http.client.HTTPResponse) -> Iterator[list[bytes]]:
    try:
        while part := answer.read1(1 << 16):
            yield [part]
    except (OSError, http.client.HTTPException):
        return

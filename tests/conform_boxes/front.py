"""A reverse proxy in front of a box, with manners that such proxies have and that break no rule (RFC 9110, 7.6;
RFC 9112, 7.1 and 9.6)."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from mews.emulator.tls import Identity
from tests.harness.conformance.wire import running

MANNERS = ("prefix", "tls", "via", "lower-case", "close", "http-1.0", "chunks", "late")
"""``prefix``: below a path of its own; ``tls``: it ends TLS; ``via``: headers more; ``lower-case``: names of headers;
``close``, ``http-1.0``: how connections end; ``chunks``: bodies in chunks; ``late``: each reply a little later."""
PREFIX = "/bmc/7"
LATE_S = 0.05
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection"}
)


class Behind(Struct, frozen=True):
    """What the proxy passes requests on to; ``ca`` where that speaks TLS."""

    url: str
    ca: Path | None = None

    def connection(self) -> http.client.HTTPConnection:
        """A new one."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=60.0)
        context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        return http.client.HTTPSConnection(host, port, timeout=60.0, context=context)


class _Front(BaseHTTPRequestHandler):
    behind: Behind
    manners: frozenset[str]
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def do(self) -> None:
        if "late" in self.manners:
            threading.Event().wait(LATE_S)
        if "prefix" in self.manners and not self.path.startswith(PREFIX):
            self.send_error(404)
            return
        path = self.path.removeprefix(PREFIX) if "prefix" in self.manners else self.path
        body = self.rfile.read(int(self.headers.get("content-length") or 0)) or None
        kept = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        kept |= {"X-Forwarded-Proto": "https"} if "tls" in self.manners else {}
        connection = self.behind.connection()
        try:
            connection.request(self.command, path or "/", body, kept)
            answer = connection.getresponse()
            self._pass_on(answer)
        except (OSError, http.client.HTTPException):
            # Nothing can be said of what was not answered, or not in whole: as a proxy that streams, it hangs up.
            self.close_connection = True
        finally:
            connection.close()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do

    def _pass_on(self, answer: http.client.HTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        bare = self.command == "HEAD" or answer.status in (204, 304)
        streams = answer.headers.get("content-type", "").startswith("text/event-stream")
        chunks = "chunks" in self.manners and not bare and not streams and self.protocol_version == "HTTP/1.1"
        for name, value in answer.getheaders():
            if name.lower() in HOP_BY_HOP or (chunks and name.lower() == "content-length"):
                continue
            self.send_header(name.lower() if "lower-case" in self.manners else name, value)
        if "via" in self.manners:
            self.send_header("Via", "1.1 rack-7 (nginx)")
            self.send_header("X-Cache", "MISS")
        if chunks:
            self.send_header("Transfer-Encoding", "chunked")
        if "close" in self.manners or streams or (not bare and not chunks and "content-length" not in answer.headers):
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.flush()
        while not bare and (part := answer.read1(1 << 16)):
            self.wfile.write(b"%X\r\n%b\r\n" % (len(part), part) if chunks else part)
            self.wfile.flush()
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        if chunks:
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()


@contextmanager
def in_front(behind: Behind, manners: Sequence[str], identity: Identity) -> Iterator[str]:
    """The URL of a reverse proxy; it ends TLS by ``identity`` where it has that manner, or the box has TLS itself."""
    secure = "tls" in manners or behind.url.startswith("https:")
    context = None
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity.certificate, identity.key)
    version = "HTTP/1.0" if "http-1.0" in manners else "HTTP/1.1"
    members = {"behind": behind, "manners": frozenset(manners), "protocol_version": version}
    with running(type("OneFront", (_Front,), members), context) as port:
        yield f"{'https' if secure else 'http'}://127.0.0.1:{port}{PREFIX if 'prefix' in manners else ''}"

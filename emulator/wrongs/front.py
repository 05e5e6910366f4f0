"""The port on which a chassis behind wrongs is spoken to: small, and able to break what a good server cannot."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

from mews.emulator.dialects.wire import MAX_BODY, Dropped, Request, Response, split_target
from mews.emulator.tls import Identity, install
from mews.emulator.wrongs.odd import CHUNKED
from mews.emulator.wrongs.wrong import TARGET, Ask, Cut
from mews.listening.threads import BoundedThreads

SILENT_S = 60.0
"""A connection without a request for so long ends."""
OWN = frozenset({"content-length", "transfer-encoding", CHUNKED})
"""Reply headers that this server writes itself."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SILENT_S
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Server

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def version_string(self) -> str:
        """Return the name of the chassis' own server."""
        return "mews"

    def do(self) -> None:
        """Answer one request with any verb."""
        length = self.headers.get("content-length") or "0"
        if not (length.isascii() and length.isdecimal()):
            self.send_error(400, "Content-Length is not a number")
            return
        too_large = int(length) > MAX_BODY
        self.close_connection = self.close_connection or too_large
        body = b"" if too_large else self.rfile.read(int(length))
        path, query = split_target(self.path)
        named = {name.lower(): value for name, value in self.headers.items()}
        secure = isinstance(self.connection, ssl.SSLSocket)
        head = {**named, TARGET: self.path}
        request = Request(
            self.command, path, query, head, body, too_large, secure=secure, address=self.client_address[0]
        )
        refusal = self.server.admit(request)
        reply = refusal if refusal is not None else self.server.ask(request)
        if isinstance(reply, Dropped):
            self.close_connection = True
        elif isinstance(reply, Cut):
            self.close_connection = True
            self._send(reply.response, reply.sent)
        else:
            self._send(reply, None)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do

    def finish(self) -> None:
        """Close both ends of the connection, even if the client left before its answer: flushing fails then."""
        try:
            super().finish()
        except OSError:
            self.close_connection = True
        finally:
            self.rfile.close()

    def _send(self, reply: Response, sent: int | None) -> None:
        lower = {name.lower(): value for name, value in reply.headers.items()}
        self.send_response_only(reply.status)
        if "server" not in lower:
            self.send_header("Server", self.version_string())
        if "date" not in lower:
            self.send_header("Date", self.date_time_string())
        for name, value in reply.headers.items():
            if name.lower() not in OWN:
                self.send_header(name, value)
        bare = reply.status in (204, 304) or self.command == "HEAD"
        if lower.get("connection", "").lower() == "close" or reply.stream is not None:
            self.close_connection = True
        if reply.stream is None and CHUNKED in lower and not bare:
            self.send_header("Transfer-Encoding", "chunked")
        elif reply.stream is None and reply.status not in (204, 304):
            length = lower.get("content-length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(reply.body)))
        self.end_headers()
        if reply.stream is not None:
            self._stream(reply)
        elif not bare:
            content = reply.body if sent is None else reply.body[:sent]
            self.wfile.write(_chunks(content, int(lower[CHUNKED])) if CHUNKED in lower else content)

    def _stream(self, reply: Response) -> None:
        assert reply.stream is not None
        try:
            self.wfile.write(b": mews\n\n")
            self.wfile.flush()
            while (taken := reply.stream.take()) is not None:
                self.wfile.write(b"".join(taken) or b": still here\n\n")
                self.wfile.flush()
        except OSError:
            return
        finally:
            reply.stream.close()


def _chunks(content: bytes, size: int) -> bytes:
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    return b"".join(b"%X\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class _Server(BoundedThreads, HTTPServer):
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        ask: Ask,
        admit: Callable[[Request], Response | None],
        context: ssl.SSLContext | None,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.ask, self.admit, self._context = ask, admit, context
        super().__init__((host, port), _Handler)

    def get_request(self) -> tuple[socket.socket, object]:
        """The handshake is the business of the thread that reads the request."""
        wire, address = super().get_request()
        if self._context is None:
            return wire, address
        wire.settimeout(SILENT_S)
        return self._context.wrap_socket(wire, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone, or that trusts nobody, is no error of ours."""


class WrongServer:
    """One port; ``ask`` answers its requests, ``admit`` sees each before. ``start``, ``stop``, as other servers have.

    Raises OSError for a port that cannot be had.
    """

    def __init__(
        self,
        ask: Ask,
        host: str,
        port: int,
        *,
        tls: Identity | None = None,
        admit: Callable[[Request], Response | None] = lambda head: None,
    ) -> None:
        self._context = None
        if tls is not None:
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._context.load_cert_chain(tls.certificate, tls.key)
        try:
            self._server = _Server(host, port, ask, admit, self._context)
        except OSError as error:
            raise OSError(f"{host}:{port}: cannot listen there: {error.strerror or error}") from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name=f"wrong {self.port}", daemon=True
        )

    def install(self, certificate: str) -> str:
        """Use another certificate from now on.

        Raises ValueError where it cannot be used or TLS is not spoken.
        """
        if self._context is None:
            raise ValueError("the server does not speak TLS")
        return install(self._context, certificate)

    def start(self) -> None:
        """Answer requests on its own threads."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

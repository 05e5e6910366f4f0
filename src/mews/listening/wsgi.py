"""A WSGI application on threads: a component's metrics, for Prometheus. A thread for each connection, of which there
are so many at the most; a request that has not come in time gives its thread back."""

from __future__ import annotations

import contextlib
import errno
import io
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from mews.callers import Callers
from mews.listening.limits import BODY_BYTES, HEAD_S, LINGER_S
from mews.listening.reading import bears
from mews.listening.threads import BoundedThreads

_BACKLOG = 128
"""Connections that may wait to be accepted: with socketserver's five, twenty at once wait a second for each other."""

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class ThreadedHttp:
    """Serves until stopped; ``token`` "" asks for none.

    Raises OSError where it cannot listen there.
    """

    def __init__(
        self, app: Wsgi, host: str, port: int, *, callers: Callers, tls: ssl.SSLContext | None = None, token: str = ""
    ) -> None:
        self._app = app
        self._callers = callers
        self._token = token
        self._server = make_server(host, port, self._answer, _Server, _Handler)
        self._server.context = tls
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"http {self.port}", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port, also where it was chosen by the system."""
        return int(self._server.server_port)

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        refusal = self._refusal(environ)
        if refusal is None:
            return self._app(environ, start)
        status, text = refusal
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode("utf-8", "backslashreplace")]

    def _refusal(self, environ: Mapping[str, Any]) -> tuple[str, str] | None:
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        text = self._callers.refusal(headers, secure=self._server.context is not None)
        if text is not None:
            return "403 Forbidden", text
        if self._token and not bears(headers, self._token):
            return "401 Unauthorized", "Authorization: Bearer <token> is required"
        return None


class _Server(BoundedThreads, WSGIServer):
    context: ssl.SSLContext | None = None
    request_queue_size = _BACKLOG

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer, on the connection's own thread: a client that is slow with its handshake deafens nobody."""
        request.settimeout(HEAD_S)
        if self.context is None:
            self._answer_in_time(request, client_address)
            return
        with self.context.wrap_socket(request, server_side=True, do_handshake_on_connect=False) as connection:
            self._answer_in_time(connection, client_address)

    def _answer_in_time(self, connection: Any, client_address: Any) -> None:
        """Who sends bit by bit is not listened to for longer than who sends nothing."""
        ends = threading.Timer(HEAD_S, _stop_listening, (connection,))
        ends.daemon = True
        ends.start()
        try:
            if self.context is not None:
                connection.do_handshake()
            super().finish_request(connection, client_address)
            _linger(connection)
        finally:
            ends.cancel()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or speaks something else, is nothing to log."""


def _stop_listening(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has just closed
        socket.socket.shutdown(connection, socket.SHUT_RD)


def _linger(connection: socket.socket) -> None:
    """Read what is left of a body that nobody wanted: closing before would reset the connection, and its client might
    never see the answer (RFC 9112 section 9.6)."""
    with contextlib.suppress(OSError):  # it has gone, or takes too long
        socket.socket.shutdown(connection, socket.SHUT_WR)
        socket.socket.settimeout(connection, LINGER_S)
        left = BODY_BYTES
        while left > 0 and (data := socket.socket.recv(connection, 1 << 16)):
            left -= len(data)


class _Writer(io.BufferedIOBase):
    """What is sent to a client. One that has gone, or takes nothing, is no failure of the server's, under TLS
    either."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def writable(self) -> bool:
        """It is for nothing else."""
        return True

    def write(self, data: Any) -> int:
        """Return all of it. Raises BrokenPipeError."""
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise BrokenPipeError(errno.EPIPE, str(error)) from error
        return len(data)


class _Handler(WSGIRequestHandler):
    default_request_version = "HTTP/1.0"
    """Not 0.9, which has no status line to refuse anything by."""

    def setup(self) -> None:
        """Begin a connection."""
        super().setup()
        self.wfile = _Writer(self.connection)

    def parse_request(self) -> bool:
        """Return whether there is one to answer."""
        if not super().parse_request():
            return False
        if self.request_version == "HTTP/0.9":
            self.request_version = self.default_request_version
            self.send_error(505)
            return False
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

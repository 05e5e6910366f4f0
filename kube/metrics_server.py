"""Serves /metrics of a component for Prometheus. Not for virtual runs: imports prometheus_client.

In plain HTTP to everybody who reaches the port, unless a certificate and a token are named; never to web pages, nor by
names that are not the server's (``mews.callers``).
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import io
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import choose_encoder

from mews.callers import callers
from mews.kube.metrics_options import MetricsOptions

_PATIENCE_S = 10.0
"""For a request to come, its handshake included."""
_MOST = 1000
"""Connections at once."""


class MetricsServer:
    """Serves a registry on threads of its own until stopped.

    Raises OSError where it cannot listen there, or the certificate cannot be used.
    """

    def __init__(self, registry: CollectorRegistry, options: MetricsOptions) -> None:
        context = None
        if options.certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(options.certificate, options.key)
        self._app = make_wsgi_app(registry)
        self._options = options
        self._callers = callers(options.host, options.allow_hosts)
        self._server = make_server(options.host, options.port, self._answer, _Server, _Handler)
        self._server.context = context
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
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
            if not _is_readable(environ.get("HTTP_ACCEPT", "")):
                environ = {**environ, "HTTP_ACCEPT": ""}
            answer: Iterable[bytes] = self._app(environ, start)
            return answer
        status, text = refusal
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode()]

    def _refusal(self, environ: Mapping[str, Any]) -> tuple[str, str] | None:
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        text = self._callers.refusal(headers, secure=self._server.context is not None)
        if text is not None:
            return "403 Forbidden", text
        wanted = f"Bearer {self._options.token}".encode()
        if self._options.token and not hmac.compare_digest(headers.get("authorization", "").encode(), wanted):
            return "401 Unauthorized", "Authorization: Bearer <token> is required"
        return None


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    context: ssl.SSLContext | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._free = threading.BoundedSemaphore(_MOST)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of its own, if there is one left."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and give the thread back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer, on the connection's own thread: a client that is slow with its handshake deafens nobody."""
        request.settimeout(_PATIENCE_S)
        if self.context is None:
            self._answer_in_time(request, client_address)
            return
        with self.context.wrap_socket(request, server_side=True, do_handshake_on_connect=False) as connection:
            self._answer_in_time(connection, client_address)

    def _answer_in_time(self, connection: Any, client_address: Any) -> None:
        """Who sends bit by bit is not listened to for longer than who sends nothing."""
        ends = threading.Timer(_PATIENCE_S, _stop_listening, (connection,))
        ends.daemon = True
        ends.start()
        try:
            if self.context is not None:
                connection.do_handshake()
            super().finish_request(connection, client_address)
        finally:
            ends.cancel()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or speaks something else, is nothing to log."""


def _is_readable(accept: str) -> bool:
    """Whether prometheus_client finds its way through it; what is no version makes it raise."""
    try:
        choose_encoder(accept)
    except (TypeError, ValueError):
        return False
    return True


def _stop_listening(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has just closed
        socket.socket.shutdown(connection, socket.SHUT_RD)


class _Writer(io.BufferedIOBase):
    """What is sent to a client. One that has gone, or takes nothing, is no failure of the server's, under TLS
    either."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def writable(self) -> bool:
        """It is for nothing else."""
        return True

    def write(self, data: Any) -> int:
        """All of it. Raises BrokenPipeError."""
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
        """Whether there is one to answer."""
        if not super().parse_request():
            return False
        if self.request_version == "HTTP/0.9":
            self.request_version = self.default_request_version
            self.send_error(505)
            return False
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

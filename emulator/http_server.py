"""Serves a Flask app with cheroot: threads as needed, and connections that can really be dropped."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any, Protocol

from cheroot import wsgi
from cheroot.connections import ConnectionManager
from cheroot.workers.threadpool import ThreadPool, WorkerThread
from flask import Flask

from mews.descriptors import PAUSE_S, Refusals, exhausted
from mews.emulator.dialects.app import ARRIVED, CLOSE, DROP
from mews.emulator.http_connection import StrictConnection
from mews.emulator.http_quick import SERVER_NAME, QuickAnswer
from mews.emulator.http_request import MAX_HEADER, WATCH, ChunkedBody, Deadlines
from mews.emulator.tls import Identity, install
from mews.emulator.tls_adapter import WorkerTls
from mews.emulator.waking import wake_while

LOG = logging.getLogger("mews.emulator.http")
SPARE = 1
"""Threads of a port that stand ready beyond the requests that wait: a pool of 40 chassis has 81 ports."""
KEPT = 16
"""Threads that stay for the next requests."""
MOST = 1200
"""Threads at the most: so many requests at once, slow ones among them, are answered or read."""
BACKLOG = 1024
"""Connections that may wait to be accepted."""


class _Pool(ThreadPool):
    """A thread for each connection that is read or answered, and some to spare; what is no longer needed is given
    back. cheroot guesses what is idle by looking at its threads, and so lets a connection wait behind slow ones."""

    _threads: list[Any]
    _pending_shutdowns: Any

    def __init__(self, server: Any, **options: Any) -> None:
        super().__init__(server, **options)
        self._counting = threading.Lock()
        self._open = 0

    def put(self, obj: Any) -> None:
        with self._counting:
            self._open += 1
        super().put(obj)
        while self._staying() < min(self._open + SPARE, self.max):
            self._threads.append(self._spawn_worker())

    def finished(self) -> None:
        """A thread is done with a connection, for good or until its next request."""
        with self._counting:
            self._open -= 1

    def trim(self) -> None:
        """Give back the threads that nobody has needed lately."""
        spare = self._staying() - self._open - KEPT
        if spare > 0:
            self.shrink(spare + len(self._pending_shutdowns))
        alive = {thread.name for thread in self._threads}
        known: dict[str, Any] = self.server.stats["Worker Threads"]
        for name in [name for name in known if name not in alive]:
            del known[name]

    def _staying(self) -> int:
        return len(self._threads) - len(self._pending_shutdowns)

    def _spawn_worker(self) -> WorkerThread:
        """Return a thread that does not keep a process alive which forgot to stop its server."""
        worker = WorkerThread(self.server)  # type: ignore[no-untyped-call]
        worker.daemon = True
        worker.start()
        return worker


class _Gateway(wsgi.Gateway_10):
    """WSGI, but an app can have its connection ended without an answer: no byte is sent, the socket is closed."""

    def respond(self) -> None:
        if self.req.chunked_read:
            self.env["wsgi.input"] = ChunkedBody(self.req.conn.rfile)
        self.env[ARRIVED] = lambda: self.req.server.deadlines.end(self.req.conn.socket)
        response = self.req.server.wsgi_app(self.env, self.start_response)
        try:
            if self.env.get(CLOSE):
                self.req.close_connection = True
            if self.env.get(DROP):
                self.req.sent_headers = True
                self.req.close_connection = True
                return
            for chunk in filter(None, response):
                self.write(chunk)
            self.req.ensure_headers_sent()
        finally:
            response.close()


class _Connections(ConnectionManager):
    """cheroot's; with no file left for a new connection it goes on with those that it has, which it otherwise forgets
    over the one that it cannot accept."""

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self._pause = threading.Event()
        self._refusals = Refusals("a chassis' server")

    def _from_server_socket(self, server_socket: socket.socket) -> Any:
        try:
            return super()._from_server_socket(server_socket)  # type: ignore[misc]
        except OSError as error:
            if not exhausted(error):
                raise
            self._refusals.note(time.monotonic())
            self._pause.wait(PAUSE_S)
            return None


class _Server(wsgi.Server):
    """cheroot's, with connections whose requests are read strictly."""

    ConnectionClass = StrictConnection
    _connections: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.deadlines = Deadlines()
        self.quick: QuickAnswer | None = None

    def _serve_unservicable(self) -> None:
        """cheroot's thread for connections that its pool has no place for: ours always has one."""

    def prepare(self) -> None:
        """Listen."""
        super().prepare()
        self._connections.close()  # there are none yet
        self._connections = _Connections(self)


class HttpServer:
    """One listening port; with ``tls`` it speaks nothing else. ``quick`` answers plain GETs in the app's place.

    Raises OSError where it cannot be had.
    """

    def __init__(
        self, app: Flask, host: str, port: int, *, tls: Identity | None = None, quick: QuickAnswer | None = None
    ) -> None:
        _check_free(host, port)
        self._server = _Server(
            (host, port), app, server_name=SERVER_NAME, shutdown_timeout=2, request_queue_size=BACKLOG
        )
        self._server.quick = quick
        if tls is not None:
            self._server.ssl_adapter = WorkerTls(tls)
        self._server.gateway = _Gateway
        self._server.max_request_header_size = MAX_HEADER
        self._server.requests = pool = _Pool(self._server, min=SPARE, max=MOST)
        self._server.deadlines.on_look = pool.trim
        self._server.error_log = _log  # type: ignore[method-assign]
        self._server.prepare()
        # cheroot leaves it out for port 0; without it the connections that a killed process leaves keep its successor
        # from listening there for a minute.
        self._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._thread = threading.Thread(target=self._server.serve, name=f"http {self.port}", daemon=True)

    @property
    def port(self) -> int:
        """The port, also where it was chosen by the system."""
        return int(self._server.bind_addr[1])

    def install(self, certificate: str) -> str:
        """Use another certificate from now on (PEM, with its key); gives it back without the key.

        Raises ValueError where it cannot be used or TLS is not spoken.
        """
        adapter = self._server.ssl_adapter
        if adapter is None:
            raise ValueError("the server does not speak TLS")
        return install(adapter.context, certificate)

    def start(self) -> None:
        """Answer requests, on threads of its own."""
        WATCH.add(self._server.deadlines)
        self._thread.start()

    def stop(self) -> None:
        """Close the port and all connections."""
        host, port = self._server.bind_addr[:2]
        wake_while(self._server.stop, socket.AF_INET6 if ":" in host else socket.AF_INET, (host, port))
        WATCH.remove(self._server.deadlines)
        if self._thread.ident is not None:
            self._thread.join()


class Stoppable(Protocol):
    """What serves on a thread of its own."""

    def stop(self) -> None:
        """End, and wait for it."""
        ...


def stop_all(servers: Iterable[Stoppable]) -> None:
    """Stop several at the same time: each waits for the requests that it is answering."""
    threads = [threading.Thread(target=server.stop) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _check_free(host: str, port: int) -> None:
    """cheroot forgets to close a socket that it could not bind; so try with one of our own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while ")[0]  # socket says the address once more
        raise OSError(f"{host}:{port}: cannot listen there: {why}") from error


def _log(msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
    LOG.log(level, msg, exc_info=traceback)

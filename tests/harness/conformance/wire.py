"""Small servers of the tests: the small chassis over a wire, under TLS or not."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.harness.conformance.wrong import Wrong


class _Box(BaseHTTPRequestHandler):
    """The small chassis, over a wire."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    box: Wrong

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def do(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, kind, text = self.box.answer(self.command, self.path, content)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do


def box_handler(box: Wrong) -> type[BaseHTTPRequestHandler]:
    """What answers its requests."""
    return type("OneBox", (_Box,), {"box": box})


@contextmanager
def running(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *arguments: None  # type: ignore[method-assign]
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

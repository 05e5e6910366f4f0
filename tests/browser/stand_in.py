"""A session that is none: it serves the live page, and over a session's HTTP interface a journal that was recorded."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

from mews.harness.report.live_page import live_file

TOKEN = "s3cret-of-this-session"


@dataclass
class StandIn:
    """What it answers. ``add`` lets the session go on; ``steps`` are those that the page asked for."""

    about: dict[str, Any]
    lines: list[dict[str, Any]]
    hardware: dict[str, Any] = field(default_factory=lambda: {"table": {}, "hosts": {}, "telemetry": {}})
    faults: list[dict[str, Any]] = field(default_factory=list)
    refuse: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)
    unauthorised: list[str] = field(default_factory=list)
    grown: threading.Condition = field(default_factory=threading.Condition)
    streams: int = 0
    ended: bool = False
    url: str = ""

    def add(self, lines: Sequence[dict[str, Any]]) -> None:
        """More lines, sent to whoever listens."""
        with self.grown:
            self.lines.extend(lines)
            self.grown.notify_all()

    def break_streams(self) -> None:
        """End every stream, as a server that goes away does."""
        with self.grown:
            self.streams += 1
            self.grown.notify_all()

    @property
    def address(self) -> str:
        """As `mews up --web` prints it."""
        return f"{self.url}/#token={TOKEN}"


@contextmanager
# Complex: one branch for each path that it serves.
def serving(session: StandIn) -> Iterator[StandIn]:  # noqa: C901
    """The session on loopback, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if not path.startswith("/v1/"):
                found = live_file(path.lstrip("/") or "page.html")
                if found is None:
                    self._reply(404, b"", "text/plain")
                else:
                    text, kind, policy = found
                    more = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
                    self._reply(200, text.encode(), f"{kind}; charset=utf-8", more)
                return
            if not self._allowed():
                return
            since = int(query.removeprefix("since=") or 0)
            if path == "/v1/session":
                self._json(session.about)
            elif path == "/v1/journal":
                self._json({"next": len(session.lines), "lines": session.lines[since:]})
            elif path == "/v1/hardware":
                self._json(session.hardware)
            elif path == "/v1/faults":
                self._json({"faults": session.faults})
            elif path.startswith("/v1/explain/pod/"):
                pod = path.removeprefix("/v1/explain/pod/")
                self._json({"pod": pod, "sentences": [f"{pod} waits: <b>nobody</b> has five GPUs."]})
            elif path == "/v1/events":
                self._events(since)
            else:
                self._json({"error": path}, 404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self._allowed():
                return
            if session.refuse:
                self._json({"error": session.refuse}, 400)
                return
            session.steps.append(body)
            self._json({"verdict": "passed", "reason": ""})

        def _allowed(self) -> bool:
            if self.headers.get("Authorization") == f"Bearer {TOKEN}" and "Cookie" not in self.headers:
                return True
            session.unauthorised.append(self.path)
            self._json({"error": "the token is missing or wrong"}, 401)
            return False

        def _events(self, since: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            stream = session.streams
            try:
                self.wfile.write(b": hello\n\n")
                while not session.ended and stream == session.streams:
                    with session.grown:
                        if len(session.lines) == since:
                            session.grown.wait(timeout=5)
                        new = session.lines[since:]
                    for line in new:
                        self.wfile.write(f"id: {since}\ndata: {json.dumps(line)}\n\n".encode())
                        since += 1
                    self.wfile.write(b": still there\n\n")
                    self.wfile.flush()
            except OSError:
                pass

        def _json(self, value: Any, status: int = 200) -> None:
            self._reply(status, json.dumps(value).encode(), "application/json")

        def _reply(self, status: int, body: bytes, kind: str, more: Mapping[str, str] = MappingProxyType({})) -> None:
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    session.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield session
    finally:
        session.ended = True
        session.break_streams()
        server.shutdown()
        server.server_close()
        thread.join()

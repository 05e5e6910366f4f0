"""A real browser without a window, and the server of the page that it is sent to."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).with_name("hostile.html")
REBOUND = "rebound.example"
"""A name of the attacker's that points to loopback, as DNS rebinding makes it."""
PATIENCE_S = 90.0


def program() -> str:
    """The browser's path; without one the test is skipped."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no browser: neither chromium nor google-chrome is on PATH (Debian: apt install chromium)")
    return found


def command(folder: Path, *arguments: str) -> list[str]:
    """The browser with a profile of its own. It believes every certificate: a user may have clicked the warning away,
    and what protects a session must not be that warning."""
    return [
        program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--ignore-certificate-errors", "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessForNavigations",
        f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1", f"--user-data-dir={folder}", *arguments,
    ]  # fmt: skip


def text_of(url: str, folder: Path) -> str:
    """What the browser shows of a page that the user is led to."""
    done = subprocess.run(command(folder, "--dump-dom", url), capture_output=True, text=True, timeout=PATIENCE_S)
    return done.stdout


@dataclass
class Attacker:
    """A server of the page, of what it is to try, and of its report."""

    targets: Sequence[Mapping[str, Any]] = ()
    reports: queue.Queue[list[dict[str, Any]]] = field(default_factory=queue.Queue)
    port: int = 0

    def attack(self, folder: Path, targets: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Let the browser open the page; per target and means what it read, None for nothing."""
        self.targets = targets
        argv = command(folder, "--remote-debugging-port=0", f"http://127.0.0.1:{self.port}/")
        browser = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return self.reports.get(timeout=PATIENCE_S)
        finally:
            browser.kill()
            browser.wait()


@contextmanager
def attacker() -> Iterator[Attacker]:
    """An Attacker that serves on loopback, on a port and so an origin of its own."""
    site = Attacker()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/targets":
                self._reply(json.dumps(list(site.targets)).encode(), "application/json")
            else:
                self._reply(PAGE.read_bytes(), "text/html; charset=utf-8")

        def do_POST(self) -> None:
            site.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._reply(b"", "text/plain")

        def _reply(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

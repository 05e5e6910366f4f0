"""`mews conform` and `mews serve` run where Linux is not, and through a company's proxy."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mews.harness.conformance.client import ChassisTarget, Client
from mews.harness.conformance.forward_proxy import proxy_of
from tests.harness.conformance.judging import served, url_of

pytestmark = pytest.mark.wall

ROOT = Path(__file__).parents[3]
ELSEWHERE = """
import builtins, io, os, signal, sys

for name in ("fcntl", "grp", "pwd", "resource", "termios", "pty", "tty", "syslog"):
    sys.modules[name] = None
for name in ("SIGHUP", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGKILL", "pthread_sigmask", "sigwait",
             "sigpending", "sigtimedwait", "sigwaitinfo", "SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "setitimer"):
    delattr(signal, name)
for name in ("getuid", "geteuid", "getgid", "getegid", "killpg", "setsid", "fork", "mkfifo", "sched_getaffinity",
             "chown", "fchmod", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "pread", "statvfs", "uname"):
    delattr(os, name)
opened = io.open

def elsewhere(file, *arguments, **options):
    if str(file).startswith(("/proc", "/sys")):
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return opened(file, *arguments, **options)

io.open = builtins.open = elsewhere
from mews.harness.cli import main
sys.argv = ["mews", *sys.argv[1:]]
main()
"""
"""What Windows lacks is taken away before the command starts."""


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(folder)}


def elsewhere(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *arguments],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_conform_needs_nothing_that_windows_lacks(tmp_path):
    with served() as server:
        with server.rack.box("A") as box:
            box.edit("000100", None, server.rack.clock.now())
        done = elsewhere(tmp_path, "conform", url_of(server, "h3api"), "--allow-changes")
    assert done.stdout.splitlines()[-1].startswith("PASSED in "), done.stdout + done.stderr
    assert done.returncode == 0


def test_serve_needs_nothing_that_windows_lacks_and_ends_when_told(tmp_path):
    command = [sys.executable, "-c", ELSEWHERE, "serve", "--dialect", "h3api", "--wrong", "null-uuid"]
    process = subprocess.Popen(command, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as output:
        line = output.readline()
        assert line.startswith("chassis A: h3api http://"), line
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


class Forward(BaseHTTPRequestHandler):
    """Forwards requests whose target is a URL, as an HTTP proxy does (RFC 9112, 3.2.2)."""

    seen: list[str]

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.seen.append(f"{self.path} {self.headers.get('proxy-authorization', '')}".strip())
        parts = urlsplit(self.path)
        wire = http.client.HTTPConnection("127.0.0.1", parts.port)
        wire.request("GET", parts.path, headers={"Host": "127.0.0.1"})
        answer = wire.getresponse()
        body = answer.read()
        wire.close()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def forwarding() -> Iterator[tuple[int, list[str]]]:
    seen: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Forwarding", (Forward,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.server_address[1]), seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_requests_go_through_the_proxy_of_the_environment(monkeypatch):
    with served() as chassis, forwarding() as (port, seen):
        at = urlsplit(url_of(chassis, "h3api")).port
        monkeypatch.setenv("http_proxy", f"http://me:wo%20rd@127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        client = Client(ChassisTarget(f"http://box.example:{at}"))
        client.connect_once(5.0)
        reply = client.send("GET", "/h3api/v1/resources")
    assert reply.status == 200
    assert seen == [f"http://box.example:{at}/h3api/v1/resources Basic bWU6d28gcmQ="]
    assert "wo" not in repr(client.log[0].headers)


def test_no_proxy_is_used_for_this_machine_and_where_the_environment_says_so(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", ".lab.example")
    found = proxy_of(urlsplit("https://box.example"))
    assert found is not None
    assert (found.hostname, found.port) == ("proxy.example", 3128)
    assert proxy_of(urlsplit("https://box.lab.example")) is None
    assert proxy_of(urlsplit("https://127.0.0.1:8443")) is None
    assert proxy_of(urlsplit("http://box.example")) is None

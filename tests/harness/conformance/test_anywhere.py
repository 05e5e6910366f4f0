"""`mews conform` and `mews serve` run where Linux is not, and through a company's proxy."""

from __future__ import annotations

import ctypes
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
from typing import Any
from urllib.parse import urlsplit

import pytest

from mews.emulator.wrongs.registry import WRONGS
from mews.harness.conformance.birth import _of_ps, _of_windows, born_at
from mews.harness.conformance.client import ChassisTarget, Client
from mews.harness.conformance.forward_proxy import proxy_of
from mews.harness.conformance.matrix import serving
from mews.harness.conformance.restore import RestoreFile, RestorePlan
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
            box.edits.edit("000100", None, server.rack.clock.now())
        done = elsewhere(tmp_path, "conform", url_of(server, "h3api"), "--allow-changes")
    assert done.stdout.splitlines()[-1].startswith("PASSED in "), done.stdout + done.stderr
    assert done.returncode == 0


def test_a_run_that_goes_on_is_known_without_proc(tmp_path):
    """Its restore file is that of a run in this very process; without its birth it would be taken for one that died."""
    file = tmp_path / "restore.json"
    with served() as server:
        url = url_of(server, "h3api")
        plan = RestorePlan(url, "h3api", None, False, 4.0, {}, os.getpid(), _of_ps(os.getpid()))
        RestoreFile(file, plan).answered()
        done = elsewhere(tmp_path, "conform", url, "--allow-changes", "--restore-file", str(file))
        assert (done.returncode, file.exists()) == (2, True)
        assert f"is going on (pid {os.getpid()})" in done.stderr
        plan.born = "Thu Jan  1 00:00:00 1970"
        RestoreFile(file, plan).answered()
        done = elsewhere(tmp_path, "conform", url, "--allow-changes", "--restore-file", str(file))
    assert "an interrupted run left it; restoring the table" in done.stderr


def test_a_process_is_known_by_its_birth():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert _of_ps(child.pid) == _of_ps(child.pid) != ""
    assert born_at(child.pid) == born_at(child.pid) != ""
    child.communicate(b"\n")
    assert _of_ps(child.pid) == born_at(child.pid) == ""


@pytest.mark.parametrize(("handle", "code", "born"), [(7, 259, "42"), (0, 259, ""), (7, 0, "")])
def test_windows_is_asked_for_the_time_of_creation(handle, code, born, monkeypatch):
    closed: list[object] = []

    class Kernel:
        OpenProcess = staticmethod(type("Open", (), {"__call__": lambda self, *asked: handle})())
        CloseHandle = staticmethod(closed.append)

        @staticmethod
        def GetExitCodeProcess(opened: object, said: Any) -> int:
            said._obj.value = code
            return 1

        @staticmethod
        def GetProcessTimes(opened: object, created: Any, *others: Any) -> int:
            created._obj.value = 42
            return 1

    monkeypatch.setattr(ctypes, "WinDLL", lambda name, **options: Kernel, raising=False)
    assert _of_windows(1) == born
    assert len(closed) == bool(handle)


def test_a_console_that_lacks_a_character_shows_its_number(tmp_path):
    with serving((WRONGS["byte-order-mark"],), "h3api") as server:
        command = [sys.executable, "-m", "mews.harness", "conform", url_of(server, "h3api")]
        narrow = {**environment(tmp_path), "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
        done = subprocess.run(command, env=narrow, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert b"< 200 \\ufeff[{" in done.stdout


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

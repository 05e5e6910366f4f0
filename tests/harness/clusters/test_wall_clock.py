"""What a wall-clock cluster leaves behind when it dies: the chassis' table, and nothing else."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

import mews.fixtures

DEMO = os.path.join(os.path.dirname(mews.fixtures.__file__), "hardware", "demo.yaml")


@pytest.fixture
def folder():
    """Short, as the path of a socket has at most 107 bytes; all that a cluster writes is in it."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as name:
        yield Path(name)


def up(folder):
    argv = [sys.executable, "-m", "mews.harness.cli", "up", "--hardware", DEMO, "--dir", str(folder), "--speed", "20"]
    argv += ["--wait", "devices"]
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env={**os.environ, "XDG_RUNTIME_DIR": str(folder)})
    ready = folder / "ready.json"
    until(lambda: ready.exists() and json.loads(ready.read_text())["pid"] == child.pid, "ready.json")
    return child, json.loads(ready.read_text())


def until(condition, what, deadline_s=90.0):
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"waited {deadline_s:g} s for {what}"
        time.sleep(0.05)


def ask(url, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=60) as answer:
        return answer.read()


def ports(url):
    return {row["devid"]: row["hostport"] for row in json.loads(ask(f"{url}/resources"))}


@pytest.mark.wall
def test_the_table_outlives_a_killed_cluster_and_its_processes_do_not(folder):
    child, ready = up(folder)
    try:
        url = ready["chassis"]["A"]["resource-pool"]
        ask(f"{url}/allocation", "DELETE", {"devid": "000500"})
        ask(f"{url}/allocation", "POST", {"devid": "000500", "hostport": "1"})
        assert ports(url)["000500"] == "1"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()

    def gone():
        try:
            ask(f"{url}/resources")
        except OSError:
            return True
        return False

    until(gone, "the chassis to end with its cluster")
    (folder / "ready.json").unlink()
    child, ready = up(folder)
    try:
        assert ports(ready["chassis"]["A"]["resource-pool"])["000500"] == "1"
    finally:
        child.terminate()
        child.wait()

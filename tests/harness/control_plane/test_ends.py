"""However a run on the real control plane ends, nothing is left that `mews down` does not remove."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mews.harness.cli import exit_code

MEWS = [sys.executable, "-m", "mews.harness.cli"]


def test_missing_programs_are_told_in_one_line_with_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for line in ("run demo --cluster control-plane", "up --cluster control-plane", "diff-clusters demo"):
        assert exit_code(line.split()) == 3
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        assert "etcd, kube-apiserver" in told.err
        assert "setup-envtest" in told.err


@pytest.fixture
def environment():
    """A runtime folder of the test's own, short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="ends-") as base:
        yield {**os.environ, "XDG_RUNTIME_DIR": base, "TMPDIR": base}


def left(environment):
    """Processes that bear the test's runtime folder in their environment, and folders in it."""
    base = environment["XDG_RUNTIME_DIR"]
    mark = f"XDG_RUNTIME_DIR={base}".encode()
    processes = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                processes.append((entry / "cmdline").read_text().split("\0")[0])
        except OSError:
            continue
    return sorted(processes), sorted(path.name for path in Path(base).glob("mews-*"))


def run_until_the_api_server_runs(environment, folder):
    process = subprocess.Popen(
        [*MEWS, "run", "demo", "--cluster", "control-plane"],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any("kube-apiserver" in name for name in left(environment)[0]):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return process


@pytest.mark.wall
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_leaves_nothing(number, programs, environment, tmp_path):
    process = run_until_the_api_server_runs(environment, tmp_path)
    process.send_signal(number)
    assert process.wait(120) == 130
    assert left(environment) == ([], [])


@pytest.mark.wall
def test_what_kill_9_leaves_mews_down_removes(programs, environment, tmp_path):
    process = run_until_the_api_server_runs(environment, tmp_path)
    process.kill()
    process.wait()
    assert left(environment) != ([], [])
    done = subprocess.run([*MEWS, "down"], env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert "its owner is dead" in done.stdout
    deadline = time.monotonic() + 60
    while left(environment) != ([], []):
        assert time.monotonic() < deadline, left(environment)
        time.sleep(0.1)

"""However a run on the real control plane ends, nothing is left that `mews down` does not remove."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mews.harness.cli import exit_code
from mews.harness.clusters.programs.finding import find
from mews.project import DOCUMENTATION

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


def programs_of(folder, text):
    """A folder with an etcd and a kube-apiserver that are files of that text; of the machine there is openssl alone."""
    for name in ("etcd", "kube-apiserver"):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not on PATH")
    (folder / "openssl").symlink_to(openssl)
    return folder


@pytest.mark.wall
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("of another machine", "etcd: cannot be started: Exec format error; get them with `setup-envtest"),
        ("#!/bin/sh\necho no such option >&2\nexit 2\n", "the control plane ended: "),
    ],
)
def test_programs_that_do_not_run_are_told_in_one_line_and_leave_nothing(text, told, environment, tmp_path):
    folder = programs_of(tmp_path, text)
    env = {**environment, "KUBEBUILDER_ASSETS": str(folder), "PATH": str(folder)}
    for line in ("run demo --cluster control-plane", "up --cluster control-plane"):
        done = subprocess.run(
            [*MEWS, *line.split()], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stdout) == (3, "")
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
        assert left(env) == ([], [])


@pytest.mark.wall
def test_an_openssl_that_cannot_do_it_is_named(environment, tmp_path):
    folder = programs_of(tmp_path, "")
    (folder / "openssl").unlink()
    (folder / "openssl").write_text("#!/bin/sh\necho unknown option -addext >&2\nexit 1\n")
    (folder / "openssl").chmod(0o755)
    env = {**environment, "KUBEBUILDER_ASSETS": str(folder), "PATH": str(folder)}
    argv = [*MEWS, "run", "demo", "--cluster", "control-plane"]
    done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{folder}/openssl: no certificate could be generated; OpenSSL 1.1.1 or later" in done.stderr
    assert f"unknown option -addext (see {DOCUMENTATION})\n" in done.stderr
    assert left(env) == ([], [])


@pytest.mark.wall
def test_a_scheduler_that_cannot_be_started_is_named_before_a_step_waits_for_it(programs, environment, tmp_path):
    (tmp_path / "kube-scheduler").write_text("of another machine")
    (tmp_path / "kube-scheduler").chmod(0o755)
    assets = environment.get("KUBEBUILDER_ASSETS", "")
    env = {**environment, "KUBEBUILDER_ASSETS": str(tmp_path), "PATH": f"{assets}:{environment['PATH']}"}
    argv = [*MEWS, "run", "01-cpu-pod", "--cluster", "control-plane", "--speed", "10"]
    done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert (done.returncode, done.stdout) == (3, "")
    line = f"default-scheduler: {tmp_path}/kube-scheduler: cannot be started: Exec format error"
    assert done.stderr == f"{line} (see {DOCUMENTATION})\n"


@pytest.fixture
def environment():
    """Folders of the test's own for what runs and for what outlives a run: `mews down` must not meet what other runs on
    this machine left (a kind cluster without its Docker daemon is an error of its own). Short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="ends-") as base:
        yield {**os.environ, "XDG_RUNTIME_DIR": base, "XDG_STATE_HOME": base, "TMPDIR": base}


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


def run_until(program, environment, folder):
    process = subprocess.Popen(
        [*MEWS, "run", "27-real-latencies", "--cluster", "control-plane"],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any(program in name for name in left(environment)[0]):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return process


@pytest.mark.wall
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_leaves_nothing(number, programs, environment, tmp_path):
    process = run_until("kube-apiserver", environment, tmp_path)
    process.send_signal(number)
    assert process.wait(120) == 130
    assert left(environment) == ([], [])


@pytest.mark.wall
@pytest.mark.parametrize("program", ["kube-apiserver", "kube-scheduler"])
def test_what_kill_9_leaves_mews_down_removes(program, programs, environment, tmp_path):
    if find(program) is None:
        pytest.skip(f"{program} is neither in KUBEBUILDER_ASSETS nor on PATH")
    process = run_until(program, environment, tmp_path)
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

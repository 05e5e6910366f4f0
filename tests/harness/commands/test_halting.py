"""`mews run --break-at`: what is seen of a run that stands still, and that looking changes nothing."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from mews.harness.commands.instances import born

pytestmark = pytest.mark.wall

MEWS = (sys.executable, "-m", "mews.harness")
KUBECTL = shutil.which("kubectl") or shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", ""))
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is neither on PATH nor in KUBEBUILDER_ASSETS")


class StoppedRun:
    """A `mews run --break-at` of its own user: what it has said, and its ready.json."""

    def __init__(self, runtime, *words):
        self.folder = Path(runtime) / "mews" / "run"
        self.env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(runtime)}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([*MEWS, "run", *words], env=self.env, start_new_session=True, **streams)
        self.said = []

    def until(self, word):
        """All lines up to the one with that word."""
        while not self.said or word not in self.said[-1]:
            line = self.process.stderr.readline()
            assert line, f"ended: {self.said} {self.process.stdout.read()}"
            self.said.append(line)
        return "".join(self.said)

    def stopped(self):
        """Its ready.json, once it stands."""
        self.until("goes on with")
        return json.loads((self.folder / "ready.json").read_text())

    def mews(self, *words):
        return subprocess.run([*MEWS, *words], env=self.env, capture_output=True, text=True, timeout=60)

    def kubectl(self, *words):
        given = [KUBECTL, "--kubeconfig", str(self.folder / "kubeconfig"), *words]
        return subprocess.run(given, env=self.env, capture_output=True, text=True, timeout=60)

    def ends(self):
        """(its exit code, what it printed)."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


@pytest.fixture
def stop():
    """Starts runs that stop, each with folders that nobody else uses."""
    with contextlib.ExitStack() as stack:

        def start(*words):
            runtime = stack.enter_context(tempfile.TemporaryDirectory(prefix="m", dir="/tmp"))
            run = StoppedRun(runtime, *words)
            stack.enter_context(run.process)
            stack.callback(lambda: run.process.poll() is None and os.killpg(run.process.pid, signal.SIGKILL))
            return run

        yield start


def left_behind(run):
    """Folders that the run has made and not removed, and its session's files."""
    runtime = run.folder.parent.parent  # XDG_RUNTIME_DIR
    return [str(path) for path in (*runtime.glob("mews-*"), *run.folder.glob("*"), *run.folder.parent.glob("*.json"))]


def gone(run, patience_s=20.0):
    """Whether nothing is left, in the end."""
    until_s = time.monotonic() + patience_s
    while left_behind(run) and time.monotonic() < until_s:
        time.sleep(0.1)
    return left_behind(run) == []


def ended(pid, patience_s=20.0):
    """Whether that process ends: it removes its files first."""
    until_s = time.monotonic() + patience_s
    while born(pid) and time.monotonic() < until_s:
        time.sleep(0.1)
    return born(pid) == ""


def get(url, method="GET"):
    """(status, body) of a request in plain HTTP."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


@needs_kubectl
def test_the_journal_is_the_same_byte_for_byte_whoever_has_looked(stop, tmp_path):
    plain, broken = tmp_path / "plain.jsonl", tmp_path / "broken.jsonl"
    subprocess.run([*MEWS, "run", "demo", "--journal", str(plain)], check=True, capture_output=True, timeout=60)
    run = stop("demo", "--break-at", "120", "--journal", str(broken))
    ready = run.stopped()
    listed = json.loads(run.kubectl("get", "pods,nodes,events", "-A", "-o", "json").stdout)["items"]
    status, table = get(f"{ready['chassis']['A']['h3api']}/h3api/v1/resources")
    assert {item["kind"] for item in listed} >= {"Node", "Pod"}
    assert "GPU" in run.mews("nvidia-smi", "--name", "run", "--host", "host-2", "-L").stdout
    assert run.kubectl("delete", "pod", "--all").returncode != 0
    assert run.mews("continue").stdout == "run: goes on\n"
    code, told = run.ends()
    assert (code, "1 passed" in told) == (0, True)
    assert broken.read_bytes() == plain.read_bytes()
    assert gone(run)
    assert (status, "Host_Port#" in table) == (200, True), table


@needs_kubectl
def test_it_shows_what_is_true_at_that_line_and_nothing_later(stop):
    run = stop("demo", "--break-at", "a pod wants five")
    ready = run.stopped()
    assert "step 2 (a pod wants five) begins" in "".join(run.said)
    assert run.kubectl("get", "pods", "-A", "-o", "name").stdout == ""  # it is made by this very step
    table = json.loads(run.mews("get", "table", "--name", "run", "--json").stdout)
    assert {host for rows in table.values() for host in (row["host"] for row in rows.values())} == {
        "host-1", "host-2", "host-3",
    }  # fmt: skip
    smi = run.mews("nvidia-smi", "--name", "run", "--host", "host-1", "--query-gpu=uuid", "--format=csv,noheader")
    shown = sorted(row["uuid"] for rows in table.values() for row in rows.values() if row["host"] == "host-1")
    assert sorted(smi.stdout.split()) == shown
    pci = os.listdir(Path(ready["nodes"]["host-1"]["sysfs"]) / "bus" / "pci" / "devices")
    assert len(pci) > len(shown)
    assert run.mews("events", "--name", "run").stdout.splitlines()[-1].split()[1:4] == ["step", "demo", "begun"]
    assert "stopped" in run.mews("status", "--name", "run").stdout
    assert ready["stopped"]["line"] == int(re.search(r"at line (\d+)", "".join(run.said))[1])


@needs_kubectl
def test_nothing_can_be_changed_while_it_stands(stop):
    run = stop("demo", "--break-at", "it runs")
    ready = run.stopped()
    assert run.kubectl("get", "pod", "trainer").returncode == 0
    for words in (
        ("delete", "pod", "trainer"),
        ("label", "node", "host-1", "a=b"),
        ("exec", "trainer", "--", "true"),
        ("create", "namespace", "mine"),
    ):
        refused = run.kubectl(*words)
        assert (refused.returncode != 0, "can only be read" in refused.stderr) == (True, True), refused.stderr
    assert run.kubectl("auth", "can-i", "create", "pods").stdout == "yes\n"  # a question, if by POST
    chassis = ready["chassis"]["A"]["h3api"]
    status, text = get(f"{chassis}/h3api/v1/assign", "POST")
    assert (status, "can only be read" in text) == (403, True)
    refused = run.mews("chassis", "edit", "--name", "run", "A", "000100", "--free")
    assert (refused.returncode, "can only be read" in refused.stderr) == (2, True)
    refused = run.mews("nvidia-smi", "--name", "run", "--host", "host-1", "-pm", "1")
    assert (refused.returncode != 0, "Insufficient Permissions" in refused.stdout) == (True, True)
    refused = run.mews("fault", "add", "--name", "run", "--component", "kubecomp-scheduler", "lagging-watch", "by_s=5")
    assert (refused.returncode, "can only be read" in refused.stderr) == (2, True)


def test_it_stops_at_the_first_violation(stop):
    run = stop("elastic/13-baseline-deadlock", "--break-at", "violation")
    ready = run.stopped()
    assert "invariant 9 is violated" in "".join(run.said)
    last = ready["stopped"]
    assert (last["layer"], last["event"], last["actor"]) == ("invariant", "violated", "9")
    report = run.mews("status", "--name", "run")
    assert report.returncode == 0, report.stderr
    run.mews("continue")
    assert run.ends()[0] == 0


def test_ctrl_c_ends_the_run_and_all_that_it_serves(stop):
    run = stop("demo", "--break-at", "step:2")
    ready = run.stopped()
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does: the run and whoever serves for it
    code, told = run.ends()
    assert (code, "interrupted" in told) == (130, True)
    assert gone(run)
    with pytest.raises(OSError):
        get(ready["chassis"]["A"]["h3api"])


def test_a_run_that_is_killed_leaves_nothing(stop):
    run = stop("demo", "--break-at", "step:2")
    ready = run.stopped()
    servers = [int(pid) for pid in Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()]
    assert len(servers) == 1
    run.process.kill()
    run.process.wait()
    assert gone(run)
    assert ended(servers[0])
    with pytest.raises(OSError):
        get(ready["chassis"]["A"]["h3api"])


def test_mews_down_ends_it(stop):
    run = stop("demo", "--break-at", "step:2")
    run.stopped()
    assert "run: ended" in run.mews("down", "--name", "run").stdout
    assert run.ends()[0] == -signal.SIGTERM
    assert gone(run)


def test_it_goes_on_when_its_servers_are_killed(stop):
    run = stop("demo", "--break-at", "step:2")
    run.stopped()
    (server,) = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
    os.kill(int(server), signal.SIGKILL)
    code, told = run.ends()
    assert (code, "its servers have ended; the run goes on" in told) == (0, True)
    run.mews("down")
    assert gone(run)


def test_a_session_of_mews_up_does_not_go_on(stop):
    run = stop("demo", "--break-at", "step:2")
    run.stopped()
    missing = run.mews("continue", "--name", "other")
    assert (missing.returncode, "running: run" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("demo", "--break-at", "no such step"), "must be one of nothing moves afterwards"),
        (("demo", "--break-at", "step:99"), "demo has 8 steps"),
        (("demo", "--break-at", "step:0"), "the first step has number 1"),
        (("demo", "--break-at", ""), "must be the number of a journal line"),
        (("demo", "--break-at", "3", "--jobs", "2"), "only one of the two"),
        (("demo", "--break-at", "3", "--seeds", "1-2"), "must be one run, not 2"),
        (("demo", "dialects/01-redfish", "--break-at", "3"), "must be one run"),
        (("demo", "--break-at", "3", "--time", "wall"), "in virtual time only"),
    ],
)
def test_what_is_no_place_is_refused_in_one_line(words, told, capsys):
    from mews.harness.cli import exit_code

    assert exit_code(["run", *words]) == 2
    error = capsys.readouterr().err
    assert (told in error, error.count("\n")) == (True, 1), error


@pytest.mark.parametrize("place", ["99999", "violation"])
def test_a_place_that_is_never_reached_is_told(place, capsys):
    from mews.harness.cli import exit_code

    assert exit_code(["run", "demo", "--break-at", place]) == 1
    out, error = capsys.readouterr()
    assert ("1 passed" in out, error) == (True, f"--break-at {place}: the run ended before it came there\n")

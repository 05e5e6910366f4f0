"""Too few files that may be open end in one line; a server that runs out of them lives on."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mews.descriptors import Refusals, TooFewDescriptorsError, ensure_descriptors, exhausted
from mews.harness.engine import Engine
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import load_scenario, shipped
from mews.harness.scenario.model import Scenario

MEWS = (sys.executable, "-m", "mews.harness.cli")


def limited(words: list[str], most: int, **options: object) -> subprocess.CompletedProcess[str]:
    """A command that may have so many open at once, hard."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
        argv = ["bash", "-c", f'ulimit -n {most}; exec "$@"', "bash", *MEWS, *words]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert os.listdir(runtime) in ([], ["mews"]), "it left something"
        return done


@pytest.mark.wall
@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["up", "--name", "few"], 470),
        (["envtest", "--", "true"], 470),
        (["demo"], 470),
        (["run", "demo", "--time", "wall"], 470),
        (["serve", "--hardware", "demo"], 128),
    ],
    ids=["up", "envtest", "demo", "run", "serve"],
)
def test_too_few_from_the_start_end_in_one_line(words: list[str], needed: int):
    done = limited(words, 64)
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if "open files" in line]
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr
    [line] = list(dict.fromkeys(said))
    assert f"needs {needed} open files; this process may have 64 (hard limit 64)" in line
    assert f"`ulimit -n {needed}`" in line


@pytest.mark.parametrize("most", [5, 6, 7, 8])
def test_a_virtual_run_that_runs_out_of_them_has_no_traceback(most: int):
    done = limited(["run", "demo"], most)
    if "Fatal Python error" in done.stderr or "site" in done.stderr:
        pytest.skip("Python itself cannot start")
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr


def test_a_soft_limit_is_raised_as_far_as_needed(monkeypatch: pytest.MonkeyPatch):
    limits, given = (64, 4096), []
    monkeypatch.setattr(resource, "getrlimit", lambda what: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda what, limit: given.append(limit))
    ensure_descriptors("it", 64)
    assert given == []
    ensure_descriptors("it", 4096)
    assert given == [(4096, 4096)]
    with pytest.raises(TooFewDescriptorsError, match="it needs 4097 open files; this process may have 64"):
        ensure_descriptors("it", 4097)
    limits = (64, resource.RLIM_INFINITY)
    ensure_descriptors("it", 1_000_000)
    assert given[-1] == (1_000_000, resource.RLIM_INFINITY)


def test_exhaustion_is_seen_through_groups_and_causes():
    full = OSError(errno.EMFILE, "Too many open files")
    lacking = RequirementError("no folder")
    lacking.__cause__ = full
    assert exhausted(ExceptionGroup("several", [ValueError(), lacking]))
    assert exhausted(OSError(errno.ENFILE, "in the whole system"))
    assert not exhausted(ExceptionGroup("several", [OSError(errno.ENOSPC, "No space left on device")]))
    assert not exhausted(None)


def test_a_server_reports_it_once_a_minute(caplog: pytest.LogCaptureFixture):
    refusals = Refusals("a server")
    for now_s in (0.0, 1.0, 59.0, 60.0, 61.0):
        refusals.note(now_s)
    assert len(caplog.records) == 2


def test_a_run_that_runs_out_of_them_is_one_line_and_no_report(monkeypatch: pytest.MonkeyPatch):
    async def full(self: Engine, scenario: Scenario, seed: int, opened: object) -> Run:
        raise ExceptionGroup("tasks", [OSError(errno.EMFILE, "Too many open files")])

    monkeypatch.setattr(Engine, "_run", full)
    scenario = load_scenario(shipped("scenario", "demo"))
    with pytest.raises(
        BadInputError, match=r"^scenario demo: too many open files; this process may have \d+ .*ulimit -n"
    ):
        Engine(RunOptions()).run(scenario)
    found = Engine(RunOptions()).attempt(scenario, 1)
    assert (found.result.verdict, found.bad_input, found.result.report) == ("error", True, "")


# Servers that run out of them while they serve


@contextmanager
def serving(words: list[str], ready: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, object], Path]]:
    log = ready.parent / "errors"
    log.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime, log.open("w") as errors:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
        process = subprocess.Popen([*MEWS, *words], env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), log.read_text()
            yield process, json.loads(ready.read_text()), log
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def flooded(pid: int, url: str) -> None:
    """Take all files that the process may have open, by connections to a face of it, and give them back."""
    there = urlsplit(url)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    most = len(os.listdir(f"/proc/{pid}/fd")) + 10
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, before[1]))
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection((there.hostname, there.port), timeout=10))
        assert until(lambda: len(os.listdir(f"/proc/{pid}/fd")) >= most - 1), "the flood does not reach it"
        until(lambda: False, 3.0)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def until(holds: object, deadline_s: float = 20.0) -> bool:
    """Whether it holds within that time."""
    assert callable(holds)
    from threading import Event
    from time import monotonic

    pause, begun = Event(), monotonic()
    while monotonic() - begun < deadline_s:
        if holds():
            return True
        pause.wait(0.05)
    return False


@pytest.mark.wall
def test_a_chassis_that_can_accept_nothing_lives_on(tmp_path: Path):
    ready_file = tmp_path / "ready.json"
    with serving(["serve", "--hardware", "demo", "--ready", str(ready_file)], ready_file) as (process, ready, errors):
        url = ready["chassis"]["A"]["resource-pool"]
        used = processor_s(process.pid)
        flooded(process.pid, url)
        used = processor_s(process.pid) - used
        with urllib.request.urlopen(f"{url}/resources", timeout=20) as answer:
            assert answer.status == 200
        said = errors.read_text()
    assert used < 2, "it asks the system again and again"
    assert "Traceback" not in said
    assert len([line for line in said.splitlines() if "too many open files" in line]) == 1


def processor_s(pid: int) -> float:
    """What the process has used of processors, in seconds."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.wall
def test_an_api_that_can_accept_nothing_lives_on(tmp_path: Path):
    folder = tmp_path / "dir"
    words = ["up", "--name", "flood", "--dir", str(folder), "--stack", "none", "--insecure"]
    with serving(words, folder / "ready.json") as (process, ready, errors):
        flooded(process.pid, ready["api"])

        def is_ready() -> bool:
            try:
                with urllib.request.urlopen(f"{ready['api']}/readyz", timeout=20) as answer:
                    return answer.status == 200
            except OSError:
                return False

        assert until(is_ready)
        said = errors.read_text()
    assert "Traceback" not in said, said[:2000]
    assert "too many open files" in said

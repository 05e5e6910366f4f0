"""However a run with --allow-changes ends, the table is as before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mews.emulator.serve import ChassisServer
from mews.emulator.wrongs.registry import WRONGS
from mews.harness.cli import exit_code
from mews.harness.conformance.matrix import free, serving
from tests.harness.conformance.judging import ca_of, ports, served, url_of

pytestmark = pytest.mark.wall

ROOT = Path(__file__).parents[3]
LIMITS = "limits: {settle_s: 0.5, outage_s: 5, quiet_s: 1.5}"
PROFILE = {"attach": 0.4, "detach": 0.3}


@pytest.fixture(scope="module")
def shared() -> Iterator[ChassisServer]:
    with served(PROFILE, password="hush") as server:
        yield server


@pytest.fixture
def server(shared: ChassisServer, state: Path) -> ChassisServer:
    with shared.rack.box("A") as box:
        box.reset(shared.rack.clock.now())
    return shared


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "brisk.yaml").write_text(f"apiVersion: mews/v1\nkind: Quirks\ndialect: h3api\n{LIMITS}\n")
    return tmp_path


def restore_files(state: Path) -> list[Path]:
    return sorted((state / "state").rglob("*.json"))


class Run:
    """``mews conform --allow-changes`` as a process of its own."""

    def __init__(self, server: ChassisServer, state: Path, dialect: str = "h3api") -> None:
        self.server, self.state = server, state
        self.before = ports(server)
        command = [sys.executable, "-m", "mews.harness.cli", "conform", url_of(server, dialect), "--allow-changes"]
        command += ["--dialect", dialect, *(["--ca", ca_of(server)] if dialect == "redfish" else [])]
        quirks = state / "brisk.yaml"
        quirks.write_text(quirks.read_text().replace("dialect: h3api", f"dialect: {dialect}"))
        self.log = (state / "log").open("wb")
        self.process = subprocess.Popen(
            [*command, "--device", "000100", "--quirks", str(state / "brisk.yaml")],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "MEWS_REDFISH_PASSWORD": "hush"},
            stdout=self.log,
            stderr=self.log,
        )

    def until_changed(self) -> None:
        """The first device has been moved."""
        until(lambda: ports(self.server) != self.before or self.process.poll() is not None, "a change of the table")
        assert self.process.poll() is None, self.said()

    def ended(self) -> int:
        code = self.process.wait(30)
        self.log.close()
        return code

    def said(self) -> str:
        return (self.state / "log").read_text()

    def guard(self) -> int:
        from mews.harness.conformance.restore import read_file

        [file] = restore_files(self.state)
        return read_file(file).plan.guard


def until(holds: Callable[[], Any], what: str, patience_s: float = 90.0) -> None:
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come within {patience_s:g} s"
        threading.Event().wait(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_with_the_table_as_before(number, server, state):
    run = Run(server, state)
    run.until_changed()
    run.process.send_signal(number)
    assert run.ended() == 130, run.said()
    assert ports(server) == run.before
    assert restore_files(state) == []


@pytest.mark.parametrize("dialect", ["h3api", "resource-pool", "redfish"])
def test_kill_9_is_made_good_by_the_guard_also_what_was_under_way(dialect, server, state):
    run = Run(server, state, dialect)
    run.until_changed()
    guard = run.guard()
    run.process.kill()
    run.ended()
    until(lambda: restore_files(state) == [], "the end of the guard's work")
    assert ports(server) == run.before
    until(lambda: not Path(f"/proc/{guard}/stat").exists() or dead(guard), "the guard's end")


def test_with_the_guard_killed_too_the_next_start_restores(server, state, capsys):
    run = Run(server, state)
    run.until_changed()
    os.kill(run.guard(), signal.SIGKILL)
    run.process.kill()
    run.ended()
    assert exit_code(["conform", url_of(server, "h3api")]) == 0
    assert "an interrupted run left it; restoring the table" in capsys.readouterr().err
    assert ports(server) == run.before
    assert restore_files(state) == []


def test_restore_undoes_an_interrupted_run_and_leaves_what_others_moved_since(server, state, capsys):
    run = Run(server, state)
    run.until_changed()
    os.kill(run.guard(), signal.SIGKILL)
    run.process.kill()
    run.ended()
    until(lambda: not server.rack.speak("A", lambda box: box.operations.pending()), "the end of what was under way")
    with server.rack.box("A") as box:
        box.edits.edit("000100", "3", server.rack.clock.now())
    [file] = restore_files(state)
    text = file.read_text()
    assert exit_code(["conform", "--restore", str(file)]) == 0
    assert ports(server)["000100"] == "3"
    plan = json.loads(text)
    plan["devices"]["000100"]["seen"].append("3")
    file.write_text(json.dumps(plan))
    assert exit_code(["conform", "--restore", str(file)]) == 0
    assert ports(server) == run.before
    assert "the table is as before" in capsys.readouterr().out


def test_a_second_run_on_the_same_chassis_is_refused_while_one_goes_on(server, state, capsys):
    run = Run(server, state)
    run.until_changed()
    assert exit_code(["conform", url_of(server, "h3api"), "--allow-changes", "--device", "000100"]) == 2
    assert f"is going on (pid {run.process.pid})" in capsys.readouterr().err
    run.process.send_signal(signal.SIGTERM)
    run.ended()


def test_nothing_is_changed_where_the_restore_file_cannot_be_written(server, state, capsys):
    (state / "state").write_text("a file where the folder should be")
    seq = server.rack.feed.seq
    assert exit_code(["conform", url_of(server, "h3api"), "--allow-changes", "--device", "000100"]) == 3
    assert "the restore file cannot be written, so nothing is changed" in capsys.readouterr().err
    assert server.rack.feed.since(seq) == []


def test_nothing_is_changed_where_the_guard_does_not_start(server, state, capsys, monkeypatch):
    monkeypatch.setattr("mews.harness.conformance.guard.sys.executable", "/bin/false")
    seq = server.rack.feed.seq
    assert exit_code(["conform", url_of(server, "h3api"), "--allow-changes", "--device", "000100"]) == 3
    assert "the guard that would restore the table does not start" in capsys.readouterr().err
    assert server.rack.feed.since(seq) == []
    assert restore_files(state) == []


def test_without_an_idle_device_what_only_reads_is_judged_and_the_run_is_incomplete(server, state, capsys):
    seq = server.rack.feed.seq
    assert exit_code(["conform", url_of(server, "h3api"), "--allow-changes"]) == 4
    out = capsys.readouterr().out
    assert "passed   2.array" in out
    assert "NOT JUDGED: what moves devices: no device is free; name idle ones with --device" in out
    assert out.splitlines()[-1].startswith("INCOMPLETE in ")
    assert server.rack.feed.since(seq) == []
    assert exit_code(["conform", url_of(server, "h3api"), "--allow-changes", "--device", "nope"]) == 2
    assert "--device nope: not listed; devices: 000100" in capsys.readouterr().err


def test_a_table_that_cannot_be_put_back_is_told(state, capsys):
    with serving((WRONGS["detach-lies"],), "h3api") as server:
        free(server)
        url = url_of(server, "h3api")
        code = exit_code(["conform", url, "--allow-changes", "--quirks", str(state / "brisk.yaml")])
        assert ports(server)["000100"] == "1"
        assert ports(server)["000200"] is None, "no second device was touched"
    assert code == 1
    on_result = capsys.readouterr().out
    assert "NOT RESTORED: device 000100 does not go back to no port, it is on port '1'" in on_result
    assert 'DELETE /h3api/v1/allocation {"gep": "0", "dev_gid": "000100"}' in on_result
    [file] = restore_files(state)
    assert f"mews conform --restore {file} tries again" in on_result


def dead(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

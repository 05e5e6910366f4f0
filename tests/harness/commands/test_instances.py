"""What `mews up` writes down, and how `mews down` ends it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from mews.harness.cli import exit_code
from mews.harness.commands.instances import MARK, UpInstance, alive, born, offspring, record, recorded, state_folder


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def children():
    begun = []

    def begin(code, **environment):
        process = subprocess.Popen(
            [sys.executable, "-c", code + "\nprint('ready', flush=True)\nsignal.pause()"],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
        )
        process.stdout.readline()
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.wait()
        process.stdout.close()


def an_instance(process, folder, name="mews"):
    folder.mkdir(exist_ok=True)
    instance = UpInstance(name, process.pid, born(process.pid), str(folder))
    record(instance)
    return instance


def test_instances_are_kept_under_the_runtime_folder_or_in_the_home(tmp_path, monkeypatch):
    assert state_folder() == tmp_path / "run" / "mews"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "mews"


def test_a_later_process_with_the_same_number_is_not_taken_for_the_instance():
    assert alive(UpInstance("a", os.getpid(), born(os.getpid()), "/x"))
    assert not alive(UpInstance("a", os.getpid(), "1", "/x"))
    assert not alive(UpInstance("a", 2**22 + 1, "", "/x"))


def test_a_file_that_is_none_of_ours_is_passed_over(tmp_path):
    record(UpInstance("a", 1, "2", "/x"))
    (state_folder() / "b.json").write_text("{")
    (state_folder() / "c.json").write_text(json.dumps({"name": "c"}))
    (state_folder() / "d.json").write_text(json.dumps({"name": "d", "pid": "1", "born": "2", "folder": None}))
    (state_folder() / "e.json").write_text("[1, 2]")
    (state_folder() / "f.json").mkdir()
    assert [instance.name for instance in recorded()] == ["a"]


def test_down_ends_the_process_and_removes_what_it_wrote(tmp_path, children, capsys, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    process = children("import signal")
    folder = tmp_path / "there"
    an_instance(process, folder)
    runtime = tmp_path / "mews-x"
    (runtime / "host-1" / "device-plugins").mkdir(parents=True)
    nodes = {"host-1": {"device_plugins": str(runtime / "host-1" / "device-plugins")}}
    (folder / "ready.json").write_text(json.dumps({"nodes": nodes}))
    (folder / "mine.txt").write_text("keep me")
    assert exit_code(["down"]) == 0
    assert process.wait(5) == -signal.SIGTERM
    assert not runtime.exists()
    assert sorted(path.name for path in folder.iterdir()) == ["mine.txt"]
    assert recorded() == []
    assert capsys.readouterr().out == "mews: ended\n"


@pytest.mark.parametrize("nodes", [{"host-1": {"device_plugins": "PRECIOUS/host-1/device-plugins"}}, {"host-1": 7}, 7])
def test_down_removes_no_folder_that_is_not_a_runtime_folder(nodes, tmp_path, children, capsys):
    precious = tmp_path / "precious"
    precious.mkdir()
    folder = tmp_path / "there"
    an_instance(children("import signal"), folder)
    (folder / "ready.json").write_text(json.dumps({"nodes": nodes}).replace("PRECIOUS", str(precious)))
    assert exit_code(["down"]) == 0
    assert precious.exists()
    capsys.readouterr()


def test_down_finds_what_a_killed_instance_left_running(tmp_path, children, capsys):
    folder = tmp_path / "there"
    process = children("import signal", **{MARK: str(folder)})
    an_instance(process, folder)
    left = children("import signal", **{MARK: str(folder)})
    process.kill()
    process.wait()
    assert list(offspring(str(folder))) == [left.pid]
    assert exit_code(["down", "--all"]) == 0
    assert left.wait(5) == -signal.SIGTERM
    capsys.readouterr()


def test_down_ends_no_process_that_is_older_than_the_instance_whose_mark_it_bears(tmp_path, children, capsys):
    folder = tmp_path / "there"
    older = children("import signal", **{MARK: str(folder)})
    process = children("import signal")
    later = str(int(born(process.pid)) + 1)
    folder.mkdir()
    record(UpInstance("mews", process.pid, later, str(folder)))
    assert exit_code(["down"]) == 0
    assert [older.poll(), process.poll()] == [None, None]
    capsys.readouterr()


def test_down_names_what_runs_when_asked_for_something_else(tmp_path, children, capsys):
    an_instance(children("import signal"), tmp_path / "there", "other")
    assert exit_code(["down", "--name", "mews"]) == 2
    assert capsys.readouterr().err == "--name mews: no such instance; running: other\n"


def test_down_of_all_with_none_is_well(capsys):
    assert exit_code(["down", "--all"]) == 0
    assert capsys.readouterr().out == "nothing to end\n"


def test_up_refuses_a_name_that_is_taken(tmp_path, children, capsys):
    an_instance(children("import signal"), tmp_path / "there")
    assert exit_code(["up", "--dir", str(tmp_path / "here")]) == 2
    assert "--name mews: already runs" in capsys.readouterr().err

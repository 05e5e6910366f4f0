"""Runtime folders lose their owner, and `sweep` removes them with what still runs for them."""

import json
import os
import signal
import subprocess
import sys

import pytest

from mews.harness.errors import Lacks
from mews.harness.leftovers import RuntimeFolder, born, make_runtime_folder, runtime_folder, sweep

SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture(autouse=True)
def base(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def orphaned(base):
    """A folder of an owner that is dead: its number is taken by a later process."""
    folder = base / "mews-orphan"
    folder.mkdir()
    (folder / "owner.json").write_text(json.dumps({"pid": os.getpid(), "born": "1"}))
    return folder


def test_the_runtime_folder_is_the_users_where_it_can_be_written_to(base, monkeypatch):
    assert runtime_folder() == str(base)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere")
    assert runtime_folder() is None


def test_where_no_folder_can_be_made_that_is_told(monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/nowhere")
    with pytest.raises(Lacks, match=r"no folder for sockets and servers: .*; set XDG_RUNTIME_DIR or TMPDIR"):
        make_runtime_folder("mews-")


def test_a_folder_whose_owner_lives_stays(base):
    folder = base / "mews-mine"
    folder.mkdir()
    owned = RuntimeFolder(folder)
    assert sweep() == []
    assert folder.exists()
    owned.release()
    assert not folder.exists()


def test_a_folder_whose_owner_is_dead_goes_with_its_processes(orphaned, base):
    marked = subprocess.Popen(SLEEP, env={**os.environ, "MEWS_OWNER": str(orphaned)})
    inside = subprocess.Popen(SLEEP, cwd=orphaned)
    other = subprocess.Popen(SLEEP, env={**os.environ, "MEWS_OWNER": f"{orphaned}-2"}, cwd=base)
    try:
        assert sweep() == [orphaned]
        assert [process.wait(5) for process in (marked, inside)] == [-signal.SIGKILL] * 2
        assert born(other.pid)
    finally:
        for process in (marked, inside, other):
            process.kill()
            process.wait()
    assert not orphaned.exists()


def test_what_bears_no_owner_is_none_of_ours(base):
    (base / "mews-strange").mkdir()
    assert sweep() == []
    assert (base / "mews-strange").exists()


def test_an_owner_that_cannot_be_read_is_dead(orphaned):
    (orphaned / "owner.json").write_text("{")
    assert sweep() == [orphaned]

"""Runtime folders lose their owner, and `sweep` removes them with what still runs for them."""

import json
import os
import signal
import subprocess
import sys

import pytest

from mews.harness.errors import RequirementError
from mews.harness.leftovers import RuntimeFolder, make_memory_folder, make_runtime_folder, runtime_folder, sweep

SLEEP = [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"]


@pytest.fixture(autouse=True)
def base(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "shm").mkdir()
    monkeypatch.setattr("mews.harness.leftovers._MEMORY", tmp_path / "shm")
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
    with pytest.raises(RequirementError, match=r"no folder for sockets and servers: .*; set XDG_RUNTIME_DIR or TMPDIR"):
        make_runtime_folder("mews-")


def test_a_folder_in_memory_is_one_of_the_run(base, monkeypatch):
    owned = make_memory_folder()
    assert owned.folder.parent == base / "shm"
    assert owned.folder.stat().st_mode & 0o777 == 0o700
    assert sweep() == []
    (owned.folder / "owner.json").write_text(json.dumps({"pid": os.getpid(), "born": "1"}))
    assert sweep() == [owned.folder]
    monkeypatch.setattr("mews.harness.leftovers._MEMORY", base / "nowhere")
    assert make_memory_folder() is None


def test_a_folder_whose_owner_lives_stays(base):
    folder = base / "mews-mine"
    folder.mkdir()
    owned = RuntimeFolder(folder)
    assert sweep() == []
    assert folder.exists()
    owned.release()
    assert not folder.exists()


@pytest.fixture
def sleeping():
    """Starts processes that sleep, and waits until they do: before that their environment cannot be read."""
    begun = []

    def begin(**given):
        process = subprocess.Popen(SLEEP, stdout=subprocess.PIPE, **given)
        begun.append(process)
        assert process.stdout.readline()
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_a_folder_whose_owner_is_dead_goes_with_its_processes(orphaned, base, sleeping):
    marked = sleeping(env={**os.environ, "MEWS_OWNER": str(orphaned)}, cwd=base)
    other = sleeping(env={**os.environ, "MEWS_OWNER": f"{orphaned}-2"}, cwd=base)
    assert sweep() == [orphaned]
    assert marked.wait(5) == -signal.SIGKILL
    assert other.poll() is None
    assert not orphaned.exists()


def test_who_merely_looks_at_what_a_dead_run_left_behind_lives_on(orphaned, sleeping):
    (orphaned / "chassis.log").write_text("it said\n")
    inside = sleeping(cwd=orphaned)
    with (orphaned / "chassis.log").open() as log:
        reading = sleeping(stdin=log)
    marked = sleeping(env={**os.environ, "MEWS_OWNER": str(orphaned)})
    assert sweep() == [orphaned]
    assert marked.wait(5) == -signal.SIGKILL  # so it was looked for, and the others left alone
    assert [inside.poll(), reading.poll()] == [None, None]


@pytest.mark.parametrize("owner", ['{"pid": 1, "born": "99999999999999999"}', '{"pid": 0, "born": ""}', "{", "7"])
def test_what_cannot_be_proved_to_be_younger_than_its_owner_lives_on(owner, orphaned, sleeping):
    (orphaned / "owner.json").write_text(owner)
    marked = sleeping(env={**os.environ, "MEWS_OWNER": str(orphaned)})
    assert sweep() == [orphaned]
    assert marked.poll() is None


def test_processes_of_the_first_owner_are_still_known_when_others_have_taken_the_folder_over(orphaned, sleeping):
    marked = sleeping(env={**os.environ, "MEWS_OWNER": str(orphaned)})
    taken = RuntimeFolder.claim(orphaned)
    taken.abandon()
    assert json.loads((orphaned / "owner.json").read_text()) == {"pid": 0, "born": "", "since": "1"}
    assert sweep() == [orphaned]
    assert marked.wait(5) == -signal.SIGKILL


def test_what_bears_no_owner_is_none_of_ours(base):
    (base / "mews-strange").mkdir()
    assert sweep() == []
    assert (base / "mews-strange").exists()


def test_an_owner_that_cannot_be_read_is_dead(orphaned):
    (orphaned / "owner.json").write_text("{")
    assert sweep() == [orphaned]

"""Folders with keys are removed after their process has ended, also by SIGKILL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_MAKE = """
import sys
from mews.emulator import short_lived_folders
print(short_lived_folders.folder_for_a_while(), flush=True)
sys.stdin.read()
"""


class Process:
    """A process that has made a folder, and ends with its standard input."""

    def __init__(self) -> None:
        self.running = subprocess.Popen([sys.executable, "-c", _MAKE], stdin=-1, stdout=-1, text=True)
        assert self.running.stdout is not None
        self.folder = Path(self.running.stdout.readline().strip())

    def end(self) -> None:
        self.running.communicate()

    def kill(self) -> None:
        self.running.kill()
        self.running.communicate()


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.fixture
def one() -> Iterator[Process]:
    process = Process()
    yield process
    process.kill()


def test_a_folder_is_its_users_alone_and_goes_with_its_process(one: Process) -> None:
    assert one.folder.stat().st_mode & 0o777 == 0o700
    one.end()
    assert not one.folder.exists()


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_of_a_living_one(
    one: Process, tmp_path: Path
) -> None:
    killed = Process()
    (killed.folder / "key.pem").write_text("secret", encoding="ascii")
    killed.kill()
    assert killed.folder.exists()
    (tmp_path / "mews-identity-of-nobody").write_text("a file", encoding="ascii")
    third = Process()
    assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == sorted([one.folder, third.folder])
    third.end()


def test_a_folder_that_was_taken_for_a_left_one_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mews.emulator import short_lived_folders

    taken = []
    make = short_lived_folders.tempfile.mkdtemp

    def make_and_lose(prefix: str) -> str:
        folder = Path(make(prefix=prefix, dir=tmp_path))
        if not taken:
            taken.append(folder)
            folder.rename(tmp_path / "elsewhere")
            folder.mkdir()
        return str(folder)

    def open_the_old(path: Path, flags: int) -> int:
        return opened(tmp_path / "elsewhere" if path in taken else path, flags)

    opened = short_lived_folders.os.open
    monkeypatch.setattr(short_lived_folders.tempfile, "mkdtemp", make_and_lose)
    monkeypatch.setattr(short_lived_folders.os, "open", open_the_old)
    assert short_lived_folders.folder_for_a_while() not in taken

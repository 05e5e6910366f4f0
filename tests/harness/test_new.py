"""``mews new`` writes what runs, and refuses what it cannot write."""

import os
import subprocess
import sys

import pytest

from mews.harness.cli import exit_code
from mews.harness.commands.new import KINDS

STANDALONE = [kind for kind in KINDS if kind != "system"]
"""A stack finds a system by its entry point: tests/harness/extending installs one."""


def written(kind, folder):
    assert exit_code(["new", kind, str(folder)]) == 0
    return folder


@pytest.mark.parametrize("kind", STANDALONE)
def test_what_it_writes_passes_its_own_test_where_it_lies(kind, tmp_path):
    folder = written(kind, tmp_path / "my-thing")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_it_fills_in_every_name(kind, tmp_path, capsys):
    folder = written(kind, tmp_path / "my-thing")
    told = capsys.readouterr().out
    for path in folder.iterdir():
        assert "@" not in path.read_text().replace("@pytest", "").replace("@dataclass", ""), path
        assert str(path) in told
    assert (folder / "test_my_thing.py").is_file()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scenario"])
def test_it_names_itself_by_one_line_of_its_package(kind, tmp_path):
    lines = (written(kind, tmp_path / "my-thing") / "pyproject.toml").read_text().splitlines()
    at = lines.index(f'[project.entry-points."mews.{kind}s"]')
    assert lines[at + 1].startswith('my-thing = "my_thing:')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["soap", "x"], "soap: must be one of scenario, dialect, fault, system"),
        (["fault", "Bad Name"], "Bad Name: its name becomes the fault's: must be small letters and digits"),
        (["dialect", "json"], "json: its name becomes a module's, and there is a module json already"),
        (["scenario", "full"], "full: is not empty: has a.txt"),
        (["scenario", "file"], "file: is not a folder"),
        (["scenario", "file/below"], "file/below: is not a folder"),
    ],
)
def test_what_cannot_be_written_is_one_line(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").touch()
    (tmp_path / "file").touch()
    assert exit_code(["new", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error


def test_a_folder_that_may_not_be_written_to_is_one_line(tmp_path, monkeypatch, capsys):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    assert exit_code(["new", "fault", str(tmp_path / "mine")]) == 2
    assert "cannot be written: Permission denied" in capsys.readouterr().err

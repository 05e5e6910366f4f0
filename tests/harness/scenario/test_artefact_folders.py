"""Whose artefacts a folder has."""

from __future__ import annotations

import json
from pathlib import Path

from mews.harness.scenario.artefacts import own_folder
from mews.harness.scenario.result import Result


def result(path: str, reason: str = "") -> Result:
    return Result("same", path, "embedded", "virtual", 1, "failed", reason)


def test_two_files_of_one_name_have_a_folder_each_and_a_file_has_its_own_again(tmp_path: Path) -> None:
    first, second = own_folder(tmp_path, result("a/x.yaml")), own_folder(tmp_path, result("b/x.yaml"))
    assert [first.name, second.name] == ["same-1", "same-1-2"]
    assert own_folder(tmp_path, result("b/x.yaml", "anew")) == second
    assert json.loads((second / "result.json").read_text())["reason"] == "anew"
    assert json.loads((first / "result.json").read_text())["path"] == "a/x.yaml"


def test_a_folder_that_nobody_can_tell_the_owner_of_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "same-1").mkdir()
    (tmp_path / "same-1" / "mine.txt").write_text("kept")
    assert own_folder(tmp_path, result("a/x.yaml")).name == "same-1-2"

"""A failed run names its seed, the command that replays it, and its report."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mews.harness.cli import exit_code

FAILING = """# A node that does not exist is asserted.
apiVersion: mews/v1
kind: Scenario
metadata: {name: bad}
hardware: demo
steps:
  - assert: {object: {kind: Node, metadata: {name: host-9}}}
"""


@pytest.fixture
def failing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad file.yaml").write_text(FAILING, encoding="utf-8")
    return "bad file.yaml"


def replayed(error: str) -> list[str]:
    """The words after ``mews`` of the command that standard error names."""
    found = re.search(r"^seed \d+ of bad failed; replay: mews (.*?)(?:; report: (.*))?$", error, re.MULTILINE)
    assert found is not None, error
    assert found[2] is not None and Path(found[2]).is_file(), error
    return shlex.split(found[1])


def test_the_line_is_the_command_that_fails_again_with_the_same_seed(failing, capsys):
    assert exit_code(["run", failing, "--seeds", "7-8", "--set", "metadata.labels.a=b"]) == 1
    words = replayed(capsys.readouterr().err)
    assert words == ["run", failing, "--seed", "7", "--set", "metadata.labels.a=b"]
    assert exit_code(words) == 1
    assert replayed(capsys.readouterr().err) == words


def test_a_run_that_passes_prints_no_such_line(capsys):
    assert exit_code(["run", "demo"]) == 0
    assert "replay:" not in capsys.readouterr().err

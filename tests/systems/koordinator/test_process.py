"""The scheduler as a process: what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from mews.systems.koordinator.__main__ import config_of, main
from mews.systems.koordinator.config import KoordinatorConfig


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "device_choice: best\n",
            "device_choice: 'best': must be one of auto, minor, leastAllocated, mostAllocated, b",
        ),
        ("gang_wait_s: -1\n", "gang_wait_s: -1: must be seconds above 0"),
        ("colour: red\n", "must be a mapping with scheduler_name"),
        ("[]\n", "must be a mapping with scheduler_name"),
        ("scheduler_name: 3\n", "scheduler_name: 3: must be a text"),
    ],
)
def test_a_file_that_cannot_be_is_one_line_and_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert main(["scheduler", "--config", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(file) in error and says in error


def test_a_certificate_wants_its_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scheduler", "--certificate", "x"]) == 2
    assert capsys.readouterr().err == "--certificate and --key: must be given together\n"


def test_the_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("device_choice: minor\ngang_wait_s: 5\nnodes: [a]\n")
    assert config_of(file) == KoordinatorConfig(device_choice="minor", gang_wait_s=5, nodes=("a",))

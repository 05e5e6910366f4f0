"""A disk that is full, a place where no file can be, an address that is not this machine's: one line each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mews.emulator.ready_file import write_ready
from mews.harness.cli import exit_code
from mews.harness.package import room
from mews.project import DOCUMENTATION


def test_a_ready_file_in_an_impossible_place_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "r.json").mkdir()
    with pytest.raises(OSError, match=rf"^--ready {tmp_path}/r.json: cannot be written: Is a directory$"):
        write_ready(tmp_path / "r.json", {"a": 1})
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize("port", [8080, 0])
def test_a_foreign_address_is_named_once(capsys: pytest.CaptureFixture[str], port: int) -> None:
    assert exit_code(["serve", "--hardware", "demo", "--listen", f"192.0.2.1:{port}"]) == 3
    line = f"192.0.2.1:{port}: cannot listen there: Cannot assign requested address"
    assert capsys.readouterr().err == f"{line} (see {DOCUMENTATION})\n"


@pytest.mark.wall
def test_a_chassis_process_that_cannot_start_ends_with_its_reason(tmp_path: Path) -> None:
    """Its lifeline is open meanwhile, and a thread waits at it."""
    hardware = room("fixtures") / "hardware" / "demo.yaml"
    state = tmp_path / "no" / "table.sqlite"
    argv = [
        sys.executable,
        "-m",
        "mews.emulator.serve",
        "--lifeline",
        "--hardware",
        str(hardware),
        "--state",
        str(state),
    ]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.wait(60) == 3
    assert process.stderr is not None
    lines = process.stderr.read().splitlines()
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    assert len(lines) == 1
    assert lines[0].startswith(f"{state}: ")

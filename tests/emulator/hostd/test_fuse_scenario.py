"""The shipped scenario that only a FUSE host can show, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mews.emulator.hostd import fuse_mount

ROOT = Path(__file__).parents[3]
LACKING = fuse_mount.lacking()


@pytest.mark.wall
@pytest.mark.skipif(LACKING is not None, reason=f"no FUSE: {LACKING}")
def test_a_write_that_blocks_is_shown_by_its_scenario():
    command = [sys.executable, "-m", "mews.harness.cli", "run", "scenarios/34-busy-write-blocks.yaml", "--time", "wall"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, env=environment)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "1 passed"), ended.stdout + ended.stderr

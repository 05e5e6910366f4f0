"""Programs of others, built from their public sources, that tests run against ours. None of them is distributed."""

from __future__ import annotations

import atexit
import lzma
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

FOLDER = "MEWS_PROGRAMS_DIR"
"""Environment: the folder with ``SYSTEM/NAME.xz``."""


def foreign_program(name: str) -> Path:
    """An executable copy of ``SYSTEM/NAME``, one for all tests of this process; the test is skipped without it."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        pytest.skip(f"{FOLDER} is not set: {name} is not here")
    packed = Path(folder) / f"{name}.xz"
    if not packed.exists():
        pytest.skip(f"{FOLDER}: {packed} is not there")
    return _unpacked(packed)


@cache
def _unpacked(packed: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mews-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / packed.stem
    with lzma.open(packed) as source, program.open("wb") as target:
        shutil.copyfileobj(source, target)
    program.chmod(0o700)
    return program

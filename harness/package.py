"""The package's own files, wherever it lies: in a wheel all rooms are beside each other, in a checkout they are the
repository's top folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import mews

ROOMS = ("bugs", "emulator", "fixtures", "harness", "kube", "scenarios", "systems")


def room(name: str) -> Path:
    """Return the folder of one of ``ROOMS``."""
    return Path(str(files(f"mews.{name}")))


def sources() -> Iterator[tuple[str, Path]]:
    """Yield every file of the package: its path below ``mews/`` and where it is, in a fixed order; what was compiled
    left out."""
    top = Path(mews.__file__).parent
    yield from ((path.name, path) for path in sorted(top.iterdir()) if path.is_file())
    for name in (*ROOMS, "listening"):
        root = room(name)
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for file in sorted(names):
                if not file.endswith(".pyc"):
                    path = Path(folder) / file
                    yield f"{name}/{path.relative_to(root)}", path


def copy_to(target: Path) -> None:
    """Make a copy of the whole package in a folder that is not there yet."""
    for inside, path in sources():
        there = target / inside
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, there)

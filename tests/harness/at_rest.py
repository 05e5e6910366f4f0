"""What others of a machine can read below a folder, judged by the modes of files and of the folders around them."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def open_files(root: Path) -> Iterator[Path]:
    """Regular files below that somebody else can open: a bit of the file's, and the way to it."""
    for path in sorted(root.iterdir()):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode) and mode & OTHERS:
            yield from open_files(path)
        elif stat.S_ISREG(mode) and mode & OTHERS:
            yield path


def holders(root: Path, secrets: Iterable[bytes]) -> list[Path]:
    """Files below that hold one of the secrets."""
    wanted = tuple(secrets)
    found = []
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            found += [path] if any(each in content for each in wanted) else []
    return found

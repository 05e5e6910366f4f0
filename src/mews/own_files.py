"""Files and folders that their owner alone may read, whatever the umask says: what users write into a cluster (Secrets,
tokens in logs and arguments) ends up in journals, reports, recordings and results.

``tests/harness/test_private_files.py`` fails for a file that is written in any other way.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FILE, _FOLDER = 0o600, 0o700
_RAW = getattr(os, "O_BINARY", 0)
"""Windows writes other ends of lines without it."""


def make_own_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing. One that is there already keeps its mode.

    Raises OSError.
    """
    if not folder.parent.exists():
        make_own_folder(folder.parent)
    folder.mkdir(mode=_FOLDER, exist_ok=True)


def write_own(path: Path, content: str | bytes) -> None:
    """Write a file, also where another was there before: that one is replaced, never written into, since somebody else
    may have made it, linked it or have it open.

    Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _RAW, _FILE), content)


def write_named(path: Path, content: str) -> None:
    """Write the file that a user named: as ``write_own``, but a pipe, a device, a link such as ``/dev/stdout``, or a
    file that cannot be replaced (a mounted one) is written into.

    Raises OSError.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        _write(_opened(path, os.O_TRUNC), content)
        return
    try:
        write_own(path, content)
    except OSError:
        if not path.is_file():
            raise
        _write(_opened(path, os.O_TRUNC), content)


def append_own(path: Path) -> BinaryIO:
    """Return a file to append to.

    Raises OSError.
    """
    return os.fdopen(_opened(path, os.O_APPEND), "ab")


def _opened(path: Path, flags: int) -> int:
    """A regular file of ours gets its mode before anything is written; that of another's is not ours to set."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _RAW | flags, _FILE)
    found = os.fstat(descriptor)
    # Windows has neither: what a user makes there nobody else may read, but for those whom the folder lets in.
    if hasattr(os, "geteuid") and stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        os.fchmod(descriptor, _FILE)
    return descriptor


def _write(descriptor: int, content: str | bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)

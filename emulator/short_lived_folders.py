"""Temporary folders of one process, which are removed even if it is killed."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "mews-identity-"


def folder_for_a_while() -> Path:
    """Return a folder that nobody else may enter and that goes with this process: at its end, or, after a kill -9, as
    soon as another process asks for one. A lock on the folder says that its process lives; Windows has none.

    Raises OSError.
    """
    if _has_locks():
        _remove_left()
        folder = _locked_folder()
    else:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _has_locks() -> bool:
    try:
        import fcntl  # noqa: F401 - whether there is one
    except ImportError:
        return False
    return True


def _locked_folder() -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        if _take(held) and _is_there(folder, held):
            return folder  # the descriptor stays open as long as the process lives
        os.close(held)


def _remove_left() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # another user's, or gone
            continue
        try:
            if os.fstat(held).st_uid == os.geteuid() and _take(held):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(held)


def _take(held: int) -> bool:
    import fcntl

    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(folder: Path, held: int) -> bool:
    """Nobody took it for one that is left between its making and the lock."""
    try:
        return os.path.samestat(os.stat(folder), os.fstat(held))
    except FileNotFoundError:
        return False

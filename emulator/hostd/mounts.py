"""Taking FUSE mounts away: for whoever serves them, and for whoever finds what a killed one left behind."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

_DETACH = 2
"""MNT_DETACH of umount2(2)."""


def unmount(point: Path) -> None:
    """Take a mount away, also one whose process is dead."""
    if not _is_mounted(point):
        return
    tool = shutil.which("fusermount3")
    if tool is not None:
        subprocess.run([tool, "-u", "-z", str(point)], capture_output=True, check=False)
    else:  # root needs no program, and may have none on its PATH
        ctypes.CDLL(None).umount2(os.fsencode(point), _DETACH)


def _is_mounted(point: Path) -> bool:
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        return any(line.split()[1] == str(point) for line in mounts)

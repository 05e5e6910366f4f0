"""Writes the files of a ConfigMap's or Secret's volume so that a reader sees all old ones or all new ones.

Source: upstream pkg/volume/util/atomic_writer.go. A volume's folder holds the files in a folder of their own, the link
``..data`` to it, and for each file a link through ``..data``. An update makes another folder and replaces that link.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

_DATA, _NEXT_DATA = "..data", "..data_tmp"


class VolumeFile(Struct, frozen=True):
    """A file of a volume: its bytes and its mode."""

    data: bytes
    mode: int


Contents = Mapping[str, VolumeFile]
"""Path below the volume's folder -> file."""


def write_contents(folder: Path, contents: Contents) -> bool:
    """Make the folder hold exactly these files; returns whether anything changed. Blocking.

    Paths must be relative, and lead nowhere out of the folder: the API refuses others.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    data = folder / _DATA
    old = Path(os.readlink(data)).name if data.is_symlink() else ""
    if old and _read(folder / old) == dict(contents):
        return False
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    fresh.chmod(0o755)
    for path, file in contents.items():
        _write(fresh / path, file)
    link = folder / _NEXT_DATA
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    shown = {PurePosixPath(path).parts[0] for path in contents}
    for name in sorted(shown):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{_DATA}/{name}")
    link.replace(data)
    for name in os.listdir(folder):
        if name not in shown and not name.startswith(".."):
            (folder / name).unlink()
    if old:
        shutil.rmtree(folder / old)
    return True


def _write(path: Path, file: VolumeFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.data)
    path.chmod(file.mode)


def _read(folder: Path) -> dict[str, VolumeFile]:
    return {
        str(path.relative_to(folder)): VolumeFile(path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file()
    }

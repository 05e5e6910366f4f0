"""Files that come with the package: their names, and the file that a name stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mews.harness.errors import BadInputError
from mews.harness.package import room
from mews.names import did_you_mean, nearest

_FOLDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "hardware": ("fixtures", "hardware"),
        "profile": ("fixtures", "profiles"),
        "quirks": ("fixtures", "quirks"),
        "scenario": ("scenarios",),
    }
)
"""Kind of file -> its room, and the folder in there."""

_LISTED = MappingProxyType(
    {"hardware": "hardware", "profile": "profiles", "quirks": "profiles", "scenario": "scenarios"}
)
"""Kind of file -> what `mews list` calls them."""

SCENARIO = re.compile(r"^[^#\n]*\bkind:\s*[\"']?Scenario\b", re.MULTILINE)
"""How a scenario says that it is one."""


def folder_of(kind: str) -> Path:
    """Return where the files of that kind are."""
    first, *rest = _FOLDERS[kind]
    return room(first).joinpath(*rest)


def shipped(kind: str, name: str) -> Path | None:
    """Return the file of that kind (``hardware``, ``scenario``, …) and name without ending, or None."""
    path = folder_of(kind) / f"{name}.yaml"
    return path if path.is_file() else None


def shipped_files(kind: str) -> dict[str, Path]:
    """Name -> file, by name; what scenarios include is no scenario."""
    folder = folder_of(kind)
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.yaml"))}
    if kind != "scenario":
        return found
    return {name: path for name, path in found.items() if SCENARIO.search(path.read_text(encoding="utf-8"))}


def file_of(kind: str, path: Path) -> Path:
    """Return the path, or where it is nothing the file, or of scenarios the folder, of that name that comes with the
    package.

    What lies in ``scenarios`` and ``fixtures`` is found by the path that it has in a checkout as well: the pages show
    such paths, and hold for who has installed the package.
    """
    if path.exists():
        return path
    return shipped(kind, str(path)) or _folder_in(kind, path) or _as_in_a_checkout(path) or path


def existing(kind: str, path: Path, option: str = "") -> Path:
    """``file_of`` for what must be there.

    Raises BadInputError.
    """
    found = file_of(kind, path)
    if not found.exists():
        raise BadInputError(f"{option} {path}: {missing(kind, path)}".lstrip())
    return found


def existing_file(kind: str, path: Path, option: str) -> Path:
    """Likewise, and one file alone.

    Raises BadInputError.
    """
    found = existing(kind, path, option)
    if found.is_dir():
        names = ", ".join(nearest(path, [name for name, file in shipped_files(kind).items() if found in file.parents]))
        among = f": name one of them, such as {names}" if names else ""
        raise BadInputError(f"{option} {path}: is a folder{among}".lstrip())
    return found


def missing(kind: str, name: str | Path) -> str:
    """Return what is wrong with a path that is no file and no shipped name, to stand after it."""
    text = f"no such file, and no included {'scenario' if kind == 'scenario' else f'{kind} file'} of that name"
    return f"{text}{did_you_mean(name, shipped_files(kind))}; `mews list {_LISTED[kind]}` lists them"


def recording_folder(path: Path) -> Path:
    """Return the folder, or where it is nothing the included recording of a real cluster of that name.

    Raises BadInputError.
    """
    included = room("fixtures") / "recordings"
    names = sorted(each.name for each in included.iterdir() if each.is_dir())
    if path.is_dir():
        return path
    if str(path) in names:
        return included / path
    raise BadInputError(
        f"--from {path}: must be a folder of collected files, or an included recording: {', '.join(names)}"
    )


def _folder_in(kind: str, path: Path) -> Path | None:
    if kind != "scenario" or path.is_absolute() or ".." in path.parts or not path.parts:
        return None
    inside = folder_of(kind) / path
    return inside if inside.is_dir() else None


def _as_in_a_checkout(path: Path) -> Path | None:
    first, *rest = path.parts or ("",)
    if first not in ("fixtures", "scenarios") or ".." in rest:
        return None
    inside = room(first).joinpath(*rest)
    return inside if inside.exists() else None

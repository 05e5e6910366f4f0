"""Reads the folders of the releases. Pure: the same files, the same answers."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from mews.kube.releases.errors import ReleaseError

DEFAULT = "1.34"
"""The release of a cluster that names none."""


@cache
def names() -> tuple[str, ...]:
    """The releases that there are, the oldest first."""
    folders = (entry.name for entry in files(__package__).iterdir() if entry.is_dir())
    return tuple(sorted((name for name in folders if name.startswith("1.")), key=minor))


def minor(name: str) -> int:
    """The second number of a release: 34."""
    return int(name.partition(".")[2])


def known_release(name: str) -> str:
    """The release itself. Raises ReleaseError when there is none of that name."""
    if name not in names():
        raise ReleaseError(f"{name!r}: must be a release of Kubernetes: {', '.join(names())}")
    return name


@cache
def read(name: str, file: str) -> Any:
    """What a JSON file of a release holds. Raises ReleaseError for an unknown release."""
    folder = files(__package__).joinpath(known_release(name))
    return json.loads(folder.joinpath(file).read_text(encoding="utf-8"))


def git_version(name: str) -> str:
    """The patch release that its data come from: ``v1.34.2``."""
    return str(read(name, "release.json")["version"])

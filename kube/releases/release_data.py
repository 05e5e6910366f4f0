"""Reads the folders of the releases. Pure: the same files, the same answers.

Of a release that names a base the files hold what differs from it: a member that is null is gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from mews.kube.releases.errors import ReleaseError

DEFAULT = "1.34"
"""The release of a cluster that names none."""


@cache
def names() -> tuple[str, ...]:
    """Return the releases that there are, the oldest first."""
    folders = (entry.name for entry in files(__package__).iterdir() if entry.is_dir())
    return tuple(sorted((name for name in folders if name.startswith("1.")), key=minor))


def minor(name: str) -> int:
    """Return the second number of a release: 34."""
    return int(name.partition(".")[2])


def known_release(name: str) -> str:
    """Return the release itself. Raises ReleaseError when there is none of that name."""
    if name not in names():
        raise ReleaseError(f"{name!r}: must be a release of Kubernetes: {', '.join(names())}")
    return name


@cache
def read(name: str, file: str) -> Any:
    """Return what a JSON file of a release holds, {} where it has none. Raises ReleaseError for an unknown release."""
    found = files(__package__).joinpath(known_release(name)).joinpath(file)
    return json.loads(found.read_text(encoding="utf-8")) if found.is_file() else {}


@cache
def merged(name: str, file: str) -> Any:
    """Return the same with what the release's base says."""
    base = read(name, "release.json").get("base")
    return merge(merged(base, file), read(name, file)) if base else read(name, file)


def merge(base: Any, diff: Any) -> Any:
    """Return a value with what differs in it; what is null is gone."""
    if not isinstance(base, Mapping) or not isinstance(diff, Mapping):
        return diff
    found = {**base, **{name: merge(base.get(name), value) for name, value in diff.items()}}
    return {name: value for name, value in found.items() if value is not None}


def git_version(name: str) -> str:
    """Return the patch release that its data come from: ``v1.34.2``."""
    return str(read(name, "release.json")["version"])


def renamed_lines(group: str, lines: Mapping[str, str], version: str, other: str) -> dict[str, str]:
    """Return the lines of a struct of one version of a group as another version has them."""
    swap = re.compile(rf"(?<=\b{group}/){version}(?=\.)|(?<=go=){version}(?=\.)|(?<=/){version}(?=/)")
    return {name: swap.sub(other, line) for name, line in lines.items()}

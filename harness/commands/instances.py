"""What `mews up` brought up on this machine: one small file each in a state folder, so that `mews down` finds it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from mews.harness.errors import BadInputError, RequirementError
from mews.harness.leftovers import bearing, born
from mews.names import among
from mews.own_files import make_own_folder, write_own

__all__ = [
    "MARK",
    "UpInstance",
    "alive",
    "alone",
    "born",
    "forget",
    "offspring",
    "ready_of",
    "record",
    "recorded",
    "running",
    "state_folder",
]

_TYPES = [str, int, str, str]

MARK = "MEWS_INSTANCE"
"""In the environment of everything that an instance starts: its folder."""


class UpInstance(Struct, frozen=True):
    """One running (or dead) `mews up`. ``born`` tells a process from a later one with the same number."""

    name: str
    pid: int
    born: str
    folder: str


def state_folder() -> Path:
    """``$XDG_RUNTIME_DIR/mews``, or ``~/.local/state/mews``."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "mews" if runtime else Path.home() / ".local" / "state" / "mews"


def alive(instance: UpInstance) -> bool:
    """Return whether its process still runs."""
    return born(instance.pid) == instance.born != ""


@contextmanager
def alone() -> Iterator[None]:
    """No other process is in here at the same time, so that of two that want a name one gets it.

    Raises OSError.
    """
    folder = state_folder()
    make_own_folder(folder)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def record(instance: UpInstance) -> None:
    """Write it down."""
    folder = state_folder()
    make_own_folder(folder)
    write_own(folder / f"{instance.name}.json", json.dumps(asdict(instance)))


def forget(name: str) -> None:
    """Strike it out."""
    (state_folder() / f"{name}.json").unlink(missing_ok=True)


def recorded() -> list[UpInstance]:
    """Return all that are written down, by name."""
    found = []
    for path in sorted(state_folder().glob("*.json")):
        try:
            instance = UpInstance(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if [type(value) for value in (instance.name, instance.pid, instance.born, instance.folder)] == _TYPES:
            found.append(instance)
    return found


def offspring(folder: str, since: str = "0") -> Iterator[int]:
    """Processes that bear the mark of the instance of that folder and are no older than it, this one left out."""
    return bearing(MARK, folder, since)


def running(name: str) -> UpInstance:
    """Return the one of that name that runs.

    Raises BadInputError where none does.
    """
    there = [instance for instance in recorded() if alive(instance)]
    for instance in there:
        if instance.name == name:
            return instance
    raise BadInputError(f"--name {name}: no `mews up` of that name runs; {names_running(name)}")


def names_running(name: str) -> str:
    """Return what runs instead of that one, in words: "running: a, b"."""
    names = [instance.name for instance in recorded() if alive(instance)]
    return f"running: {among(name, names) if names else 'none'}"


def ready_of(name: str) -> dict[str, Any]:
    """Return the ready.json of the one of that name that runs.

    Raises BadInputError where none does, RequirementError where it is not up yet.
    """
    try:
        text = (Path(running(name).folder) / "ready.json").read_text(encoding="utf-8")
        ready: dict[str, Any] = json.loads(text)
    except (OSError, ValueError) as error:
        raise RequirementError(f"--name {name}: its ready.json cannot be read yet: {error}") from error
    return ready

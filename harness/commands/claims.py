"""A name and a folder for a process that stays up, so that the commands on it find it and ``mews down`` ends it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from pathlib import Path

from mews.harness.commands.down import clear, end
from mews.harness.commands.instances import (
    UpInstance,
    alive,
    alone,
    born,
    forget,
    offspring,
    record,
    recorded,
    state_folder,
)
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.leftovers import end_own
from mews.own_files import make_own_folder

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,62}")


def claim(name: str, given: Path | None) -> UpInstance:
    """Take the name, and the folder, or one of that name.

    Raises BadInputError, RequirementError.
    """
    if not _NAME.fullmatch(name):
        raise BadInputError(f"--name {name!r}: must be letters, digits, '.', '_' and '-', up to 63, no '.' in front")
    folder = (given or state_folder() / name).absolute()
    try:
        make_own_folder(folder)
    except OSError as error:
        raise BadInputError(f"--dir {folder}: cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInputError(f"--dir {folder}: cannot be written to")
    taken = next((name for name in ("ready.json", "kubeconfig", "ca.crt") if (folder / name).is_dir()), None)
    if taken is not None:
        raise BadInputError(f"--dir {folder}: {taken} in it is a folder; must be a file, or missing")
    try:
        with alone():
            return _record(name, folder)
    except OSError as error:
        raise RequirementError(
            f"{error.filename}: cannot be written: {error.strerror} (XDG_RUNTIME_DIR or HOME)"
        ) from error


def _record(name: str, folder: Path) -> UpInstance:
    for dead in [known for known in recorded() if not alive(known)]:
        end(dead)  # what it left, and whoever it started
    for known in filter(alive, recorded()):
        ends = "mews down ends it" if known.name == "mews" else f"mews down --name {known.name} ends it"
        if known.name == name:
            raise BadInputError(f"--name {name}: already runs (pid {known.pid}); {ends}")
        if known.folder == str(folder):
            raise BadInputError(f"--dir {folder}: is used by {known.name} (pid {known.pid}); {ends}")
    instance = UpInstance(name, os.getpid(), born(os.getpid()), str(folder))
    record(instance)
    return instance


def clean_up(instance: UpInstance) -> None:
    """What is left to do for a process that could not end in good order."""
    end_own()
    for pid in list(offspring(instance.folder, instance.born)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    clear(Path(instance.folder))
    forget(instance.name)

"""What was learnt so far, kept in a folder that outlives the process: a volume of the pod's."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy
from msgspec import Struct

from mews.systems.kod2.trainer.wire import Vector


class TrainerCheckpoint(Struct, frozen=True):
    """Parameters (or a slice of them) after so many steps."""

    step: int
    parameters: Vector


class CheckpointFile:
    """One task's checkpoint in a folder; without a folder there is never one."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._file = None if folder is None else folder / f"{name}.npz"

    def load(self, size: int) -> TrainerCheckpoint | None:
        """Return what was kept last; None where there is nothing, or nothing of that size."""
        if self._file is None:
            return None
        try:
            with numpy.load(self._file) as kept:
                found = TrainerCheckpoint(int(kept["step"]), kept["parameters"].astype(numpy.float32))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return found if len(found.parameters) == size else None

    def save(self, step: int, parameters: Vector) -> None:
        """Keep this in place of the last one; whoever dies meanwhile leaves the last one whole."""
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part.npz")
        numpy.savez(part, step=step, parameters=parameters)
        part.replace(self._file)

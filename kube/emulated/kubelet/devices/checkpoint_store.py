"""Where the checkpoint is kept: in memory in virtual time, in a file in wall-clock time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from mews.kube.emulated.kubelet.devices.checkpoint import MISSING, Checkpoint, from_text, to_text
from mews.kube.emulated.kubelet.devices.errors import CheckpointError

FILE_NAME = "kubelet_internal_checkpoint"


class CheckpointStore(Protocol):
    """Where checkpoints are kept; it outlives the kubelet process."""

    def load(self) -> Checkpoint:
        """Return the checkpoint saved last.

        Raises CheckpointError.
        """
        ...

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint.

        Raises CheckpointError when that is not possible.
        """
        ...

    def text(self) -> str:
        """Return the file as others read it.

        Raises OSError.
        """
        ...


class MemoryCheckpoint:
    """Kept as a value; ``spoil`` stands for whatever damages the file."""

    def __init__(self) -> None:
        self._saved: Checkpoint | None = None
        self._damage = MISSING

    def load(self) -> Checkpoint:
        """Return the checkpoint saved last."""
        if self._saved is None:
            raise CheckpointError(self._damage)
        return self._saved

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint."""
        self._saved = checkpoint

    def text(self) -> str:
        """Return the file as others read it. Raises FileNotFoundError."""
        if self._saved is None:
            raise FileNotFoundError(FILE_NAME)
        return to_text(self._saved)

    def spoil(self, damage: str = MISSING) -> None:
        """Lose it: reading says ``damage`` until it is saved again."""
        self._saved, self._damage = None, damage


class FileCheckpoint:
    """``kubelet_internal_checkpoint`` in a folder, 0600, written beside and renamed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME

    def load(self) -> Checkpoint:
        """Return the checkpoint saved last."""
        try:
            text = self.path.read_text()
        except FileNotFoundError as error:
            raise CheckpointError(MISSING) from error
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.path}: {error}") from error
        return from_text(text)

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint."""
        try:
            self._write(to_text(checkpoint))
        except OSError as error:
            raise CheckpointError(f'failed to write checkpoint file "{FILE_NAME}": {error}') from error

    def text(self) -> str:
        """Return the file as others read it. Raises OSError."""
        return self.path.read_text()

    def _write(self, text: str) -> None:
        beside = self.path.with_name(f".{FILE_NAME}-{os.getpid()}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        beside.replace(self.path)

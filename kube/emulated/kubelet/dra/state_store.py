"""Where ``dra_manager_state`` and ``dra_health_state`` are kept: in memory in virtual time, else in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from mews.kube.emulated.kubelet.dra.claim_cache import FILE_NAME
from mews.kube.emulated.kubelet.dra.errors import DraCheckpointError
from mews.own_files import write_own


class DraStateStore(Protocol):
    """It outlives the kubelet."""

    def load(self) -> str:
        """Return the text saved last, "" where there is none.

        Raises DraCheckpointError.
        """
        ...

    def save(self, text: str) -> None:
        """Keep this one.

        Raises OSError.
        """
        ...


HEALTH_FILE_NAME = "dra_health_state"


class MemoryDraState:
    """Kept as a value; ``text`` may be set by whoever damages it."""

    def __init__(self) -> None:
        self.text = ""

    def load(self) -> str:
        """Return the text saved last."""
        return self.text

    def save(self, text: str) -> None:
        """Keep this one."""
        self.text = text


class FileDraState:
    """A file in the kubelet's folder, 0600, written beside and renamed."""

    def __init__(self, folder: Path, name: str = FILE_NAME) -> None:
        self.path = folder / name

    def load(self) -> str:
        """Return the text saved last."""
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise DraCheckpointError(f"create ResourceClaim cache: {self.path}: {error}") from error

    def save(self, text: str) -> None:
        """Keep this one."""
        beside = self.path.with_name(f".{self.path.name}-{os.getpid()}")
        write_own(beside, text)
        beside.replace(self.path)

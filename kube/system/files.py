"""A host's files below its root, as a component on that host reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class FileTree(Protocol):
    """A host's files below its root; paths like ``sys/bus/pci/devices``."""

    async def read(self, path: str) -> bytes:
        """A file's content.

        Raises OSError.
        """
        ...

    async def names(self, path: str) -> Sequence[str]:
        """A folder's names, sorted.

        Raises OSError.
        """
        ...


class FolderTree:
    """The files below a folder of this machine, ``/`` on a real node; read on a thread, since a read may block."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def read(self, path: str) -> bytes:
        """A file's content. Raises OSError."""
        return await asyncio.to_thread((self._root / path).read_bytes)

    async def names(self, path: str) -> Sequence[str]:
        """A folder's names, sorted. Raises OSError."""
        return await asyncio.to_thread(lambda: sorted(entry.name for entry in (self._root / path).iterdir()))

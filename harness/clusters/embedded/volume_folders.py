"""The folders that the volumes of emulated nodes are, in a session's own folder."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path, PurePosixPath


class VolumeFolders:
    """``mews.kube.emulated.controllers.folder_provisioner.Folders`` on this machine, below ``root``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.root = PurePosixPath(root)

    async def make(self, path: PurePosixPath) -> None:
        """Make a folder in which every program may write, whoever it runs as.

        Raises ValueError for a path that is not below the root.
        """
        await asyncio.to_thread(_make, self._own(path))

    async def remove(self, path: PurePosixPath) -> None:
        """Remove it with all that is in it; one that is gone is.

        Raises ValueError for a path that is not below the root: a volume's path is a user's to write.
        """
        await asyncio.to_thread(shutil.rmtree, self._own(path), ignore_errors=True)

    def _own(self, path: PurePosixPath) -> Path:
        found = Path(path)
        if self._root not in found.parents or ".." in found.parts:
            raise ValueError(f"volume {path}: must be a folder below {self.root}")
        return found


def _make(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)

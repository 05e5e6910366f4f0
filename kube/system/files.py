"""A host's files below its root, as a component on that host reads and writes them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol


class FileTree(Protocol):
    """A host's files below its root; paths like ``sys/bus/pci/devices``."""

    def hardware_version(self) -> int | None:
        """Return a number that is another one once any file of a device or its driver has changed (those of processes
        do not count); None where nobody counts."""
        ...

    async def read(self, path: str) -> bytes:
        """Return a file's content.

        Raises OSError.
        """
        ...

    async def names(self, path: str) -> Sequence[str]:
        """Return a folder's names, sorted.

        Raises OSError.
        """
        ...

    async def target(self, path: str) -> str:
        """Return what a symbolic link points to.

        Raises OSError.
        """
        ...

    async def write(self, path: str, text: str) -> None:
        """Write into a file that is there, and wait for as long as the kernel lets the write wait.

        Raises OSError.
        """
        ...


class FolderTree:
    """The files below a folder of this machine, ``/`` on a real node; read on a thread, since a read may block."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def hardware_version(self) -> None:
        """Nobody counts the changes of a real folder."""

    async def read(self, path: str) -> bytes:
        """Return a file's content. Raises OSError."""
        return await asyncio.to_thread((self._root / path).read_bytes)

    async def names(self, path: str) -> Sequence[str]:
        """Return a folder's names, sorted. Raises OSError."""
        return await asyncio.to_thread(lambda: sorted(entry.name for entry in (self._root / path).iterdir()))

    async def target(self, path: str) -> str:
        """Return what a symbolic link points to. Raises OSError."""
        return await asyncio.to_thread(os.readlink, self._root / path)

    async def write(self, path: str, text: str) -> None:
        """Write into a file that is there. Raises OSError."""
        await _on_own_thread(lambda: _write(self._root / path, text))


def _write(path: Path, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


async def _on_own_thread(call: Callable[[], None]) -> None:
    """Wait for a call that may block for ever. Its thread is a daemon: one of the executor's, left behind by a
    caller whose patience ended, would keep the process from exiting."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: OSError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failure = None
        try:
            call()
        except OSError as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # The loop has ended: nobody waits any more.
            loop.call_soon_threadsafe(settle, failure)

    threading.Thread(target=run, name="write", daemon=True).start()
    await done

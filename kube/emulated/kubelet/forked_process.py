"""A child of this process that something else made for it (clone(2), CLONE_PARENT)."""

from __future__ import annotations

import asyncio
import os


class ForkedProcess:
    """That process; who waits for it learns what ``asyncio.subprocess.Process`` would say."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._handle = os.pidfd_open(pid)  # it cannot be another one's: nobody has waited for it yet
        self._loop.add_reader(self._handle, self._end)

    def _end(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set_result(self.returncode)

    async def wait(self) -> int:
        """Return its exit code; -n when signal n ended it."""
        return await asyncio.shield(self._ended)

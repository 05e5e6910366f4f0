"""A terminal for a process of this machine, and the other end of it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import pty
import shutil
import struct
import termios
from collections.abc import Sequence

from mews.kube.emulated.streaming.standard_streams import TerminalSize

_AT_ONCE = 32 * 1024


class Descriptor:
    """A descriptor that does not block, read and written on the loop."""

    def __init__(self, number: int) -> None:
        self.number = number
        os.set_blocking(number, False)
        self._open = True

    async def read(self) -> bytes:
        """Return what comes next; empty at the end, which for a terminal is an error."""
        while self._open:
            try:
                return os.read(self.number, _AT_ONCE)
            except BlockingIOError:
                await self._ready(writing=False)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return b""
        return b""

    async def write(self, data: bytes) -> None:
        """All of it.

        Raises OSError where nobody reads any more.
        """
        while data and self._open:
            try:
                data = data[os.write(self.number, data) :]
            except BlockingIOError:
                await self._ready(writing=True)

    async def _ready(self, *, writing: bool) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        watch, forget = (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        watch(self.number, wake)
        try:
            await ready
        finally:
            if self._open:
                forget(self.number)

    def close(self) -> None:
        """Give it back."""
        if self._open:
            self._open = False
            loop = asyncio.get_running_loop()
            loop.remove_reader(self.number)
            loop.remove_writer(self.number)
            os.close(self.number)


class Terminal:
    """A pseudo terminal: ``process_end`` is for the process, ``ours`` the other end."""

    def __init__(self) -> None:
        ours, self.process_end = pty.openpty()
        self.ours = Descriptor(ours)

    def resize(self, size: TerminalSize) -> None:
        """Set its size; its foreground process gets SIGWINCH."""
        with contextlib.suppress(OSError):
            packed = struct.pack("HHHH", size.rows, size.columns, 0, 0)
            fcntl.ioctl(self.ours.number, termios.TIOCSWINSZ, packed)

    def close_process_end(self) -> None:
        """The process has its own copy."""
        if self.process_end >= 0:
            os.close(self.process_end)
            self.process_end = -1


def with_terminal(argv: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Return the command that makes its standard input its controlling terminal, and whether it leads a session by
    itself: by util-linux' setsid, where that is installed; without it there is no job control."""
    setsid = shutil.which("setsid")
    if setsid is None:
        return tuple(argv), False
    return (setsid, "--ctty", *argv), True

"""What a process writes: read from its pipes or terminal, kept in a file, with the time and stream of each piece."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from mews.kube.emulated.kubelet.log_readers import LogReaders, marks_from
from mews.kube.emulated.kubelet.log_text import pieces
from mews.kube.emulated.kubelet.runtime import LogMark
from mews.kube.emulated.streaming.standard_streams import STDERR, STDOUT, StandardStreams

_AT_ONCE = 64 * 1024
_MARK = struct.Struct("<qdB")


class OutputPipe:
    """One of a process' outputs: ``write_end`` is the process', to be closed once it has started."""

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)

    def close_write_end(self) -> None:
        """The process has its own copy."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


class OutputLog:
    """A log in a file, and beside it (``.marks``) when each piece was written, to which stream."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb", buffering=0)
        self._marks = path.with_suffix(".marks").open("wb", buffering=0)
        self._size = 0
        self._ended = False
        self._sources: dict[int, int] = {}
        self._borrowed: set[int] = set()
        self._readers = LogReaders()

    def follow(self, descriptor: int, stream: int, *, borrowed: bool = False) -> None:
        """Take what comes from a pipe or terminal that does not block; close it at its end unless borrowed."""
        self._sources[descriptor] = stream
        if borrowed:
            self._borrowed.add(descriptor)
        asyncio.get_running_loop().add_reader(descriptor, self._take, descriptor)

    def _take(self, descriptor: int) -> bool:
        """Read once; whether there may be more at once."""
        try:
            data = os.read(descriptor, _AT_ONCE)
        except BlockingIOError:
            return False
        except OSError:  # a terminal whose last user has gone
            data = b""
        if not data:
            self._let_go(descriptor)
            return False
        self.write(self._sources[descriptor], data)
        return True

    def write(self, stream: int, data: bytes) -> None:
        """Add what was written to a stream; nothing once it has ended."""
        if self._ended:
            return
        self._marks.write(_MARK.pack(self._size, asyncio.get_running_loop().time(), stream))
        self._file.write(data)
        self._size += len(data)
        self._readers.wake()

    def _let_go(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        del self._sources[descriptor]
        if descriptor not in self._borrowed:
            os.close(descriptor)

    async def show(self, streams: StandardStreams) -> None:
        """Write to those streams what comes from now on, each piece to its own, until the end."""
        offset = self.size
        while True:
            await self.grown(offset)
            text = self.read(offset)
            if not text:
                return
            for piece, mark in pieces(text, offset, self.marks(offset)):
                await streams.write(mark.stream, piece)
            offset += len(text)

    def end(self) -> None:
        """The process is gone: what it has written is read, nothing follows."""
        for descriptor in list(self._sources):
            while descriptor in self._sources and self._take(descriptor):
                pass
            if descriptor in self._sources:
                self._let_go(descriptor)
        if not self._ended:
            self._ended = True
            self._file.close()
            self._marks.close()
        self._readers.wake()

    def read(self, offset: int = 0) -> bytes:
        """Return all bytes from that offset on."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._size

    def marks(self, offset: int = 0) -> Sequence[LogMark]:
        """Return the pieces that end after that offset."""
        packed = self.path.with_suffix(".marks").read_bytes()
        return marks_from([LogMark(*found) for found in _MARK.iter_unpack(packed)], offset)

    async def grown(self, offset: int) -> None:
        """Return once there is more or the process has ended."""
        await self._readers.wait(lambda: self._size > offset or self._ended)


def output_pipes() -> tuple[OutputPipe, OutputPipe]:
    """Standard output and standard error."""
    return OutputPipe(STDOUT), OutputPipe(STDERR)

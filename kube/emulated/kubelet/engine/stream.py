"""A connection to the standard streams of a container or of a command in one, on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

from mews.kube.emulated.streaming.standard_streams import STDOUT

_AT_ONCE = 64 * 1024
_HEADER = struct.Struct(">BxxxL")
"""Of a frame: which stream, how many bytes (Engine API, "Attach to a container")."""


class EngineStream:
    """A connection that does not block. ``early`` is what came before it was taken over."""

    def __init__(self, connection: socket.socket, early: bytes = b"") -> None:
        connection.setblocking(False)
        self._connection = connection
        self._early = early
        self._open = True

    @classmethod
    def of(cls, given: Any) -> EngineStream:
        """Take over what the SDK gives for ``socket=True``.

        What the engine sent together with its answer's head is in the reader of that head already, and would be lost.
        """
        response = getattr(given, "_response", None)
        connection = socket.socket(fileno=os.dup(given.fileno()))
        early = b""
        if response is not None:
            given._sock.setblocking(False)
            early = response.raw._fp.fp.peek() or b""
            response.close()
        given.close()
        return cls(connection, early)

    async def read(self) -> bytes:
        """Return what comes next; empty at the end."""
        if self._early:
            data, self._early = self._early, b""
            return data
        if not self._open:
            return b""
        try:
            return await asyncio.get_running_loop().sock_recv(self._connection, _AT_ONCE)
        except OSError:
            return b""

    async def frames(self, *, tty: bool) -> AsyncIterator[tuple[int, bytes]]:
        """Yield which stream wrote what, to the end; a terminal has one stream."""
        if tty:
            while data := await self.read():
                yield STDOUT, data
            return
        held = b""
        while data := await self.read():
            held += data
            while len(held) >= _HEADER.size:
                stream, size = _HEADER.unpack_from(held)
                if len(held) < _HEADER.size + size:
                    break
                yield stream, held[_HEADER.size : _HEADER.size + size]
                held = held[_HEADER.size + size :]

    async def write(self, data: bytes) -> None:
        """To standard input.

        Raises OSError where nobody reads any more.
        """
        if self._open:
            await asyncio.get_running_loop().sock_sendall(self._connection, data)

    def end_input(self) -> None:
        """Standard input ends here."""
        if self._open:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Give it back; nobody may be reading."""
        if self._open:
            self._open = False
            self._connection.close()

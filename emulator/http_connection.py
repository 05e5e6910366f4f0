"""A connection of the chassis' servers: its TLS handshake on the thread that serves it, and a short way for plain GETs.

cheroot's own files of a socket are Python's, its requests are parsed bit by bit, and a WSGI environment is built for
each: most of the time of a GET. A GET in plain words (``emulator/http_quick.py`` says which) is read, answered and
written at once; all else goes the long way, of which not a byte was taken by then.
"""

from __future__ import annotations

import errno
import io
import select
import socket
import ssl
from typing import Any

from cheroot.server import HTTPConnection

from mews.emulator.http_quick import QuickAnswer, QuickReply, read_quickly
from mews.emulator.http_request import StrictRequest
from mews.emulator.tls_adapter import shake_hands

LINGER_MS = 20
"""Real milliseconds for which a thread waits for the next request of its connection before it looks after others."""


class _Raw(io.RawIOBase):
    """A socket to read from; while ``looking`` there is nothing to be had but what is buffered already."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.looking = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.looking:
            return None
        try:
            return self._sock.recv_into(buffer)
        except ssl.SSLError as error:
            raise _gone(error) from error


class SocketReader(io.BufferedReader):
    """Reads a socket; cheroot asks it for what it holds, too."""

    def __init__(self, sock: socket.socket) -> None:
        self._source = _Raw(sock)
        super().__init__(self._source)
        self.bytes_read = 0

    def has_data(self) -> bool:
        """Return whether something was read ahead."""
        self._source.looking = True
        try:
            return bool(self.peek(1))
        finally:
            self._source.looking = False


class SocketWriter:
    """Writes to a socket at once."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.bytes_written = 0

    def write(self, data: bytes) -> int:
        """Return all of it."""
        try:
            self._sock.sendall(data)
        except ssl.SSLError as error:
            raise _gone(error) from error
        return len(data)


def _gone(error: ssl.SSLError) -> ConnectionResetError:
    """Return what the server takes for a client that has gone away, under TLS as without: nothing to log."""
    return ConnectionResetError(errno.ECONNRESET, str(error))


class StrictConnection(HTTPConnection):
    """A connection whose requests are strict."""

    RequestHandlerClass = StrictRequest
    server: Any

    def __init__(self, server: Any, sock: socket.socket, makefile: Any = None) -> None:
        self.server = server
        self.socket = sock
        self.rfile = SocketReader(sock)
        self.wfile = SocketWriter(sock)
        self.requests_seen = 0
        self._greeted = not isinstance(sock, ssl.SSLSocket)

    def communicate(self) -> bool:
        """Answer requests; whether the connection stays open, for others to come later."""
        try:
            return self._communicate()
        finally:
            self.server.requests.finished()

    def _communicate(self) -> bool:
        if not self._greeted:
            self.server.deadlines.begin(self.socket)
            if not shake_hands(self.socket):
                return False
            self._greeted = True
        quick: QuickAnswer | None = self.server.quick
        while quick is not None:
            reply = self._read_quickly(quick)
            if reply is None:
                break
            if reply.wire is None:
                return False
            self.wfile.write(reply.wire)
            if reply.close:
                return False
            if not self._more_soon():
                return True
        return bool(super().communicate())  # type: ignore[no-untyped-call]

    def _read_quickly(self, quick: QuickAnswer) -> QuickReply | None:
        """Return the answer to a request in plain words; None for another, which is still to be read."""
        self.server.deadlines.begin(self.socket)
        try:
            head = self.rfile.peek()
        except OSError:
            return None
        finally:
            self.server.deadlines.end(self.socket)
        asked = read_quickly(head, secure=isinstance(self.socket, ssl.SSLSocket), address=self.remote_addr or "")
        if asked is None:
            return None
        reply = quick(asked.request, asked.close)
        if reply is not None:
            self.rfile.read(asked.length)
        return reply

    def _more_soon(self) -> bool:
        if self.rfile.has_data() or (isinstance(self.socket, ssl.SSLSocket) and self.socket.pending()):
            return True
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(LINGER_MS))

    def close(self) -> None:
        """Close it; nobody waits for its request any more."""
        self.server.deadlines.end(self.socket)
        super().close()

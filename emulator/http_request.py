"""How the chassis' servers read a request: framing, sizes and deadlines, before anything of it reaches a dialect.

RFC 9112 sections 6 and 7; where it leaves a choice, as Go's net/http does (the boxes' firmware and KubeComp's simulator
are written in Go): a chunked body goes before a length, and what makes no sense ends the connection.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
from collections.abc import Callable
from typing import IO, Any

from cheroot.server import HeaderReader, HTTPConnection, HTTPRequest

from mews.emulator.clock import EmulatedClock
from mews.emulator.tls_adapter import shut_reading

LOG = logging.getLogger("mews.emulator.http")
MAX_HEADER = 1 << 20
"""Bytes of request line and headers; net/http's default."""
DEADLINE_S = 10.0
"""Real seconds in which a request must have come, its body included: a slow sender gives its thread back then."""
_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(;[^\r\n]*)?\r\n")
_LONGEST_LINE = 4096


class MalformedBodyError(ValueError):
    """A body's framing makes no sense; nothing that follows on the connection can be read."""


class ChunkedBody:
    """Reads a chunked body bit by bit, strictly.

    ``read`` raises MalformedBodyError.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = 0
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """Return up to that many bytes; fewer only at the end."""
        found = bytearray()
        while not self._ended and (size < 0 or len(found) < size):
            if not self._left:
                self._next_chunk()
                continue
            wanted = min(self._left, 1 << 16, size - len(found) if size >= 0 else 1 << 16)
            data = self._file.read(wanted)
            if not data:
                raise MalformedBodyError("it ends within a chunk")
            found += data
            self._left -= len(data)
            if not self._left and self._file.read(2) != b"\r\n":
                raise MalformedBodyError("a chunk does not end where it says")
        return bytes(found)

    def _next_chunk(self) -> None:
        line = self._file.readline(_LONGEST_LINE)
        match = _CHUNK.fullmatch(line)
        if match is None:
            raise MalformedBodyError(f"no size of a chunk: {line[:40]!r}")
        self._left = int(match[1], 16)
        if not self._left:
            self._trailers()
            self._ended = True

    def _trailers(self) -> None:
        for _ in range(100):
            line = self._file.readline(_LONGEST_LINE)
            if line == b"\r\n":
                return
            if not line.endswith(b"\r\n"):
                raise MalformedBodyError("its trailers do not end")
        raise MalformedBodyError("too many trailers")


class Deadlines:
    """Ends connections whose request does not come: a thread that reads one is never lost to a slow sender. Whenever
    somebody looks after them (``DeadlineWatch``) it calls ``on_look``, too."""

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        self.deadline_s = deadline_s
        self._clock = EmulatedClock()
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}
        self.on_look: Callable[[], None] = lambda: None

    def begin(self, connection: socket.socket) -> None:
        """A request has begun."""
        with self._lock:
            self._open[connection] = self._clock.real_s() + self.deadline_s

    def end(self, connection: socket.socket) -> None:
        """It has come, or is given up."""
        with self._lock:
            self._open.pop(connection, None)

    def look(self) -> None:
        """End those that are overdue."""
        self.on_look()
        now_s = self._clock.real_s()
        with self._lock:
            overdue = [connection for connection, due_s in self._open.items() if due_s <= now_s]
            for connection in overdue:
                del self._open[connection]
        for connection in overdue:
            with contextlib.suppress(OSError):  # it has just closed
                # Reading only: what waits in recv wakes up, and may still answer 408.
                shut_reading(connection)


class DeadlineWatch:
    """Looks after the deadlines of all servers of this process, on one thread, as long as there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: tuple[Deadlines, ...] = ()
        self._clock: EmulatedClock | None = None

    def add(self, deadlines: Deadlines) -> None:
        """Look after these, too."""
        with self._lock:
            self._watched = (*self._watched, deadlines)
            if self._clock is None:
                self._clock = EmulatedClock()
                threading.Thread(target=self._watch, args=(self._clock,), name="http deadlines", daemon=True).start()

    def remove(self, deadlines: Deadlines) -> None:
        """And after these no more."""
        with self._lock:
            self._watched = tuple(each for each in self._watched if each is not deadlines)
            if not self._watched and self._clock is not None:
                self._clock.stop()
                self._clock = None

    def _watch(self, clock: EmulatedClock) -> None:
        while clock.pause(min((each.deadline_s for each in self._watched), default=DEADLINE_S) / 10):
            for each in self._watched:
                try:
                    each.look()
                except Exception:
                    LOG.exception("deadlines: one server's cannot be looked after")


WATCH = DeadlineWatch()


class _HeaderLines:
    """The lines of a request's headers, as cheroot's reader asks for them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._first = True
        self.hosts = 0

    def readline(self, size: int = -1) -> bytes:
        """Return the next line.

        Raises ValueError for a name with white space before its colon (RFC 9112 section 5.1), and for a first line that
        continues none (section 2.2): cheroot would fail there.
        """
        line = self._file.readline(size)
        if self._first and line[:1] in (b" ", b"\t"):
            raise ValueError("white space before the first header")
        self._first = False
        name, colon, _ = line.partition(b":")
        if colon and name[:1] not in (b" ", b"\t") and name != name.rstrip():
            raise ValueError("white space between a header's name and its colon")
        self.hosts += name.lower() == b"host"
        return line


class StrictHeaders(HeaderReader):
    """cheroot's reader, which keeps the last of several Host lines; RFC 9112 section 3.2 refuses them."""

    def __call__(self, rfile: IO[bytes], hdict: dict[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        """Return the headers.

        Raises ValueError for lines that make no sense.
        """
        lines = _HeaderLines(rfile)
        found: dict[bytes, bytes] = super().__call__(lines, hdict)
        if lines.hosts > 1:
            raise ValueError("more than one Host header")
        return found


class StrictRequest(HTTPRequest):
    """A request of cheroot's whose framing is checked by us."""

    header_reader = StrictHeaders()

    server: Any
    conn: HTTPConnection
    inheaders: dict[bytes, bytes]

    def parse_request(self) -> None:
        """Read request line and headers."""
        self.server.deadlines.begin(self.conn.socket)
        super().parse_request()

    def respond(self) -> None:
        """Check the framing, then have it answered."""
        if self.request_protocol == b"HTTP/1.1" and b"Host" not in self.inheaders:  # RFC 9112 section 3.2
            self.close_connection = True
            self.simple_response("400 Bad Request", "a request without a Host header")
            return
        length = self.inheaders.get(b"Content-Length")
        if self.chunked_read:
            self.inheaders.pop(b"Content-Length", None)
        elif length is not None and _LENGTH.fullmatch(length) is None:
            self.close_connection = True
            self.simple_response("400 Bad Request", "malformed Content-Length")
            return
        try:
            super().respond()
        finally:
            self.server.deadlines.end(self.conn.socket)

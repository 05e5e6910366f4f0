"""Many requests in flight to one face, each on a connection of its own, from one thread.

A request whose framing is sound goes out on a connection that is kept for the next one. One whose framing chance has
touched gets a new connection, whose sending side is closed after it: what lacks its end is told so from what is slow.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from tests.fuzz.answers import AnswerReader
from tests.fuzz.requests import Sent

IN_FLIGHT = 24
PATIENCE_S = 8.0
"""For any answer. Faces give up a request that does not come after 10 s: none may need that."""
WHOLE_S = 0.3
"""For the end of an answer whose head is there (a stream has none), and under TLS until the end comes as a cut."""
_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Shot:
    """A request of chance: which one it is, how it was made, whether its connection can be kept."""

    number: int
    sent: Sent
    how: str
    framed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one; ``status`` also ``closed`` (no answer), ``silent`` (none in time), ``no HTTP``."""

    shot: Shot
    status: str
    body: bytes


@dataclass(slots=True, eq=False)
class Wire:
    """A connection with at most one request on its way."""

    socket: socket.socket
    shaking: bool
    used: int = 0
    shot: Shot | None = None
    reader: AnswerReader = field(default_factory=lambda: AnswerReader("GET"))
    unsent: bytes = b""
    due_s: float = 0.0
    cut: bool = False
    watched: int = 0


class Wires:
    """The connections to one face."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None, most: int = IN_FLIGHT) -> None:
        self._address = address
        self._tls = tls
        self._most = most
        self._selector = selectors.DefaultSelector()
        self._kept: list[Wire] = []
        self._busy: set[Wire] = set()

    def flying(self) -> list[Shot]:
        """The requests that have no answer yet."""
        return [wire.shot for wire in self._busy if wire.shot is not None]

    def outcomes(self, shots: Iterator[Shot]) -> Iterator[Outcome]:
        """Send all, give each one's outcome as it comes."""
        more = True
        while more or self._busy:
            while more and len(self._busy) < self._most:
                shot = next(shots, None)
                more = shot is not None
                if shot is not None:
                    yield from self._fire(shot)
            yield from self._look()

    def close(self) -> None:
        """End every connection."""
        for wire in (*self._kept, *self._busy):
            self._drop(wire)
        self._selector.close()

    def _fire(self, shot: Shot) -> Iterator[Outcome]:
        wire = self._kept.pop() if shot.framed and self._kept else self._opened()
        if wire is None:
            yield Outcome(shot, "closed", b"")
            return
        wire.shot, wire.reader, wire.cut = shot, AnswerReader(shot.sent.method), False
        wire.unsent = shot.sent.wire(keep=shot.framed)
        wire.due_s = time.monotonic() + PATIENCE_S
        self._busy.add(wire)
        yield from self._go_on(wire)

    def _opened(self) -> Wire | None:
        try:
            plain = socket.create_connection(self._address, timeout=PATIENCE_S)
        except OSError:
            return None
        plain.setblocking(False)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return Wire(plain, shaking=False)
        secure = self._tls.wrap_socket(plain, server_hostname="localhost", do_handshake_on_connect=False)
        return Wire(secure, shaking=True)

    def _look(self) -> Iterator[Outcome]:
        for key, _ in self._selector.select(0.05):
            wire: Wire = key.data
            if wire.shot is None:  # kept, and the face has closed it or said something that nobody asked
                self._kept.remove(wire)
                self._drop(wire)
            else:
                yield from self._go_on(wire)
        now_s = time.monotonic()
        for wire in [wire for wire in self._busy if wire.due_s <= now_s]:
            yield from self._overdue(wire)

    def _go_on(self, wire: Wire) -> Iterator[Outcome]:
        try:
            self._shake(wire)
            self._send(wire)
            self._receive(wire)
        except (BlockingIOError, ssl.SSLWantReadError):
            self._watch(wire, selectors.EVENT_READ | (selectors.EVENT_WRITE if wire.unsent and not wire.shaking else 0))
        except ssl.SSLWantWriteError:
            self._watch(wire, selectors.EVENT_READ | selectors.EVENT_WRITE)
        except OSError:
            wire.reader.end()
        if wire.reader.whole:
            yield from self._done(wire)

    def _shake(self, wire: Wire) -> None:
        if wire.shaking:
            assert isinstance(wire.socket, ssl.SSLSocket)
            wire.socket.do_handshake()
            wire.shaking = False

    def _send(self, wire: Wire) -> None:
        while wire.unsent:
            try:
                wire.unsent = wire.unsent[wire.socket.send(wire.unsent) :]
            except (BlockingIOError, ssl.SSLError):
                # A face that has answered reads no more: look first whether it has.
                self._receive(wire)
                raise
            except OSError:
                wire.unsent = b""  # it has answered before the end
                return
        assert wire.shot is not None
        if not wire.shot.framed and not wire.cut:
            if self._tls is None:
                self._cut(wire)
            else:
                wire.due_s = min(wire.due_s, time.monotonic() + WHOLE_S)

    def _cut(self, wire: Wire) -> None:
        """Say that nothing follows; under TLS by the end of the connection beneath."""
        wire.cut = True
        with suppress(OSError):
            socket.socket.shutdown(wire.socket, socket.SHUT_WR)

    def _receive(self, wire: Wire) -> None:
        while not wire.reader.whole:
            data = wire.socket.recv(_MOST)
            if not data:
                wire.reader.end()
                return
            was = wire.reader.status
            wire.reader.feed(data)
            if wire.reader.status and not was:
                wire.due_s = time.monotonic() + (PATIENCE_S if wire.reader.status.startswith("5") else WHOLE_S)

    def _overdue(self, wire: Wire) -> Iterator[Outcome]:
        assert wire.shot is not None
        if wire.reader.status:  # a stream: the head is all that is asked of it
            wire.reader.end()
        elif self._tls is not None and not wire.shot.framed and not wire.cut:
            self._cut(wire)
            wire.due_s = time.monotonic() + PATIENCE_S
            return
        else:
            wire.reader.end()
            wire.reader.status = "silent"
        yield from self._done(wire)

    def _done(self, wire: Wire) -> Iterator[Outcome]:
        shot, reader = wire.shot, wire.reader
        assert shot is not None
        self._busy.discard(wire)
        if not reader.status and shot.framed and wire.used:
            self._drop(wire)
            yield from self._fire(shot)  # the face had given up the connection before it saw the request
            return
        wire.used += 1
        wire.shot = None
        if shot.framed and not reader.closes and not wire.unsent:
            self._watch(wire, selectors.EVENT_READ)
            self._kept.append(wire)
        else:
            self._drop(wire)
        yield Outcome(shot, reader.status or "closed", reader.body)

    def _watch(self, wire: Wire, events: int) -> None:
        if wire.watched == 0:
            self._selector.register(wire.socket, events, wire)
        elif wire.watched != events:
            self._selector.modify(wire.socket, events, wire)
        wire.watched = events

    def _drop(self, wire: Wire) -> None:
        if wire.watched:
            self._selector.unregister(wire.socket)
            wire.watched = 0
        wire.socket.close()

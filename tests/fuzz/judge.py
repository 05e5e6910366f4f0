"""Sends requests of chance to a face and judges its answers."""

from __future__ import annotations

import io
import logging
import random
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field

from tests.fuzz.requests import Sent, drawn

ALLOWED = (501, 503, 505, 507)
"""Answers above 499 that say what is lacking: a method, a place among the streams, a version, room on the disk."""
UPSTREAMS = "500 as upstream"
"""Kubernetes' own plain internal errors: a Status without a reason (contract apiserver.md section 2), as the real
server answers DeleteOptions that are none, unknown patch directives and others. What crashes here has a reason."""
PATIENCE_S = 5.0
WHOLE_S = 0.3
"""Under TLS, for an answer to a whole request: who waits for more than was sent is then told that nothing follows."""


@dataclass(frozen=True, slots=True)
class Face:
    """A server's port and requests that it answers as they are."""

    name: str
    address: tuple[str, int]
    seeds: list[Sent]
    tls: ssl.SSLContext | None = None
    refusing: bytes = b""
    """What the body of a 500 begins with where its protocol demands one: gpushare's extender so refuses to bind."""


@dataclass(slots=True)
class Account:
    """What became of the requests: counts by status, and what must not be."""

    face: str
    statuses: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    @property
    def answered(self) -> int:
        """How many requests got an answer in HTTP."""
        return sum(count for status, count in self.statuses.items() if status[:1].isdigit())

    def __str__(self) -> str:
        counts = ", ".join(f"{status} {count}" for status, count in sorted(self.statuses.items()))
        asked = sum(self.statuses.values())
        return f"{self.face}: {asked} requests, {self.answered} answers: {counts}; {len(self.findings)} findings"


def exchange(face: Face, sent: Sent) -> str:
    """The status of the answer; ``closed`` without one, ``silent`` where none came and the connection stays."""
    with socket.create_connection(face.address, timeout=PATIENCE_S) as plain:
        wire = plain
        try:
            if face.tls is not None:
                wire = face.tls.wrap_socket(plain, server_hostname="localhost")
            try:
                wire.sendall(sent.wire())
                if face.tls is None:
                    wire.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has answered before the end
            return _status(wire, _first_of(wire), face.refusing)
        except TimeoutError:
            return "silent"
        except OSError:
            return "closed"
        finally:
            if wire is not plain:
                wire.close()


def _first_of(wire: socket.socket) -> bytes:
    """The first bytes of the answer. TLS has no half-closed connections: the end comes as a cut, and only for those
    who have not answered by then."""
    if not isinstance(wire, ssl.SSLSocket):
        return wire.recv(4096)
    wire.settimeout(WHOLE_S)
    try:
        return wire.recv(4096)
    except TimeoutError:
        socket.socket.shutdown(wire, socket.SHUT_WR)
        wire.settimeout(PATIENCE_S)
        return wire.recv(4096)


def _status(wire: socket.socket, answer: bytes, refusing: bytes) -> str:
    while answer and b"\r\n" not in answer and (more := wire.recv(4096)):
        answer += more
    if not answer:
        return "closed"
    words = answer.split(b"\r\n", 1)[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        return "no HTTP"
    if words[1] == b"500":
        while more := wire.recv(4096):
            answer += more
        if b'"kind":"Status"' in answer and b'"reason"' not in answer:
            return UPSTREAMS
        if refusing and answer.partition(b"\r\n\r\n")[2].startswith(refusing):
            return UPSTREAMS
    return words[1].decode("latin-1")


class _Tracebacks(logging.Handler):
    """Keeps what is logged with a traceback, or as an error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        if record.exc_info or "Traceback" in record.getMessage():
            self.kept.append(logging.Formatter().format(record))


class _Stderr(io.TextIOBase):
    """What is written to standard error from a traceback on."""

    def __init__(self, kept: list[str]) -> None:
        self._kept = kept

    def write(self, text: str) -> int:
        """Keep it."""
        if "Traceback" in text or not self._kept:
            self._kept.append(text)
        else:
            self._kept[-1] += text
        return len(text)


@contextmanager
def tracebacks() -> Iterator[list[str]]:
    """What servers of this process log with a traceback meanwhile, or write to standard error."""
    handler = _Tracebacks()
    logging.getLogger().addHandler(handler)
    try:
        with redirect_stderr(_Stderr(handler.kept)):
            yield handler.kept
    finally:
        logging.getLogger().removeHandler(handler)


def fuzz(face: Face, count: int, seed: int) -> Account:
    """So many requests, the same ones for the same seed."""
    rng, account = random.Random(f"{seed}/{face.name}"), Account(face.name)
    with tracebacks() as logged:
        for number in range(count):
            sent, how = drawn(face.seeds, rng)
            status = exchange(face, sent)
            account.statuses[status] += 1
            bad = status in ("silent", "no HTTP") or (
                status.isdecimal() and int(status) >= 500 and int(status) not in ALLOWED
            )
            if bad or logged:
                trace = logged[-1] if logged else ""
                account.findings.append(
                    f"{face.name} #{number} {how}: {status}\n{sent.wire()[:600]!r}\n{trace[-1500:]}"
                )
                logged.clear()
    return account

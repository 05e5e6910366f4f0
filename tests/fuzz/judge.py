"""Sends requests of chance to a face and judges its answers."""

from __future__ import annotations

import io
import logging
import random
import resource
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.requests import Sent, drawn, is_framed
from tests.fuzz.wires import Shot, Wires

ALLOWED = (501, 503, 505, 507)
"""Answers above 499 that say what is lacking: a method, a place among the streams, a version, room on the disk."""
UPSTREAMS = "500 as upstream"
"""Kubernetes' own plain internal errors: a Status without a reason (contract apiserver.md section 2), as the real
server answers DeleteOptions that are none, unknown patch directives and others. What crashes here has a reason."""
PATIENCE_S = 5.0
RENEWED_EVERY = 500
OWN_CONNECTION = 0.05
"""Of the requests whose connection could be kept."""
MOST_MIB = 1280
"""By which the process that serves a face and asks it may grow: SECURITY.md bounds `mews up` at 1.5 GiB, and 256 MiB
are there before it is asked. What else the process did before, such as other tests, is not the face's."""
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
    renewed: Callable[[], list[Sent]] | None = None
    """The seeds anew, for those that a session guards which the requests themselves end."""


@dataclass(slots=True)
class Account:
    """What became of the requests: counts by status, and what must not be."""

    face: str
    statuses: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    began_mib: float = field(default_factory=lambda: memory_mib())
    memory_mib: float = 0.0

    @property
    def answered(self) -> int:
        """How many requests got an answer in HTTP."""
        return sum(count for status, count in self.statuses.items() if status[:1].isdigit())

    def __str__(self) -> str:
        counts = ", ".join(f"{status} {count}" for status, count in sorted(self.statuses.items()))
        asked = sum(self.statuses.values())
        classes = ", ".join(f"{first}xx {self.of_class(first)}" for first in "12345")
        speed = f"{self.seconds:.0f} s, {asked / (self.seconds or 1):.0f}/s, {self.memory_mib:.0f} MiB"
        return f"{self.face}: {asked} requests in {speed}: {classes} ({counts}); {len(self.findings)} findings"

    def of_class(self, first: str) -> int:
        """How many answers have a status that begins so."""
        return sum(count for status, count in self.statuses.items() if status.startswith(first))


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


def judged(face: Face, status: str, body: bytes) -> str:
    """The status, or that upstream answers the same."""
    if status == "500" and b'"kind":"Status"' in body and b'"reason"' not in body:
        return UPSTREAMS
    return UPSTREAMS if status == "500" and face.refusing and body.startswith(face.refusing) else status


def is_bad(status: str) -> bool:
    """Whether no face may answer so."""
    return status in ("silent", "no HTTP") or (status.isdecimal() and int(status) >= 500 and int(status) not in ALLOWED)


def shots(face: Face, count: int, seed: int) -> Iterator[Shot]:
    """So many requests, the same ones for the same seed; some of those that are sound get a connection of their own."""
    rng, seeds = random.Random(f"{seed}/{face.name}"), face.seeds
    for number in range(count):
        if face.renewed is not None and number and number % RENEWED_EVERY == 0:
            with suppress(OSError, KeyError):  # it is refused for the moment: the former are as good
                seeds = face.renewed()
        sent, names = drawn(seeds, rng)
        alone = rng.random() < OWN_CONNECTION
        yield Shot(number, sent, "+".join(names), framed=not alone and is_framed(sent, names))


def fuzz(face: Face, count: int, seed: int) -> Account:
    """So many requests."""
    account, began_s, suspects = Account(face.name), time.monotonic(), dict[int, Shot]()
    wires = Wires(face.address, face.tls)
    with tracebacks() as logged:
        for outcome in wires.outcomes(shots(face, count, seed)):
            status = judged(face, outcome.status, outcome.body)
            account.statuses[status] += 1
            if is_bad(status):
                account.findings.append(shown(face, outcome.shot, status, ""))
            if logged:
                account.findings.append(f"{face.name}: {logged[-1][-1500:]}")
                suspects |= {shot.number: shot for shot in (outcome.shot, *wires.flying())}
                logged.clear()
        wires.close()
        account.findings += guilty(face, list(suspects.values())[:200], logged)
    account.seconds = time.monotonic() - began_s
    account.memory_mib = memory_mib() - account.began_mib
    if account.memory_mib > MOST_MIB:
        account.findings.append(f"{face.name}: grew by {account.memory_mib:.0f} MiB, {MOST_MIB} are allowed")
    return account


def guilty(face: Face, suspects: list[Shot], logged: list[str]) -> list[str]:
    """Of the requests that were on their way while a traceback was written, those that leave one again, alone."""
    found = []
    for shot in suspects:
        logged.clear()
        status = exchange(face, shot.sent)
        if logged:
            found.append(shown(face, shot, status, logged[-1]))
    return found


def shown(face: Face, shot: Shot, status: str, trace: str) -> str:
    """A finding, by which it can be played again."""
    return f"{face.name} #{shot.number} {shot.how}: {status}\n{shot.sent.wire()[:600]!r}\n{trace[-1500:]}"


def memory_mib() -> float:
    """What this process, which serves the face, holds of memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / (1 << 20)

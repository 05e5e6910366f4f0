"""What a wrong is: it sees a request, asks the chassis as it likes, and answers in its own way."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.dialects.wire import Dropped, Request, Response, split_target

TARGET = ":target"
"""Key among a request's headers of its target as it was written; no header can be named so."""


class Cut(Struct, frozen=True):
    """A reply whose connection ends after so many bytes of its body."""

    response: Response
    sent: int


Reply = Response | Dropped | Cut
Ask = Callable[[Request], Reply]
"""Asks the chassis, or the next wrong in front of it."""
Handler = Callable[[Request, Ask], Reply]


class Stage:
    """What a wrong may use: dice of its own, and a way to wait. May be used by several threads."""

    def __init__(self, rng: random.Random, wait: Callable[[float], object]) -> None:
        self.rng = rng
        self.wait = wait
        self.lock = threading.Lock()


class Wrong(Struct, frozen=True):
    """One named deviation. ``make`` returns its handler for one chassis; ``dialects``: those it can be played in;
    ``legal``: it is unusual and breaks no rule, so that a client must live with it; ``lasting``: it shows only where an
    operation goes on after its first answer."""

    name: str
    title: str
    dialects: tuple[str, ...]
    make: Callable[[Stage], Handler]
    legal: bool = False
    lasting: bool = False


PREFIXES = (
    ("/h3api", "h3api"),
    ("/redfish", "redfish"),
    ("/fabric_manager", "fm"),
    ("/cluster_manager", "fm"),
    ("/id_manager", "fm"),
    ("/cdim", "cdim"),
)


def dialect_of(request: Request) -> str:
    """Return whose path it is."""
    for prefix, dialect in PREFIXES:
        if request.path.startswith(prefix):
            return dialect
    return "resource-pool"


def on_target(request: Request, target: str) -> Request:
    """Return the same request with another target."""
    path, query = split_target(target)
    return replace(request, path=path, query=query, headers={**request.headers, TARGET: target})


def in_front(wrongs: Sequence[tuple[Wrong, Handler]], ask: Ask) -> Ask:
    """Return the chassis behind all of these wrongs, the first of them nearest to the client."""
    for wrong, handler in reversed(wrongs):
        ask = _behind(wrong, handler, ask)
    return ask


def _behind(wrong: Wrong, handler: Handler, ask: Ask) -> Ask:
    def answer(request: Request) -> Reply:
        return handler(request, ask) if dialect_of(request) in wrong.dialects else ask(request)

    return answer

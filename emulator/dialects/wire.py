"""Requests and replies of a dialect, neutral to what carries them, and what a dialect is.

A dialect is pure: ``begin`` reads a request and begins the operation, ``finish`` renders the answer once its time has
come. Whoever carries it waits between the two: Flask on the emulator's clock, the virtual adapter on its loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl, unquote

from msgspec import Struct, field

from mews.emulator.chassis.operation import Answer, Operation
from mews.listening.reading import read_like_go

if TYPE_CHECKING:
    from mews.emulator.chassis.emulated_chassis import EmulatedChassis
    from mews.emulator.dialects.redfish.events import Hub
    from mews.emulator.dialects.redfish.settings import RedfishSettings

MAX_BODY = 1 << 20
"""Bytes; a longer body is refused in the dialect's own words."""

JSON = {"Content-Type": "application/json"}
UNREADABLE = b"\xff"
"""Stands for a body whose framing makes no sense: no dialect reads it as anything, so each refuses it in its words."""

TEXT = {"Content-Type": "text/plain; charset=utf-8"}


class Request(Struct, frozen=True):
    """A request; ``headers`` have lower-case names. ``too_large``: its body is over ``MAX_BODY`` and was left out.

    ``secure``: nobody can listen to it, by TLS or because there is no wire; ``address``: who asks, "" if there is none.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    too_large: bool = False
    secure: bool = True
    address: str = ""
    repeated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Those members of the query that are there more than once, with all of their values; ``query`` has the first."""

    def values(self, name: str) -> tuple[str, ...]:
        """Return all values of a member of the query, in their order."""
        if name in self.repeated:
            return self.repeated[name]
        return (self.query[name],) if name in self.query else ()


class Stream(Struct, frozen=True):
    """What follows a reply bit by bit. ``take`` gives what is there by now, None at the end; ``close`` says goodbye."""

    take: Callable[[], list[bytes] | None]
    close: Callable[[], None]


class Response(Struct, frozen=True):
    """A reply; with a ``stream`` the body goes on until either side ends it."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    stream: Stream | None = None


class Dropped(Struct, frozen=True):
    """The connection ends without a reply."""


class Pending(Struct):
    """A request that waits for its time: an operation and how to render its answer, or a reply that is ready."""

    begun_s: float
    reply: Response | None = None
    operation: Operation | None = None
    render: Callable[[Answer], Response] | None = None

    @property
    def due_s(self) -> float:
        """When to finish, in emulated seconds; may change while waiting."""
        return self.begun_s if self.operation is None else self.operation.answer_s


class ChassisFace(Protocol):
    """One chassis as it answers in one wire language."""

    def begin(self, request: Request, now_s: float) -> Pending:
        """Read the request, begin what it asks for."""
        ...

    def finish(self, pending: Pending, now_s: float) -> Response | Dropped:
        """Return the answer, once ``pending.due_s`` has come."""
        ...


@runtime_checkable
class SendingFace(Protocol):
    """A face that also sends events by itself, to those who subscribed."""

    @property
    def hub(self) -> Hub:
        """Its subscriptions, and the events that wait for them."""
        ...


class DialectFace(Struct, frozen=True):
    """What a dialect brings to the emulator (``Dialect.face``).

    ``make(box, settings)`` is one chassis' face in it. ``prefix`` is what its paths begin with, or all such, so that
    several fit on one port. ``login``: it asks for the first account of the settings.
    """

    make: Callable[[EmulatedChassis, RedfishSettings], ChassisFace]
    prefix: str | tuple[str, ...] = "/"
    login: bool = False


def split_target(target: str) -> tuple[str, dict[str, str]]:
    """Path and query of a request target."""
    path, _, query = target.partition("?")
    return unquote(path), dict(parse_qsl(query, keep_blank_values=True))


class JsonError(ValueError):
    """The body is not a JSON object of the form that the dialect reads."""


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; ``null`` reads as an empty one, as Go does.

    Raises JsonError.
    """
    try:
        value = read_like_go(body)
    except ValueError as error:
        raise JsonError(str(error)) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise JsonError("not an object")
    return value


def read_strings(body: bytes, names: tuple[str, ...]) -> dict[str, str]:
    """Return those members of the body's JSON object, any case of their names, "" where absent or null; others are
    ignored.

    Raises JsonError, also where one is not a string.
    """
    found = dict.fromkeys(names, "")
    for name, value in read_object(body).items():
        key = name.lower()
        if key not in found or value is None:
            continue
        if not isinstance(value, str):
            raise JsonError(f"{name} is not a string")
        found[key] = value
    return found


def as_json(value: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()

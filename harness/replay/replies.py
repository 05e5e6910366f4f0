"""Which recorded reply answers a request."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.dialects.wire import Request, Response, split_target

OF_ONE_CONNECTION = frozenset({"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"})
"""Reply headers that are not replayed: they belong to the connection that the reply came over."""
CREDENTIALS = ("x-auth-token", "authorization")
NOT_FOUND, NOT_ALLOWED, REFUSED = 404, 405, 401
READING = ("GET", "HEAD")
SECRETS = ("username", "password", "client_secret")
"""Fields of a login form (RFC 6749, 4.3.2) that a recording hides, or that another client fills in otherwise."""


CONDITIONS = ("odata-version", "if-match", "if-none-match")
"""Request headers by which the same request is answered otherwise."""


class RecordedReply(Struct, frozen=True):
    """A request and its reply, header names in lower case. ``known``: it was sent with credentials; ``conditions``:
    those of its headers that the answer hangs upon."""

    method: str
    target: str
    known: bool
    conditions: Mapping[str, str]
    body: str
    status: int
    headers: Mapping[str, str]
    text: str


class _Asked(Struct, frozen=True):
    """What has to be the same for a recorded reply to fit."""

    method: str
    path: str
    query: frozenset[tuple[str, str]]
    conditions: frozenset[tuple[str, str]]
    body: str
    known: bool = True


class Replay:
    """Answers as the box did, in its order: a listing after a write is the one that was recorded after that write.

    A request that is made again, or in another order, gets the last reply that was recorded before it. May be used by
    several threads. ``mockup``: nobody is asked for credentials, and queries change nothing.
    """

    def __init__(self, recorded: Sequence[RecordedReply], *, mockup: bool = False) -> None:
        self._recorded = recorded
        self._mockup = mockup
        self._places: dict[_Asked, list[int]] = {}
        self._verbs: dict[str, set[str]] = {}
        for place, reply in enumerate(recorded):
            path, query = split_target(reply.target)
            asked = _asked(reply.method, path, query, reply.conditions, reply.body)
            self._places.setdefault(replace(asked, known=reply.known), []).append(place)
            self._verbs.setdefault(path, set()).add(reply.method)
        refusals = [place for place, reply in enumerate(recorded) if reply.status == REFUSED and not reply.known]
        self._refusal = refusals[0] if refusals else None
        self._last = -1
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Response:
        """Return the reply; 404 or 405 for what was never asked."""
        known = any(name in request.headers for name in CREDENTIALS)
        with self._lock:
            place = self._place(request, known)
            if place is None:
                return self._unknown(request)
            self._last = max(self._last, place)
        reply = self._recorded[place]
        headers = {name: value for name, value in reply.headers.items() if name not in OF_ONE_CONNECTION}
        return Response(reply.status, headers, b"" if request.method == "HEAD" else reply.text.encode())

    def _place(self, request: Request, known: bool) -> int | None:
        body = request.body.decode("utf-8", "replace")
        asked = _asked(request.method, request.path, request.query, conditions_of(request.headers), body)
        fitting = [asked, replace(asked, conditions=frozenset())]
        if self._mockup:
            fitting.append(replace(asked, conditions=frozenset(), query=frozenset()))
        for each in fitting:
            for as_known in (known, not known):
                places = self._places.get(replace(each, known=as_known))
                if places is None:
                    continue
                if as_known and not known and self._refusal is not None and not self._mockup:
                    return self._refusal
                return next((place for place in places if place > self._last), places[-1])
        return None

    def _unknown(self, request: Request) -> Response:
        verbs = sorted(self._verbs.get(request.path, ()))
        if not verbs or (request.method in verbs and request.method in READING):
            return _unrecorded(NOT_FOUND, f"{request.method} {request.path}: not in the recording", {})
        return _unrecorded(
            NOT_ALLOWED, f"{request.method} {request.path}: not in the recording", {"Allow": ", ".join(verbs)}
        )


def conditions_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those of a request, whose header names are in lower case; OData's version 4.0 is what goes without
    saying."""
    found = {name: headers[name] for name in CONDITIONS if name in headers}
    return {name: value for name, value in found.items() if (name, value) != ("odata-version", "4.0")}


def _asked(method: str, path: str, query: Mapping[str, str], conditions: Mapping[str, str], body: str) -> _Asked:
    """Login bodies differ by nothing that is secret: passwords are in no recording."""
    try:
        value: Any = json.loads(body) if body else ""
    except (ValueError, RecursionError):
        value = body
    if isinstance(value, dict) and "Password" in value:
        value = "credentials"
    elif isinstance(value, str) and "password=" in value:
        value = [pair for pair in parse_qsl(value) if pair[0] not in SECRETS]
    asked = frozenset(query.items()), frozenset(conditions.items())
    return _Asked(method, path.rstrip("/") or "/", *asked, json.dumps(value, sort_keys=True))


def _unrecorded(status: int, text: str, headers: Mapping[str, str]) -> Response:
    error = {"error": {"code": "Base.1.0.GeneralError", "message": text, "@Message.ExtendedInfo": []}}
    return Response(status, {"Content-Type": "application/json", **headers}, json.dumps(error).encode())

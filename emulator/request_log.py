"""What clients asked of the chassis in their dialects, and what they were answered: for whoever tests such a client."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mews.emulator.dialects.wire import Dropped, Request, Response

KEPT = 10_000
"""How many of the latest requests can be read again."""
SHOWN = 64 << 10
"""Characters of a body that are shown."""

_SECRET = re.compile(r'("(?:password|(?:\w+_)?token)"\s*:\s*)"(?:[^"\\]|\\.)*"', re.IGNORECASE)
_OF_FORMS = re.compile(r"(?<![^&\n])((?:password|client_secret)=)[^&\n]*")
"""What is left out of bodies: the log is kept among artefacts, which others read."""


class LoggedRequest(Struct, frozen=True):
    """One request with its answer; times in emulated seconds."""

    number: int
    begun_s: float
    ended_s: float
    chassis: str
    dialect: str
    request: Request
    reply: Response | Dropped

    def as_dict(self) -> dict[str, Any]:
        """``{"number", "t", "took_s", "chassis", "dialect", "method", "path", "query", "body", "status", "answer",
        "agent"}``; status is None for a connection that was dropped."""
        request, reply = self.request, self.reply
        status, answer = (None, b"") if isinstance(reply, Dropped) else (reply.status, reply.body)
        return {
            "number": self.number,
            "t": round(self.begun_s, 6),
            "took_s": round(self.ended_s - self.begun_s, 6),
            "chassis": self.chassis,
            "dialect": self.dialect,
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "body": _shown(request.body),
            "status": status,
            "answer": _shown(answer),
            "agent": request.headers.get("user-agent", ""),
        }


class RequestLog:
    """The latest requests, numbered from 1 on in the order of their answers, for readers on other threads."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._kept: deque[LoggedRequest] = deque(maxlen=KEPT)
        self._number = 0

    @property
    def number(self) -> int:
        """Of the latest request."""
        with self._lock:
            return self._number

    def since(self, number: int) -> list[dict[str, Any]]:
        """Return the kept requests after that one."""
        with self._lock:
            fresh = [each for each in self._kept if each.number > number]
        return [each.as_dict() for each in fresh]

    def around(
        self, chassis: str, dialect: str, answer: Callable[[Request], Response | Dropped], *, streams: bool
    ) -> Callable[[Request], Response | Dropped]:
        """Return the same answer, logged. ``streams``: also where the reply is a stream; who hands those on to another
        way of answering would have them logged twice."""

        def logged(request: Request) -> Response | Dropped:
            begun_s = self._now()
            reply = answer(request)
            if streams or isinstance(reply, Dropped) or reply.stream is None:
                with self._lock:
                    self._number += 1
                    entry = LoggedRequest(self._number, begun_s, self._now(), chassis, dialect, request, reply)
                    self._kept.append(entry)
            return reply

        return logged


def _shown(body: bytes) -> str:
    text = body[:SHOWN].decode("utf-8", "replace")
    return _OF_FORMS.sub(r"\1***", _SECRET.sub(r'\1"***"', text))

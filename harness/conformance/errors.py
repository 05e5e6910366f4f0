"""What can come out of looking at a chassis.

::

    NoAnswerError            no connection, or one that was dropped, or time ran out; the request may have taken effect
    HttpServerError     an answer of HTTP 500 or more
    Malformed           an answer that is not of the dialect's form
    ListingUnavailableError  what was asked for cannot be had, after all patience
    Unmet               a clause does not hold
    NotJudgedError           a clause cannot be judged here
      OutOfTimeError         the time for the whole run is over
"""

from __future__ import annotations

from typing import Any


class NoAnswerError(Exception):
    """No answer came: ``kind`` is one of ``HOPELESS``, or dropped, timeout, cut, where a part of it came (``partial``),
    monitor, where a long operation's own answer cannot be had, or ``LOST``, where none was waited for."""

    LOST = "lost"

    HOPELESS = ("unresolved", "refused", "unreachable", "untrusted", "not-http")
    """Where nothing has ever answered, asking again is of no use."""

    def __init__(self, kind: str, text: str, partial: Any = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.partial = partial

    @property
    def topic(self) -> str:
        """What it is noted as."""
        return {"cut": "whole", "monitor": "task"}.get(self.kind, "answers")


class HttpServerError(Exception):
    """HTTP 500 or more, or 429. ``where`` is the request's method and path; ``comes_back``: it says when it will;
    ``topic``: what it is noted as."""

    def __init__(self, text: str, where: str = "", *, comes_back: bool = False, topic: str = "server-errors") -> None:
        super().__init__(text)
        self.where = where
        self.comes_back = comes_back
        self.topic = topic


class MalformedError(Exception):
    """The answer is not of the dialect's form."""


class ListingUnavailableError(Exception):
    """The chassis does not give what was asked for any more."""


class UnmetClauseError(Exception):
    """The clause does not hold; the text says what was seen and what it must be."""


class NotJudgedError(Exception):
    """The clause cannot be judged; the text says why."""


class OutOfTimeError(NotJudgedError):
    """The time for the whole run is over: nothing more is begun but putting devices back."""

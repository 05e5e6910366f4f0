"""What can come out of looking at a chassis.

::

    NoAnswer            no connection, or one that was dropped, or time ran out; the request may have taken effect
    HttpServerError     an answer of HTTP 500 or more
    Malformed           an answer that is not of the dialect's form
    ListingUnavailable  what was asked for cannot be had, after all patience
    Unmet               a clause does not hold
    NotJudged           a clause cannot be judged here
"""

from __future__ import annotations


class NoAnswer(Exception):
    """No answer came: ``kind`` is one of ``HOPELESS``, or dropped or timeout."""

    HOPELESS = ("unresolved", "refused", "unreachable", "untrusted", "not-http")
    """Where nothing has ever answered, asking again is of no use."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class HttpServerError(Exception):
    """HTTP 500 or more. ``where`` is the request's method and path; ``comes_back``: a 503 that says when it will."""

    def __init__(self, text: str, where: str = "", *, comes_back: bool = False) -> None:
        super().__init__(text)
        self.where = where
        self.comes_back = comes_back


class Malformed(Exception):
    """The answer is not of the dialect's form."""


class ListingUnavailable(Exception):
    """The chassis does not give what was asked for any more."""


class Unmet(Exception):
    """The clause does not hold; the text says what was seen and what it must be."""


class NotJudged(Exception):
    """The clause cannot be judged; the text says why."""

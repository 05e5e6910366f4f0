"""What can come out of looking at a chassis.

::

    NoAnswer     the connection was refused or dropped, or time ran out; the request may have taken effect
    ServerError  an answer of HTTP 500 or more
    Malformed    an answer that is not of the dialect's form
    Unavailable  no listing can be had any more, after all patience
    Unmet        a clause does not hold
    NotJudged    a clause cannot be judged here
"""

from __future__ import annotations


class NoAnswer(Exception):
    """No answer came: ``kind`` is refused, dropped or timeout."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class HttpServerError(Exception):
    """HTTP 500 or more."""


class Malformed(Exception):
    """The answer is not of the dialect's form."""


class ListingUnavailable(Exception):
    """The chassis gives no listing any more."""


class Unmet(Exception):
    """The clause does not hold; the text says what was seen and what it must be."""


class NotJudged(Exception):
    """The clause cannot be judged; the text says why."""

"""Reads that must be answered with JSON, for the clauses of a dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.errors import MalformedError, UnmetClauseError
from mews.harness.conformance.fields import kind_of


def insist_on_object(
    bench: ClauseContext, ask: Callable[[], HttpReply], where: str, *, most: int = 200
) -> tuple[HttpReply, dict[str, Any]]:
    """Return the reply and its object, asked for again while it is not JSON: a page now and then is noted, and is the
    finding of the clause about the form of all replies, not of the one that happened to ask. ``where``: the request;
    ``most``: the highest status that is a success.

    Raises UnmetClauseError where it is never JSON, is no object, or the status is no success; ListingUnavailableError,
    OutOfTimeError.
    """

    def asked() -> tuple[HttpReply, Any]:
        reply = ask()
        must(200 <= reply.status <= most, f"{where}: HTTP {reply.status}, must be {200 if most == 200 else '2xx'}")
        try:
            return reply, reply.json()
        except MalformedError as error:
            raise MalformedError(f"{where}: {error}") from error

    try:
        reply, value = bench.insist(asked)
    except MalformedError as error:
        raise UnmetClauseError(str(error)) from error
    must(isinstance(value, dict), f"{where}: {kind_of(value)}, must be an object")
    return reply, value

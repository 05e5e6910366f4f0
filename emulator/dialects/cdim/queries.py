"""What queries ask for, read strictly (contract cohdi.md 2.5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mews.emulator.dialects.cdim.errors import RefusedRequestError
from mews.emulator.dialects.cdim.layouts import FIELDS, STATES, AppliedLayout
from mews.emulator.dialects.stamps import unix_s_of
from mews.emulator.dialects.wire import Request

LIMIT = 20
"""Layouts in a list where nothing else is asked for."""


def flag(request: Request, name: str) -> bool:
    """``true`` or ``false`` in any case; false where it is empty or not there.

    Raises RefusedRequestError.
    """
    given = request.query.get(name, "")
    if given.lower() not in ("true", "false", ""):
        raise RefusedRequestError("invalid", f"{name}: {given!r} must be true or false")
    return given.lower() == "true"


def one_of(request: Request, name: str, allowed: Iterable[str], default: str = "") -> str:
    """Return a word of a query.

    Raises RefusedRequestError.
    """
    given = request.query.get(name)
    words = list(allowed)
    if given is not None and given not in words:
        raise RefusedRequestError("invalid", f"{name}: {given!r} is not one of {words}")
    return default if given is None else given


def count(request: Request, name: str, default: int, least: int) -> int:
    """Return an integer of a query.

    Raises RefusedRequestError.
    """
    given = request.query.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) < 10 and int(given) >= least):
        raise RefusedRequestError("invalid", f"{name}: {given!r} must be an integer from {least} on")
    return int(given)


def listed(request: Request, layouts: Iterable[AppliedLayout]) -> dict[str, Any]:
    """GetAllResponse: the layouts that a query asks for, ordered and cut as it says.

    Raises RefusedRequestError.
    """
    status = one_of(request, "status", STATES)
    fields = request.values("fields")
    strange = next((each for each in fields if each not in FIELDS), None)
    if strange is not None:
        raise RefusedRequestError("invalid", f"fields: {strange!r} is not one of {list(FIELDS)}")
    key = one_of(request, "sortBy", ("startedAt", "endedAt"), "startedAt")
    newest = one_of(request, "orderBy", ("asc", "desc"), "desc") == "desc"
    limit, offset = count(request, "limit", LIMIT, 1), count(request, "offset", 0, 0)
    spans = [
        (name, _time(request, f"{name}Since"), _time(request, f"{name}Until")) for name in ("startedAt", "endedAt")
    ]
    found = [each for each in layouts if not status or each.status == status]
    for name, since_s, until_s in spans:
        found = [each for each in found if _within(_at(each, name), since_s, until_s)]
    if newest:
        found.reverse()
    found.sort(key=lambda each: _rank(_at(each, key), newest=newest))
    page = found[offset : offset + limit]
    return {
        "count": len(page),
        "totalCount": len(found),
        "applyResults": [each.shown(fields) for each in page],
    }


def _at(layout: AppliedLayout, name: str) -> float | None:
    return layout.begun_s if name == "startedAt" else layout.ended_s


def _rank(at_s: float | None, *, newest: bool) -> float:
    """What has not ended comes after all that has."""
    if at_s is None:
        return float("inf")
    return -at_s if newest else at_s


def _within(at_s: float | None, since_s: float | None, until_s: float | None) -> bool:
    """Return it from the first on, and before the second; whole seconds, as they are shown."""
    if since_s is None and until_s is None:
        return True
    if at_s is None:
        return False
    whole_s = int(at_s)
    return (since_s is None or whole_s >= since_s) and (until_s is None or whole_s < until_s)


def _time(request: Request, name: str) -> float | None:
    given = request.query.get(name)
    if given is None:
        return None
    try:
        return unix_s_of(given)
    except (ValueError, OverflowError) as error:
        raise RefusedRequestError(
            "invalid", f"{name}: {given!r} must be a time such as 2024-01-29T10:00:00Z"
        ) from error

"""Pydantic's complaints in our words: which of several is told, and how its text reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


_TYPES: Mapping[str, str] = {"tuple_type": "must be a list", "list_type": "must be a list"}


def deepest(error: ValidationError, depth: Callable[[Sequence[str | int]], int] = len) -> Mapping[str, Any]:
    """The most telling of the complaints: that about the innermost place."""
    return max(error.errors(include_url=False), key=lambda complaint: depth(complaint["loc"]))


def worded(complaint: Mapping[str, Any]) -> str:
    """What it says, to stand after a place or a value."""
    if complaint["type"] in _TYPES:
        return _TYPES[complaint["type"]]
    text = str(complaint["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return text[:1].lower() + text[1:]


def first_complaint(error: ValidationError) -> tuple[str, str]:
    """The place of the most telling complaint, and what is allowed there."""
    complaint = deepest(error)
    return ".".join(str(part) for part in complaint["loc"]), _allowed(complaint)


def _allowed(complaint: Mapping[str, Any]) -> str:
    if complaint["type"] == "literal_error":
        allowed = str(complaint["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
        return f"{complaint['input']!r}: must be one of {allowed}"
    if complaint["type"] == "extra_forbidden":
        return "unknown key"
    if complaint["type"] == "missing":
        return "missing; it is required"
    return worded(complaint)

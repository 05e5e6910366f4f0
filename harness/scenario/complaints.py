"""Pydantic's complaints in our words: which of several is told, and how its text reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.names import must_be

if TYPE_CHECKING:
    from pydantic import ValidationError


_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "must be a mapping"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "none_required": "must be left out",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be {le} or less",
    "string_too_short": "must have {min_length} or more characters",
    "string_too_long": "must have {max_length} or fewer characters",
    "too_short": "must have {min_length} or more entries",
    "too_long": "must have {max_length} or fewer entries",
    "string_pattern_mismatch": "must match {pattern}",
}
"""Type of a complaint -> our words, with the names of its context (pydantic's list of validation errors)."""


def deepest(error: ValidationError, depth: Callable[[Sequence[str | int]], int] = len) -> Mapping[str, Any]:
    """Return the most telling of the complaints: that about the innermost place."""
    return max(error.errors(include_url=False), key=lambda complaint: depth(complaint["loc"]))


def worded(complaint: Mapping[str, Any]) -> str:
    """Return what it says, to stand after a place or a value."""
    if complaint["type"] in _WORDS:
        limits = {name: _number(value) for name, value in complaint.get("ctx", {}).items()}
        return _WORDS[complaint["type"]].format(**limits)
    if complaint["type"] in ("literal_error", "enum"):
        allowed = _allowed_values(complaint)
        return must_be(complaint["input"], allowed) if len(allowed) > 1 else f"must be {allowed[0]}"
    text = str(complaint["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return text[:1].lower() + text[1:]


def first_complaint(error: ValidationError) -> tuple[str, str]:
    """Return the place of the most telling complaint, and what is allowed there."""
    complaint = deepest(error)
    return ".".join(str(part) for part in complaint["loc"]), _allowed(complaint)


def _allowed(complaint: Mapping[str, Any]) -> str:
    if complaint["type"] == "literal_error":
        return f"{complaint['input']!r}: {worded(complaint)}"
    if complaint["type"] == "extra_forbidden":
        return "unknown key"
    if complaint["type"] == "missing":
        return "missing; it is required"
    return worded(complaint)


def _number(value: Any) -> Any:
    """Return a limit as people write it: a model's limit of a float is one, too."""
    return f"{value:g}" if isinstance(value, float) else value


def _allowed_values(complaint: Mapping[str, Any]) -> list[str]:
    """Return those of a choice: pydantic has them as ``'a', 'b' or 'c'``."""
    return str(complaint["ctx"]["expected"]).replace("'", "").replace(" or ", ", ").split(", ")

"""PATCH: which properties may be written, what is wrong with the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mews.emulator.dialects.redfish.messages import RedfishMessage, fail

Check = Callable[[Any], str | None]
"""Judges a value: None, or the name of the message that says what is wrong with it."""

Rules = Mapping[str, Any]
"""Property -> Check, or Rules of a nested object."""

TYPE, LIST, RANGE, FORM = (
    "PropertyValueTypeError",
    "PropertyValueNotInList",
    "PropertyValueOutOfRange",
    "PropertyValueFormatError",
)


def text(value: Any) -> str | None:
    """Return any string of reasonable length."""
    if not isinstance(value, str):
        return TYPE
    return None if len(value) <= 1024 else FORM


def boolean(value: Any) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else TYPE


def number(low: int, high: int) -> Check:
    """Return a whole number within bounds."""

    def judge(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return TYPE
        return None if low <= value <= high else RANGE

    return judge


def one_of(*allowed: Any) -> Check:
    """Return one of a few values."""

    def judge(value: Any) -> str | None:
        if not any(isinstance(value, type(each)) for each in allowed):
            return TYPE
        return None if value in allowed else LIST

    return judge


def texts(value: Any) -> str | None:
    """Return a list of strings; null takes an element away, ``{}`` leaves it as it is."""
    if not isinstance(value, list):
        return TYPE
    return None if all(each is None or each == {} or isinstance(each, str) for each in value) else TYPE


def links(key: str) -> Check:
    """Return a list of references, each an object with that key."""

    def judge(value: Any) -> str | None:
        if not isinstance(value, list):
            return TYPE
        return None if all(isinstance(each, dict) and isinstance(each.get(key), str) for each in value) else TYPE

    return judge


def sift(
    asked: Mapping[str, Any], rules: Rules, shown: Mapping[str, Any]
) -> tuple[dict[str, Any], list[RedfishMessage]]:
    """Return what of a PATCH can be done, and a message about each property that cannot.

    ``shown`` is the resource as it is: a property in it that has no rule is read-only, any other unknown.
    Raises RedfishError (400) where nothing is asked or nothing of it can be done.
    """
    named = {name: value for name, value in asked.items() if not _annotation(name)}
    if not named:
        raise fail(400, "NoOperation")
    changes, problems = _sift(named, rules, shown, "")
    if not changes:
        error = fail(400, "NoOperation")
        raise type(error)(400, tuple(problems) or error.messages)
    return changes, problems


def _annotation(name: str) -> bool:
    return name.startswith(("@odata.", "@Message.", "@Redfish."))


def _sift(
    asked: Mapping[str, Any], rules: Rules, shown: Mapping[str, Any], at: str
) -> tuple[dict[str, Any], list[RedfishMessage]]:
    changes: dict[str, Any] = {}
    problems: list[RedfishMessage] = []
    for name, value in asked.items():
        if _annotation(name):
            continue
        place, rule, now = f"{at}/{name}", rules.get(name), shown.get(name)
        if rule is None:
            known = name in shown or name in ("Id", "Name")
            problems.append(
                RedfishMessage("PropertyNotWritable" if known else "PropertyUnknown", (name,), (f"#{place}",))
            )
        elif isinstance(rule, Mapping):
            if not isinstance(value, dict):
                problems.append(RedfishMessage(TYPE, (_brief(value), name), (f"#{place}",)))
                continue
            inner, worse = _sift(value, rule, now if isinstance(now, dict) else {}, place)
            problems += worse
            if inner:
                changes[name] = inner
        elif (wrong := rule(value)) is not None:
            problems.append(RedfishMessage(wrong, (_brief(value), name), (f"#{place}",)))
        else:
            changes[name] = _list(value, now) if isinstance(value, list) else value
    return changes, problems


def _list(asked: list[Any], shown: Any) -> list[Any]:
    """Element by element: null is left out, ``{}`` stays what it was, the rest is replaced (DSP0266, array PATCH)."""
    old = shown if isinstance(shown, list) else []
    merged = [old[place] if each == {} and place < len(old) else each for place, each in enumerate(asked)]
    return [each for each in merged if each is not None and each != {}]


def _brief(value: Any) -> str:
    return str(value)[:100]


def merge(shown: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body with written properties laid over it."""
    merged = dict(shown)
    for name, value in changes.items():
        under = merged.get(name)
        merged[name] = merge(under, value) if isinstance(value, Mapping) and isinstance(under, dict) else value
    return merged

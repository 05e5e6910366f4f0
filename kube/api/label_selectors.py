"""The grammar of label selectors, with its refusals word for word (k8s.io/apimachinery/pkg/labels/selector.go)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

Labels = Mapping[str, str]

_TOKEN = re.compile(r"\s*(==|!=|[=!()<>,]|[^\s=!()<>,]+)")
_OPERATORS = ("in", "notin", "=", "==", "!=", ">", "<")
_NAMED_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_SPECIAL = frozenset("=!()<>,") | {"==", "!="}
_WHOLE = re.compile(r"-?[0-9]{1,19}")


class Requirement(Struct, frozen=True):
    """One term: ``operator`` is in, notin, =, ==, !=, >, <, ``exists`` or ``!``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class _Reader:
    """The tokens of a selector; "" stands for its end."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self._next += 1
        return token


def _is_word(token: str) -> bool:
    return token != "" and token not in _SPECIAL


def requirements(text: str) -> list[Requirement]:
    """Return the terms of ``a=b,c in (d,e),!f``.

    Raises ValueError, worded as the API server does, for what is no selector. Keys and values are not judged.
    """
    reader, found = _Reader(text), []
    if reader.peek() == "":
        return []
    if not (_is_word(reader.peek()) or reader.peek() == "!"):
        raise ValueError(f"found '{reader.peek()}', expected: !, identifier, or 'end of string'")
    while True:
        try:
            found.append(_requirement(reader))
        except ValueError as error:
            raise ValueError(f"unable to parse requirement: {error}") from None
        token = reader.take()
        if token == "":
            return found
        if token != ",":
            raise ValueError(f"found '{token}', expected: ',' or 'end of string'")
        if not (_is_word(reader.peek()) or reader.peek() == "!"):
            raise ValueError(f"found '{reader.peek()}', expected: identifier after ','")


def _requirement(reader: _Reader) -> Requirement:
    negated = reader.peek() == "!"
    if negated:
        reader.take()
    key = reader.take()
    if not _is_word(key):
        raise ValueError(f"found '{key}', expected: identifier")
    if negated:
        return Requirement(key, "!")
    if reader.peek() in ("", ","):
        return Requirement(key, "exists")
    operator = reader.take()
    if operator not in _OPERATORS:
        raise ValueError(f"found '{operator}', expected: {_NAMED_OPERATORS}")
    values = _set(reader) if operator in ("in", "notin") else (_value(reader),)
    if operator in "<>" and not _WHOLE.fullmatch(values[0]):
        text = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise ValueError(f'values[0]: Invalid value: "{values[0]}": {text}')
    return Requirement(key, operator, values)


def _value(reader: _Reader) -> str:
    if reader.peek() in ("", ","):
        return ""
    token = reader.take()
    if not _is_word(token):
        raise ValueError(f"found '{token}', expected: identifier")
    return token


def _set(reader: _Reader) -> tuple[str, ...]:
    opening = reader.take()
    if opening != "(":
        raise ValueError(f"found '{opening}' expected: '('")
    values: list[str] = []
    while True:
        if _is_word(reader.peek()):
            values.append(reader.take())
        elif reader.peek() in (",", ")"):
            values.append("")
        else:
            raise ValueError(f"found '{reader.peek()}', expected: ',', ')' or identifier")
        closing = reader.take()
        if closing == ")":
            return tuple(sorted(set(values)))
        if closing != ",":
            raise ValueError(f"found '{closing}', expected: ',' or ')'")


def predicate(requirement: Requirement) -> Callable[[Labels], bool]:
    """Return what a requirement asks of labels."""
    key, values = requirement.key, frozenset(requirement.values)
    match requirement.operator:
        case "exists":
            return lambda labels: key in labels
        case "!":
            return lambda labels: key not in labels
        case "in":
            return lambda labels: key in labels and labels[key] in values
        case "notin":
            return lambda labels: key not in labels or labels[key] not in values
        case "=" | "==":
            (wanted,) = values
            return lambda labels: labels.get(key) == wanted
        case "!=":
            (avoided,) = values
            return lambda labels: labels.get(key) != avoided
    (bound,) = values
    return comparison(key, greater=requirement.operator == ">", bound=int(bound))


def comparison(key: str, *, greater: bool, bound: int) -> Callable[[Labels], bool]:
    """Return whether a label is a whole number above or below the bound."""

    def holds(labels: Labels) -> bool:
        value = labels.get(key, "")
        if not _WHOLE.fullmatch(value):
            return False
        return int(value) > bound if greater else int(value) < bound

    return holds

"""``$filter``: comparisons of properties with literals, joined by and, or, not and brackets (DSP0266, filter)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

Test = Callable[[Mapping[str, Any]], bool]

TOKEN = re.compile(r"\s*(?:(\()|(\))|('(?:[^']|'')*')|([^\s()']+))")
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda left, right: bool(left == right),
    "ne": lambda left, right: bool(left != right),
    "gt": lambda left, right: bool(left > right),
    "ge": lambda left, right: bool(left >= right),
    "lt": lambda left, right: bool(left < right),
    "le": lambda left, right: bool(left <= right),
}
DEEPEST = 50
ABSENT = object()


def parse_filter(text: str, allowed: frozenset[str] | None = None) -> Test:
    """Return the test that a ``$filter`` describes, by any property or by those ``allowed``.

    Raises ValueError where it cannot be read.
    """
    tokens = _tokens(text)
    compared = {name for name, word in pairwise(tokens) if word in COMPARE}
    if allowed is not None and not compared <= allowed:
        raise ValueError(f"{', '.join(sorted(compared - allowed))}: must be one of {', '.join(sorted(allowed))}")
    test, rest = _either(tokens, 0)
    if rest:
        raise ValueError(f"{rest[0]}: not expected here")
    return test


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    while place < len(text.rstrip()):
        match = TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"{text[place:]}: cannot be read")
        tokens.append(next(each for each in match.groups() if each is not None))
        place = match.end()
    return tokens


def _either(tokens: list[str], depth: int) -> tuple[Test, list[str]]:
    left, tokens = _both(tokens, depth)
    while tokens and tokens[0] == "or":
        right, tokens = _both(tokens[1:], depth)
        left = _or(left, right)
    return left, tokens


def _both(tokens: list[str], depth: int) -> tuple[Test, list[str]]:
    left, tokens = _one(tokens, depth)
    while tokens and tokens[0] == "and":
        right, tokens = _one(tokens[1:], depth)
        left = _and(left, right)
    return left, tokens


def _or(left: Test, right: Test) -> Test:
    return lambda body: left(body) or right(body)


def _and(left: Test, right: Test) -> Test:
    return lambda body: left(body) and right(body)


def _one(tokens: list[str], depth: int) -> tuple[Test, list[str]]:
    if not tokens or depth > DEEPEST:
        raise ValueError("ends too early or is nested too deep")
    if tokens[0] == "not":
        test, rest = _one(tokens[1:], depth + 1)
        return (lambda body: not test(body)), rest
    if tokens[0] == "(":
        test, rest = _either(tokens[1:], depth + 1)
        if not rest or rest[0] != ")":
            raise ValueError("a bracket is not closed")
        return test, rest[1:]
    if len(tokens) < 3 or tokens[1] not in COMPARE:
        raise ValueError(f"{' '.join(tokens[:3])}: must be a property, one of {', '.join(COMPARE)}, and a value")
    return _comparison(tokens[0], tokens[1], _literal(tokens[2])), tokens[3:]


def _comparison(path: str, word: str, value: Any) -> Test:
    compare, steps = COMPARE[word], path.split("/")

    def test(body: Mapping[str, Any]) -> bool:
        found: Any = body
        for step in steps:
            found = found.get(step, ABSENT) if isinstance(found, Mapping) else ABSENT
        if found is ABSENT:
            return word == "ne"
        if word not in ("eq", "ne") and (isinstance(found, bool) or not _alike(found, value)):
            return False
        return compare(found, value)

    return test


def _alike(left: Any, right: Any) -> bool:
    return (isinstance(left, str) and isinstance(right, str)) or (
        isinstance(left, int | float) and isinstance(right, int | float)
    )


def _literal(token: str) -> Any:
    if token.startswith("'"):
        return token[1:-1].replace("''", "'")
    named = {"true": True, "false": False, "null": None}
    if token in named:
        return named[token]
    try:
        return int(token) if re.fullmatch(r"-?\d+", token) else float(token)
    except ValueError:
        raise ValueError(f"{token}: must be a quoted string, a number, true, false or null") from None

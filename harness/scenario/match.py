"""Partial matching of objects, with every list's mode written out.

A mapping matches when each of its keys does; what it does not name is free. A scalar matches its equal, of the same
type. A bare list is refused: say which kind of match is meant.

============================== ===============================================================================
``{$exact: [a, b]}``           a list of just these, in this order
``{$unordered: [a, b]}``       a list of just these, in any order
``{$contains: [a, b]}``        a list with these among others, in any order
``{$each: p}``                 a list whose every item matches
``{$count: {of: p, is: n}}``   so many items of the list (values of the mapping) match
``{$len: n}``                  a list, mapping or text of that length
``{$exists: true|false}``      there, or not there (null counts as not there)
``{$any: true}``               anything that is there
``{$regex: text}``             a text in which the expression is found (anchor with ^ and $)
``{$gt: x}``, $ge, $lt, $le    a number or quantity (``"4"``, ``500m``) above, at least, below, at most
``{$eq: x}``                   the same number or quantity, however written
``{$in: [p, q]}``              matches one of these
``{$all: [p, q]}``             matches all of these
``{$not: p}``                  does not match
============================== ===============================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from mews.kube.api.quantities import parse


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()
"""What stands for a key that is not there."""


class Mismatch(Struct, frozen=True):
    """The first place where a value is not as expected."""

    path: str
    expected: str
    actual: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}expected {self.expected}, is {self.actual}"


def show(value: Any, limit: int = 160) -> str:
    """Return a value in one short line."""
    if value is MISSING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def match(pattern: Any, actual: Any, path: str = "") -> Mismatch | None:
    """Return None when the value matches, else the first place where it does not."""
    if isinstance(pattern, (dict, Mapping)):  # a dict is known for one without asking what a Mapping is
        operators = [key for key in pattern if str(key).startswith("$")]
        if operators:
            return _first(_OPERATORS[key](pattern[key], actual, path) for key in operators)
        if not isinstance(actual, (dict, Mapping)):
            return Mismatch(path, show(pattern), show(actual))
        return _first(
            match(value, actual.get(key, MISSING), f"{path}.{key}" if path else str(key))
            for key, value in pattern.items()
        )
    if _is_value(pattern, actual):
        return None
    if pattern is None:
        return Mismatch(path, "null", show(actual))
    hint = " (a text: quote it)" if isinstance(actual, str) and str(pattern) == actual else ""
    return Mismatch(path, show(pattern) + hint, show(actual))


def fits(pattern: Any, actual: Any) -> bool:
    """Return whether the value matches, without words for where it does not: waits ask this of every object, often."""
    if type(pattern) is not dict or type(actual) is not dict:
        return match(pattern, actual) is None if isinstance(pattern, Mapping) else _is_value(pattern, actual)
    for key, value in pattern.items():
        if str(key).startswith("$"):
            return match(pattern, actual) is None
        if not fits(value, actual.get(key, MISSING)):
            return False
    return True


def check_pattern(pattern: Any) -> None:
    """Refuse what is no pattern.

    Raises ValueError with the place and what is allowed.
    """
    _check(pattern, "")


def alternatives(pattern: Any) -> Iterator[Any]:
    """Yield what a value may equal for the pattern to match, or must not equal: the pattern itself, or what is in
    ``$in``, ``$all`` and ``$not``; nothing of operators that compare."""
    operators = [key for key in pattern if str(key).startswith("$")] if isinstance(pattern, Mapping) else []
    if not operators:
        yield pattern
    for key in operators:
        for inner in pattern[key] if key in ("$in", "$all") else [pattern[key]] if key == "$not" else ():
            yield from alternatives(inner)


def check_count(pattern: Any, where: str = "") -> None:
    """Refuse what no number of things can match: it would fail, or hold, whatever happens.

    Raises ValueError.
    """
    for value in alternatives(pattern):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{where}{value!r} must be a whole number of at least 0, or compare with one: {{$ge: 1}}")


def _first(mismatches: Any) -> Mismatch | None:
    return next((mismatch for mismatch in mismatches if mismatch is not None), None)


def _is_value(pattern: Any, actual: Any) -> bool:
    return (actual is None or actual is MISSING) if pattern is None else _same(pattern, actual)


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return expected == actual
    return type(expected) is type(actual) and expected == actual


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return parse(value)
    except ValueError:
        return None


def _compared(sign: str, holds: Callable[[Decimal, Decimal], bool]) -> Callable[[Any, Any, str], Mismatch | None]:
    def operator(operand: Any, actual: Any, path: str) -> Mismatch | None:
        bound, value = _number(operand), _number(actual)
        if bound is not None and value is not None and holds(value, bound):
            return None
        return Mismatch(path, f"{sign} {operand}", show(actual))

    return operator


def _items(actual: Any, path: str, expected: Sequence[Any], text: str) -> Mismatch | None:
    if isinstance(actual, list | tuple):
        return None
    return Mismatch(path, f"{text} {show(expected)}", show(actual))


def _exact(expected: Any, actual: Any, path: str) -> Mismatch | None:
    wrong = _items(actual, path, expected, "exactly")
    if wrong is None and len(actual) != len(expected):
        wrong = Mismatch(path, f"exactly {len(expected)} items {show(expected)}", f"{len(actual)}: {show(actual)}")
    return wrong or _first(match(e, a, f"{path}[{i}]") for i, (e, a) in enumerate(zip(expected, actual, strict=False)))


def _contains(expected: Any, actual: Any, path: str) -> Mismatch | None:
    wrong = _items(actual, path, expected, "a list containing")
    if wrong is not None:
        return wrong
    lonely = _unpaired(expected, actual)
    return None if lonely is None else Mismatch(path, f"an item {show(expected[lonely])}", show(actual))


def _unordered(expected: Any, actual: Any, path: str) -> Mismatch | None:
    wrong = _items(actual, path, expected, "in any order")
    if wrong is None and len(actual) != len(expected):
        wrong = Mismatch(path, f"{len(expected)} items {show(expected)}", f"{len(actual)}: {show(actual)}")
    return wrong or _contains(expected, actual, path)


def _unpaired(expected: Sequence[Any], actual: Sequence[Any]) -> int | None:
    """Return the first pattern for which no pairing leaves an item (augmenting paths)."""
    owner: dict[int, int] = {}

    def place(pattern: int, tried: set[int]) -> bool:
        for item in range(len(actual)):
            if item in tried or not fits(expected[pattern], actual[item]):
                continue
            tried.add(item)
            if item not in owner or place(owner[item], tried):
                owner[item] = pattern
                return True
        return False

    return next((pattern for pattern in range(len(expected)) if not place(pattern, set())), None)


def _each(pattern: Any, actual: Any, path: str) -> Mismatch | None:
    wrong = _items(actual, path, [pattern], "a list of")
    return wrong or _first(match(pattern, item, f"{path}[{index}]") for index, item in enumerate(actual))


def _count(operand: Any, actual: Any, path: str) -> Mismatch | None:
    items = list(actual.values()) if isinstance(actual, Mapping) else actual
    if not isinstance(items, list | tuple):
        return Mismatch(path, "a list to count in", show(actual))
    number = sum(fits(operand["of"], item) for item in items)
    wrong = match(operand["is"], number)
    return wrong and Mismatch(path, f"{show(operand['is'])} items like {show(operand['of'])}", str(number))


def _length(operand: Any, actual: Any, path: str) -> Mismatch | None:
    if not isinstance(actual, list | tuple | Mapping | str):
        return Mismatch(path, f"length {show(operand)}", show(actual))
    wrong = match(operand, len(actual))
    return wrong and Mismatch(path, f"length {show(operand)}", f"{len(actual)}: {show(actual)}")


def _exists(operand: Any, actual: Any, path: str) -> Mismatch | None:
    there = actual is not MISSING and actual is not None
    if there is bool(operand):
        return None
    return Mismatch(path, "something" if operand else "nothing", show(actual))


def _regex(operand: Any, actual: Any, path: str) -> Mismatch | None:
    if isinstance(actual, str) and re.search(operand, actual, re.MULTILINE):
        return None
    return Mismatch(path, f"a text like /{operand}/", show(actual))


def _in(operand: Any, actual: Any, path: str) -> Mismatch | None:
    if any(fits(pattern, actual) for pattern in operand):
        return None
    return Mismatch(path, f"one of {show(operand)}", show(actual))


def _all(operand: Any, actual: Any, path: str) -> Mismatch | None:
    return _first(match(pattern, actual, path) for pattern in operand)


def _not(operand: Any, actual: Any, path: str) -> Mismatch | None:
    return None if match(operand, actual) is not None else Mismatch(path, f"not {show(operand)}", show(actual))


_OPERATORS: dict[str, Callable[[Any, Any, str], Mismatch | None]] = {
    "$exact": _exact,
    "$unordered": _unordered,
    "$contains": _contains,
    "$each": _each,
    "$count": _count,
    "$len": _length,
    "$exists": _exists,
    "$any": lambda _operand, actual, path: _exists(True, actual, path),
    "$regex": _regex,
    "$gt": _compared(">", lambda a, b: a > b),
    "$ge": _compared(">=", lambda a, b: a >= b),
    "$lt": _compared("<", lambda a, b: a < b),
    "$le": _compared("<=", lambda a, b: a <= b),
    "$eq": _compared("=", lambda a, b: a == b),
    "$in": _in,
    "$all": _all,
    "$not": _not,
}
_OF_PATTERNS = ("$exact", "$unordered", "$contains", "$in", "$all")
_OF_PATTERN = ("$each", "$len", "$not")
_OF_NUMBER = ("$gt", "$ge", "$lt", "$le", "$eq")


def _check(pattern: Any, path: str) -> None:
    where = f"at {path}: " if path else ""
    if isinstance(pattern, list | tuple):
        raise ValueError(
            f"{where}a bare list does not say how to match: write {{$exact: […]}}, $unordered or $contains"
        )
    if not isinstance(pattern, Mapping):
        return
    operators = [key for key in pattern if str(key).startswith("$")]
    if operators and len(operators) != len(pattern):
        plain = next(key for key in pattern if key not in operators)
        raise ValueError(f"{where}{operators[0]} and the plain key {plain!r} cannot be combined")
    for key, value in pattern.items():
        if key in operators:
            _check_operator(str(key), value, path)
        else:
            _check(value, f"{path}.{key}" if path else str(key))


# Complex: one branch for each shape of operand.
def _check_operator(key: str, value: Any, path: str) -> None:  # noqa: C901
    where = f"at {path}: {key}: " if path else f"{key}: "
    if key not in _OPERATORS:
        raise ValueError(f"{where}unknown operator; allowed: {', '.join(_OPERATORS)}")
    # One branch per shape of operand; each must name its own place and what is allowed, which a table cannot.
    if key in _OF_PATTERNS:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}{value!r} must be a list")
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]")
    elif key in _OF_PATTERN:
        _check(value, path)
        if key == "$len":
            check_count(value, where)
    elif key in _OF_NUMBER and _number(value) is None:
        raise ValueError(f"{where}{value!r} must be a number or a quantity")
    elif key in ("$exists", "$any") and not isinstance(value, bool):
        raise ValueError(f"{where}{value!r} must be true or false")
    elif key == "$count" and (not isinstance(value, Mapping) or set(value) != {"of", "is"}):
        raise ValueError(f"{where}{value!r} must have the keys of and is")
    elif key == "$count":
        _check(value["of"], path)
        _check(value["is"], path)
        check_count(value["is"], where)
    elif key == "$regex":
        _check_regex(value, where)


def _check_regex(value: Any, where: str) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{where}{value!r} must be a regular expression")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{where}{value!r} is not a regular expression: {error}") from None

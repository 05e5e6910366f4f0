"""``string.format``: its clauses, which types each takes, and the text (cel-go's ext/formatting.go)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from mews.kube.api.quoted_text import quoted
from mews.kube.cel.operators import double_text, shown
from mews.kube.cel.values import CelError, Duration, Timestamp, TypeName, type_of

_INTEGERS = frozenset(("int", "uint"))
_TAKES: dict[str, tuple[frozenset[str], str]] = {
    "d": (_INTEGERS, "decimal clause can only be used on integers"),
    "f": (frozenset(("double",)), "fixed-point clause can only be used on doubles"),
    "e": (frozenset(("double",)), "scientific clause can only be used on doubles"),
    "b": (_INTEGERS | {"bool"}, "only integers and bools can be formatted as binary"),
    "o": (_INTEGERS, "octal clause can only be used on integers"),
    "x": (_INTEGERS | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
}
_TAKES["X"] = _TAKES["x"]
_NOT_TEXT = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps"
)
_UNREAD = "could not parse formatting clause: "


class FormatClause(NamedTuple):
    """What stands before a clause, its letter ("" after the last one) and its precision."""

    before: str
    letter: str
    precision: int


def clauses(text: str) -> list[FormatClause]:
    """Return the clauses of a text; the last has no letter.

    Raises ``CelError``.
    """
    found, before, at = [], "", 0
    while at < len(text):
        if text[at] != "%":
            before, at = before + text[at], at + 1
            continue
        match = re.compile(r"%(\.\d*)?(.?)", re.DOTALL).match(text, at)
        assert match is not None
        precision, letter, at = match[1], match[2], match.end()
        if not letter and precision is None:
            raise CelError("unexpected end of string")
        if not letter:
            raise CelError(f"{_UNREAD}error while parsing precision: could not find end of precision specifier")
        if letter == "%" and precision is None:
            before += "%"
            continue
        if precision == ".":
            why = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise CelError(f"{_UNREAD}error while parsing precision: {why}")
        if letter != "s" and letter not in _TAKES:
            raise CelError(f'{_UNREAD}unrecognized formatting clause "{chr(letter.encode()[0])}"')  # Of Go's bytes.
        found.append(FormatClause(before, letter, int(precision[1:]) if precision else 6))
        before = ""
    return [*found, FormatClause(before, "", 0)]


def count_error(found: Sequence[FormatClause], given: int) -> str:
    """Return what is wrong with the number of arguments, "" when nothing is."""
    wanted = len(found) - 1
    if given < wanted:
        return f"index {given} out of range"
    return f"too many arguments supplied to string.format (expected {wanted}, got {given})" if given > wanted else ""


def type_error(letter: str, name: str) -> str:
    """Return why a clause does not take a value of that type, "" when it does."""
    if name == "dyn":
        return ""
    if letter == "s":
        fits, why = not name.startswith(("kubernetes.", "net.", "optional_type")), _NOT_TEXT
    else:
        fits, why = name in _TAKES[letter][0], _TAKES[letter][1]
    return "" if fits else f"error during formatting: {why}, was given {name}"


def formatted(text: str, args: list[Any]) -> str:
    """Return the text with its clauses replaced.

    Raises ``CelError``.
    """
    found = clauses(text)
    parts = []
    for clause, value in zip(found, args, strict=False):
        if clause.letter:
            if why := type_error(clause.letter, type_of(value)):
                raise CelError(why)
            parts += [clause.before, _put(clause, value)]
    if (why := count_error(found, len(args))) and len(args) < len(found):
        raise CelError(why)
    return "".join([*parts, found[-1].before])


def _put(clause: FormatClause, value: Any) -> str:
    letter = clause.letter
    if letter == "s":
        return _text(value)
    if letter in "fe":
        if not math.isfinite(value):
            return double_text(value)
        return f"{value:,.{clause.precision}f}" if letter == "f" else _scientific(value)
    if letter in "dbo" or isinstance(value, int):
        return f"{int(value):{letter}}"
    raw: str = (value.encode() if isinstance(value, str) else value).hex()
    return raw.upper() if letter == "X" else raw


_RAISED = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _scientific(value: float) -> str:
    """Return a double as golang.org/x/text writes it in English: always six digits, for any precision."""
    head, _, power = f"{value:e}".partition("e")
    return f"{head}×10{power.removeprefix('+').translate(_RAISED)}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_within(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_key(key)}:{_within(item)}" for key, item in value.items())) + "}"
    if value is None:
        return "null"
    if isinstance(value, TypeName):
        return value.name
    if isinstance(value, float):
        return double_text(value)
    return shown(value) if not isinstance(value, bytes) else value.decode(errors="replace")


def _key(key: Any) -> str:
    if isinstance(key, (bool, int, str)):
        return _within(key)
    raise CelError(f"error during formatting: no formatting function for map key of type {type_of(key)}")


def _within(value: Any) -> str:
    """Return a member of a list or a map, as CEL would write it."""
    if isinstance(value, float):
        return f"{value:,.6f}" if math.isfinite(value) else f'"{double_text(value)}"'
    if isinstance(value, (str, bytes)):
        return ("b" if isinstance(value, bytes) else "") + quoted(_text(value))
    if isinstance(value, (Timestamp, Duration)):
        return f'{type(value).__name__.lower()}("{value}")'
    if why := type_error("s", type_of(value)):
        raise CelError(why)
    return _text(value)

"""Values of CEL in Python, their types, equality and order.

int, float, str, bytes, bool, None, list and dict are themselves; what Python has no type for is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

INT_MIN, INT_MAX, UINT_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


class CelError(Exception):
    """An expression cannot be evaluated."""


class CelSyntaxError(Exception):
    """An expression cannot be read, or does not fit together."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at
        self.text = text


class Uint(int):
    """An unsigned integer."""


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant."""

    at: datetime


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in nanoseconds."""

    ns: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """The value of ``type(x)`` and of names such as ``int``."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may not be there."""

    value: Any = None
    present: bool = False


@dataclass(frozen=True, slots=True)
class QuantityValue:
    """A resource quantity."""

    amount: Decimal
    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of a library's own type: ``kind`` names it, ``content`` is the library's."""

    kind: str
    content: Any


@dataclass(frozen=True, slots=True)
class ReceiverObject:
    """A value that is its methods: ``methods`` by name, called with the arguments."""

    kind: str
    methods: dict[str, Callable[..., Any]]
    fields: dict[str, Any] = field(default_factory=dict)


class LazyMap(dict[str, Any]):
    """A map whose values are made when they are first asked for."""

    def __init__(self, makers: dict[str, Callable[[], Any]]) -> None:
        super().__init__()
        self._makers = makers

    def __contains__(self, key: object) -> bool:
        return key in self._makers

    def __getitem__(self, key: str) -> Any:
        if not dict.__contains__(self, key):
            self[key] = self._makers[key]()
        return dict.__getitem__(self, key)


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    LazyMap: "map",
    type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    QuantityValue: "kubernetes.Quantity",
}


def type_name(value: Any) -> str:
    """What ``type(value)`` is called."""
    if isinstance(value, (Opaque, ReceiverObject)):
        return value.kind
    return _NAMES.get(type(value), "dyn")


def is_number(value: Any) -> bool:
    """Whether it is an int, uint or double."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """CEL's equality: numbers by value, all else of one type only."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and equal(left[key], right[key]) for key in left)
    if isinstance(left, QuantityValue) and isinstance(right, QuantityValue):
        return left.amount == right.amount
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.present == right.present and equal(left.value, right.value)
    return type(left) is type(right) and bool(left == right)


def checked(value: Any) -> Any:
    """A number that its type can hold."""
    if isinstance(value, Uint):
        if not 0 <= value <= UINT_MAX:
            raise CelError("unsigned integer overflow")
    elif isinstance(value, int) and not isinstance(value, bool) and not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return value


_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def parse_duration(text: str) -> Duration:
    """``1h30m`` and the like."""
    if text == "0":
        return Duration(0)
    match = _DURATION.fullmatch(text)
    if match is None:
        raise CelError(f'time: invalid duration "{text}"')
    total = sum((Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Decimal())
    return Duration(int(-total if match[1] == "-" else total))


def show_duration(value: Duration) -> str:
    """A duration in seconds, as ``string()`` writes it."""
    seconds = Decimal(value.ns) / 10**9
    return f"{format(seconds.normalize(), 'f')}s"


def parse_timestamp(text: str) -> Timestamp:
    """An instant of RFC 3339."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or "T" not in text:
        raise CelError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    return Timestamp(found.astimezone(UTC))


def show_timestamp(value: Timestamp) -> str:
    """An instant, as ``string()`` writes it."""
    text = value.at.isoformat().replace("+00:00", "")
    return (text.rstrip("0") if "." in text else text) + "Z"


def moved(value: Timestamp, ns: int) -> Timestamp:
    """An instant later by so many nanoseconds."""
    try:
        return Timestamp(value.at + timedelta(microseconds=ns / 1000))
    except OverflowError:
        raise CelError("timestamp overflow") from None

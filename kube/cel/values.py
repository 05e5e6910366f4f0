"""Values of CEL as Python's: bool, int, float, str, bytes, None, list, dict stand for their own; the rest is here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

Variables = dict[str, Any]
"""What an expression sees, by name."""


class CelError(Exception):
    """An expression that cannot be evaluated: its message."""


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


_NANO = 10**9
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": _NANO, "m": 60 * _NANO, "h": 3600 * _NANO}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))")


class Duration(Struct, frozen=True, order=True):
    """A span in nanoseconds."""

    nanos: int

    @classmethod
    def parse(cls, text: str) -> Duration:
        """``1h30m``; raises ``CelError``."""
        sign, rest = (-1 if text[:1] == "-" else 1), text.lstrip("+-") if text[:1] in ("+", "-") else text
        if rest == "0":
            return cls(0)
        parts = _PART.findall(rest)
        if not parts or "".join(number + unit for number, unit in parts) != rest:
            raise CelError(f'time: invalid duration "{text}"')
        from decimal import Decimal

        nanos = sign * sum(int(Decimal(number) * _UNITS[unit]) for number, unit in parts)
        if not -(1 << 63) <= nanos < 1 << 63:
            raise CelError(f'time: invalid duration "{text}"')
        return cls(nanos)

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.nanos), _NANO)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if self.nanos < 0 else ''}{whole}{fraction}s"


class Timestamp(Struct, frozen=True, order=True):
    """A point in time: nanoseconds since 1970."""

    nanos: int

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """``2006-01-02T15:04:05Z``; raises ``CelError``."""
        match = _RFC3339.fullmatch(text)
        if match is None:
            raise CelError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"')
        try:
            moment = datetime(*(int(part) for part in match.groups()[:6]), tzinfo=UTC)  # type: ignore[arg-type,misc]
        except ValueError:
            raise CelError(f'parsing time "{text}": out of range') from None
        nanos = int(moment.timestamp()) * _NANO + int((match[7] or "0").ljust(9, "0")[:9])
        if match[8]:
            offset = (int(match[9]) * 3600 + int(match[10]) * 60) * _NANO
            nanos += -offset if match[8] == "+" else offset
        return cls(nanos)

    def moment(self) -> datetime:
        """Return it as Python has it, without what is below a microsecond."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.nanos // 1000)

    def __str__(self) -> str:
        rest = self.nanos % _NANO
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{self.moment().strftime('%Y-%m-%dT%H:%M:%S').rjust(19, '0')}{fraction}Z"


class SomeValue(Struct, frozen=True):
    """An optional that has a value; None of them is ``NOTHING``."""

    value: Any


class Nothing:
    """The optional without a value."""

    __slots__ = ()


NOTHING = Nothing()


class TypeName(Struct, frozen=True):
    """What ``type(x)`` gives."""

    name: str


class Record(dict[str, Any]):
    """An object whose fields are known: what it lacks is no such key, as in a map."""

    __slots__ = ()


class Defaulting(dict[Any, Any]):
    """A map in which what is not there is an empty map when it is selected; ``in`` tells what is there."""

    __slots__ = ()

    def __missing__(self, _key: Any) -> dict[str, Any]:
        return {}


class Listed(list[Any]):
    """A list that is a set or, by ``keys``, a map: the order of its items does not count."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...] = ()) -> None:
        super().__init__(items)
        self.keys = keys

    def key_of(self, item: Any) -> Any:
        """Return what an item is known by."""
        return tuple(item.get(key) for key in self.keys) if self.keys and isinstance(item, dict) else item


class LazyMap(dict[str, Any]):
    """A map whose values are made when they are first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__()
        self._makers = makers

    def __contains__(self, key: object) -> bool:
        return key in self._makers

    def __getitem__(self, key: str) -> Any:
        if not dict.__contains__(self, key):
            self[key] = self._makers[key]()
        return dict.__getitem__(self, key)


class Receiver(Record):
    """A value that does what it is asked to: its type's name, and its methods by name. It may have fields."""

    __slots__ = ("kind", "methods")

    def __init__(
        self, kind: str, methods: Mapping[str, Callable[..., Any]], fields: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(fields or {})
        self.kind = kind
        self.methods = methods


def type_of(value: Any) -> str:
    """Return the name of a value's type."""
    if isinstance(value, Receiver):
        return value.kind
    if value is None:
        return "null_type"
    if isinstance(value, bool):
        return "bool"
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return str(getattr(type(value), "cel_name", "dyn"))


_NAMES = (
    (UInt, "uint"), (int, "int"), (float, "double"), (str, "string"), (bytes, "bytes"), (list, "list"), (dict, "map"),
    (Timestamp, "google.protobuf.Timestamp"), (Duration, "google.protobuf.Duration"), (SomeValue, "optional_type"),
    (Nothing, "optional_type"), (TypeName, "type"),
)  # fmt: skip


def is_number(value: Any) -> bool:
    """int, uint or double."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """``==``: numbers by their value whatever their type, all else only with its like."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if is_number(one) and is_number(other):
        return bool(one == other)
    if isinstance(one, Listed) and isinstance(other, list):
        return _equal_sets(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, SomeValue) and isinstance(other, SomeValue):
        return equal(one.value, other.value)
    return type(one) is type(other) and bool(one == other)


def _equal_sets(one: Listed, other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    return all(any(equal(item, candidate) for candidate in other) for item in one)

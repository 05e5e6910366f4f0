"""Operators and conversions at run time. Each takes values and answers a value, or raises ``CelError``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from mews.kube.cel.libraries import Address, AddressBlock
from mews.kube.cel.overload_errors import GO_TYPES, NO_OVERLOAD
from mews.kube.cel.values import (
    NOTHING,
    CelError,
    Defaulting,
    Duration,
    Listed,
    SomeValue,
    Timestamp,
    TypeName,
    UInt,
    equal,
    is_number,
    type_of,
)

Function = Callable[..., Any]

_LOW, _HIGH, _UHIGH = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_NANO = 10**9
_SHORTEST = 6
"""From this power of ten on Go writes an exponent, if it writes as few digits as it can."""
FIRST_S, LAST_S = -62_135_596_800, 253_402_300_799
"""The first second of the year 1, and the last of the year 9999."""


def _is(value: Any, *kinds: str) -> bool:
    return type_of(value) in kinds


def _int(value: int, what: str = "integer") -> int:
    if not _LOW <= value <= _HIGH:
        raise CelError(f"{what} overflow")
    return value


def _uint(value: int) -> UInt:
    if not 0 <= value <= _UHIGH:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def _moment(nanos: int) -> Timestamp:
    """Return a time within the years 1 to 9999."""
    if not FIRST_S <= nanos // _NANO <= LAST_S:
        raise CelError("timestamp overflow")
    return Timestamp(nanos)


def _arithmetic(one: Any, other: Any, do: Callable[[Any, Any], Any]) -> Any:
    kind = type_of(one)
    if kind != type_of(other) or kind not in ("int", "uint", "double"):
        raise CelError(NO_OVERLOAD)
    if kind == "double":
        return float(do(one, other))
    return _int(do(one, other)) if kind == "int" else _uint(do(int(one), int(other)))


def add(one: Any, other: Any) -> Any:
    """``+``."""
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, bytes) and isinstance(other, bytes):
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        return _joined(one, other)
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return _moment(one.nanos + other.nanos)
    if isinstance(one, Duration) and isinstance(other, Timestamp):
        return _moment(one.nanos + other.nanos)
    if isinstance(one, Duration) and isinstance(other, Duration):
        return Duration(_int(one.nanos + other.nanos))
    return _arithmetic(one, other, lambda a, b: a + b)


def _joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Sets are united; in maps by key the later replaces in place."""
    if not isinstance(one, Listed):
        return [*one, *other]
    found = list(one)
    for item in other:
        at = next((i for i, known in enumerate(found) if equal(one.key_of(known), one.key_of(item))), None)
        if at is None:
            found.append(item)
        else:
            found[at] = item
    return Listed(found, one.keys)


def subtract(one: Any, other: Any) -> Any:
    """``-``."""
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return _moment(one.nanos - other.nanos)
    if isinstance(one, (Timestamp, Duration)) and type(one) is type(other):
        return Duration(_int(one.nanos - other.nanos))
    return _arithmetic(one, other, lambda a, b: a - b)


def multiply(one: Any, other: Any) -> Any:
    """``*``."""
    return _arithmetic(one, other, lambda a, b: a * b)


def divide(one: Any, other: Any) -> Any:
    """``/``, towards zero for integers."""

    def do(a: Any, b: Any) -> Any:
        if isinstance(a, float):
            if b == 0:
                return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
            return a / b
        if b == 0:
            raise CelError("division by zero")
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    return _arithmetic(one, other, do)


def modulo(one: Any, other: Any) -> Any:
    """``%``, with the sign of the first."""
    if isinstance(one, float):
        raise CelError(NO_OVERLOAD)

    def do(a: int, b: int) -> int:
        if b == 0:
            raise CelError("modulus by zero")
        if a == _LOW and b == -1:
            raise CelError("integer overflow")
        return abs(a) % abs(b) * (-1 if a < 0 else 1)

    return _arithmetic(one, other, do)


def negate(value: Any) -> Any:
    """Unary ``-``."""
    if _is(value, "int"):
        return _int(-value)
    if _is(value, "double"):
        return -value
    raise CelError(NO_OVERLOAD)


def compare(one: Any, other: Any) -> int:
    """-1, 0 or 1 of two values that have an order."""
    both_numbers = is_number(one) and is_number(other)
    alike = type_of(one) == type_of(other)
    if not both_numbers and not (
        alike and _is(one, "bool", "string", "bytes", "google.protobuf.Timestamp", "google.protobuf.Duration")
    ):
        raise CelError(NO_OVERLOAD)
    if one != one or other != other:
        raise CelError("NaN values cannot be ordered")
    if isinstance(one, str):
        one, other = one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    return int(one > other) - int(one < other)


def index(target: Any, key: Any, *, optional: bool = False) -> Any:
    """``target[key]``; of an optional an optional."""
    if isinstance(target, SomeValue):
        return index(target.value, key, optional=True)
    if target is NOTHING:
        return NOTHING
    found = _found(target, key, optional=optional)
    return (SomeValue(found[0]) if found else NOTHING) if optional else found[0]


def _found(target: Any, key: Any, *, optional: bool) -> list[Any]:
    if isinstance(target, dict):
        found = _of_map(target, key)
        why = f"no such key: {shown(key)}"
    elif isinstance(target, list):
        found = _of_list(target, key)
        why = f"index out of bounds: {int(key)}"
    else:
        found, why = [], f"no such key: {shown(key)}"
    if not found and not optional:
        raise CelError(why)
    return found


def _of_map(target: dict[Any, Any], key: Any) -> list[Any]:
    if kind := _no_qualifier(key):
        raise CelError(f"invalid qualifier type: {kind}")
    name = int(key) if isinstance(key, float) and key.is_integer() else key
    return [target[name]] if name in target or isinstance(target, Defaulting) else []


def _of_list(target: list[Any], key: Any) -> list[Any]:
    if isinstance(key, bool) or not is_number(key):
        raise CelError(f"unsupported index type '{type_of(key)}' in list")
    if isinstance(key, float) and not key.is_integer():
        raise CelError(f"unsupported index value {shown(key)} in list")
    return [target[int(key)]] if 0 <= key < len(target) else []


def _no_qualifier(key: Any) -> str:
    """Return the Go type of a value that is no key of anything, "" for one that may be."""
    if isinstance(key, (bool, int, float, str, TypeName)):
        return ""
    return GO_TYPES.get(type_of(key), "")


def shown(value: Any) -> str:
    """Return a value in a message."""
    if isinstance(value, float):
        return double_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def contained(value: Any, within: Any) -> bool:
    """``in``."""
    if isinstance(within, dict):
        return isinstance(value, (str, int, float, bool)) and value in within
    if isinstance(within, list):
        return any(equal(value, item) for item in within)
    raise CelError(NO_OVERLOAD)


def size(value: Any) -> int:
    """Return that of a text in characters, of bytes, lists and maps in items."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise CelError(NO_OVERLOAD)


def to_int(value: Any) -> int:
    """``int(x)``."""
    if isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    if isinstance(value, int):
        return _int(int(value))
    if isinstance(value, float):
        if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
            raise CelError("integer overflow")
        return int(value)
    if isinstance(value, str):
        found = _parsed(value, int, "int")
        if not _LOW <= found <= _HIGH:
            raise CelError("type conversion error from 'string' to 'int'")
        return int(found)
    if isinstance(value, Timestamp):
        return value.nanos // _NANO
    if isinstance(value, Duration):
        return value.nanos
    raise CelError(NO_OVERLOAD)


def _parsed(text: str, kind: Callable[[str], Any], wanted: str) -> Any:
    try:
        if text != text.strip() or "_" in text:
            raise ValueError
        return kind(text)
    except ValueError:
        raise CelError(f"type conversion error from 'string' to '{wanted}'") from None


def to_uint(value: Any) -> UInt:
    """``uint(x)``."""
    if isinstance(value, str):
        found = _parsed(value, int, "uint")
        if not value.isdigit() or found > _UHIGH:
            raise CelError("type conversion error from 'string' to 'uint'")
        return UInt(found)
    if isinstance(value, float):
        if math.isnan(value) or not 0 <= value < 2.0**64:
            raise CelError("unsigned integer overflow")
        return UInt(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return _uint(int(value))
    raise CelError(NO_OVERLOAD)


def to_double(value: Any) -> float:
    """``double(x)``."""
    if isinstance(value, str):
        return float(_parsed(value, float, "double"))
    if is_number(value):
        return float(value)
    raise CelError(NO_OVERLOAD)


def to_string(value: Any) -> str:
    """``string(x)``."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, (bool, int, Timestamp, Duration, Address, AddressBlock)):
        return shown(value)
    raise CelError(NO_OVERLOAD)


def double_text(value: float) -> str:
    """Return the shortest text of a double, as Go's ``%g``."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + exponent - 1 if value else 0
    if -4 <= power < _SHORTEST:
        return repr(value).removesuffix(".0")
    head = text[0] + (f".{text[1:]}" if len(text) > 1 else "")
    return f"{'-' if sign else ''}{head}e{'-' if power < 0 else '+'}{abs(power):02d}"


def to_bytes(value: Any) -> bytes:
    """``bytes(x)``."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise CelError(NO_OVERLOAD)


def to_bool(value: Any) -> bool:
    """``bool(x)``."""
    if isinstance(value, bool):
        return value
    words = {"1": True, "t": True, "T": True, "true": True, "TRUE": True, "True": True}
    words |= {"0": False, "f": False, "F": False, "false": False, "FALSE": False, "False": False}
    if isinstance(value, str):
        if value in words:
            return words[value]
        raise CelError("type conversion error from 'string' to 'bool'")
    raise CelError(NO_OVERLOAD)


_ReadT = TypeVar("_ReadT", Timestamp, Duration)


def _read(text: str, kind: type[_ReadT]) -> _ReadT:
    try:
        return kind.parse(text)
    except CelError:
        name = f"google.protobuf.{kind.__name__}"
        raise CelError(f"type conversion error from 'string' to '{name}'") from None


def to_duration(value: Any) -> Duration:
    """``duration(x)``."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return _read(value, Duration)
    if _is(value, "int"):  # cel-go declares the overload, and its integers do not convert.
        raise CelError("type conversion error from 'int' to 'google.protobuf.Duration'")
    raise CelError(NO_OVERLOAD)


def to_timestamp(value: Any) -> Timestamp:
    """``timestamp(x)``."""
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        return _read(value, Timestamp)
    if _is(value, "int"):
        return _moment(value * _NANO)
    raise CelError(NO_OVERLOAD)


def _ordered(test: Callable[[int], bool]) -> Function:
    return lambda one, other: test(compare(one, other))


def _not(value: Any) -> bool:
    if isinstance(value, bool):
        return not value
    raise CelError(NO_OVERLOAD)


OPERATORS: Mapping[str, Function] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": _not,
    "_==_": equal,
    "_!=_": lambda one, other: not equal(one, other),
    "_<_": _ordered(lambda order: order < 0),
    "_<=_": _ordered(lambda order: order <= 0),
    "_>_": _ordered(lambda order: order > 0),
    "_>=_": _ordered(lambda order: order >= 0),
    "_[_]": index,
    "_[?_]": lambda target, key: index(target, key, optional=True),
    "@in": contained,
    "size": size,
    "type": lambda value: TypeName(type_of(value)),
    "dyn": lambda value: value,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bytes": to_bytes,
    "bool": to_bool,
    "duration": to_duration,
    "timestamp": to_timestamp,
}

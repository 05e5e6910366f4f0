"""Operators, functions and methods: CEL's own (cel-spec), cel-go's strings, lists, sets and optionals, and Kubernetes'
libraries (k8s.io/apiserver pkg/cel/library)."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from mews.kube.api.quantities import parse
from mews.kube.cel import values
from mews.kube.cel.values import (
    CelError,
    Duration,
    Opaque,
    Optional,
    QuantityValue,
    Timestamp,
    TypeValue,
    Uint,
    equal,
    is_number,
)

Function = Callable[..., Any]
_NO_OVERLOAD = "no such overload"


def mismatch() -> CelError:
    """The error of an operation that its values' types do not have."""
    return CelError(_NO_OVERLOAD)


def _arithmetic(name: str, plain: Callable[[Any, Any], Any]) -> Function:
    def operate(left: Any, right: Any) -> Any:
        if is_number(left) and type(left) is type(right):
            return values.checked(type(left)(plain(left, right)))
        raise mismatch()

    operate.__name__ = name
    return operate


def add(left: Any, right: Any) -> Any:
    """``left + right``."""
    if is_number(left):
        return _sum(left, right)
    if type(left) is type(right) and isinstance(left, (str, bytes, list)):
        return left + right
    match left, right:
        case Timestamp(), Duration():
            return values.moved(left, right.ns)
        case Duration(), Timestamp():
            return values.moved(right, left.ns)
        case Duration(), Duration():
            return Duration(left.ns + right.ns)
    raise mismatch()


_sum = _arithmetic("add", lambda left, right: left + right)
_difference = _arithmetic("subtract", lambda left, right: left - right)


def _subtract(left: Any, right: Any) -> Any:
    match left, right:
        case Timestamp(), Timestamp():
            return Duration(int((left.at - right.at).total_seconds() * 10**9))
        case Timestamp(), Duration():
            return values.moved(left, -right.ns)
        case Duration(), Duration():
            return Duration(left.ns - right.ns)
    return _difference(left, right)


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, float) and isinstance(right, float):
        if right == 0:
            return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
        return left / right
    if not is_number(left) or type(left) is not type(right) or isinstance(left, float):
        raise mismatch()
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    return values.checked(type(left)(quotient if (left < 0) == (right < 0) else -quotient))


def _modulo(left: Any, right: Any) -> Any:
    if not is_number(left) or type(left) is not type(right) or isinstance(left, float):
        raise mismatch()
    if right == 0:
        raise CelError("modulus by zero")
    return type(left)(int(math.copysign(1, left)) * (abs(int(left)) % abs(int(right))))


def _negate(value: Any) -> Any:
    if isinstance(value, Uint) or not is_number(value):
        raise mismatch()
    return values.checked(-value)


def _not(value: Any) -> Any:
    if not isinstance(value, bool):
        raise mismatch()
    return not value


def _compared(holds: Callable[[Any, Any], bool]) -> Function:
    def compare(left: Any, right: Any) -> bool:
        if is_number(left) and is_number(right):
            return holds(left, right)
        if type(left) is type(right) and isinstance(left, (str, bytes, bool, Timestamp, Duration)):
            return holds(left, right)
        raise mismatch()

    return compare


def contained(item: Any, container: Any) -> bool:
    """``item in container``."""
    if isinstance(container, list):
        return any(equal(item, each) for each in container)
    if isinstance(container, dict):
        return item in container
    raise mismatch()


OPERATORS: Mapping[str, Function] = {
    "_==_": equal,
    "_!=_": lambda left, right: not equal(left, right),
    "_<_": _compared(lambda left, right: left < right),
    "_<=_": _compared(lambda left, right: left <= right),
    "_>_": _compared(lambda left, right: left > right),
    "_>=_": _compared(lambda left, right: left >= right),
    "@in": contained,
    "_+_": add,
    "_-_": _subtract,
    "_*_": _arithmetic("multiply", lambda left, right: left * right),
    "_/_": _divide,
    "_%_": _modulo,
    "-_": _negate,
    "!_": _not,
}


# Conversions


def size(value: Any) -> int:
    """``size(value)``."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise mismatch()


def _int(value: Any) -> int:
    match value:
        case bool():
            raise mismatch()
        case int():
            return int(values.checked(int(value)))
        case float():
            if not math.isfinite(value):
                raise CelError("integer overflow")
            return int(values.checked(int(value)))
        case str():
            if not re.fullmatch(r"[+-]?\d+", value):
                raise CelError("type conversion error from 'string' to 'int'")
            return int(values.checked(int(value)))
        case Timestamp():
            return int(value.at.timestamp())
        case Duration():
            return value.ns
    raise mismatch()


def _uint(value: Any) -> Uint:
    if isinstance(value, str):
        if not value.isdecimal():
            raise CelError("type conversion error from 'string' to 'uint'")
        return Uint(values.checked(Uint(value)))
    if is_number(value):
        return Uint(values.checked(Uint(int(value)))) if value >= 0 else Uint(_raise("unsigned integer overflow"))
    raise mismatch()


def _raise(text: str) -> int:
    raise CelError(text)


def _double(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise CelError("type conversion error from 'string' to 'double'") from None
    if is_number(value):
        return float(value)
    raise mismatch()


def as_string(value: Any) -> str:
    """``string(value)``."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case int():
            return str(int(value))
        case float():
            return _float_text(value)
        case Timestamp():
            return values.show_timestamp(value)
        case Duration():
            return values.show_duration(value)
        case Opaque() if value.kind in ("net.IP", "net.CIDR"):
            return str(value.content)
    raise mismatch()


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    if isinstance(value, str):
        raise CelError("type conversion error from 'string' to 'bool'")
    raise mismatch()


def _timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        return values.parse_timestamp(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Timestamp(datetime.fromtimestamp(value, ZoneInfo("UTC")))
    raise mismatch()


def _duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return values.parse_duration(value)
    raise mismatch()


def matches(text: Any, pattern: Any) -> bool:
    """Whether a pattern is found in a text."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise mismatch()
    return regex_of(pattern).search(text) is not None


def regex_of(pattern: str) -> re.Pattern[str]:
    """The compiled pattern, ``CelError`` for what is none."""
    try:
        return re.compile(pattern.replace(r"\z", r"\Z"))
    except re.error as error:
        raise CelError(f"error parsing regexp: {error}") from None


# Quantities, addresses, URLs


def _quantity(text: Any) -> QuantityValue:
    try:
        return QuantityValue(parse(text_of(text)), text)
    except ValueError:
        pattern = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise CelError(f"quantities must match the regular expression {pattern}") from None


def text_of(value: Any) -> str:
    """The value, which must be a string."""
    if not isinstance(value, str):
        raise mismatch()
    return value


def _succeeds(function: Function) -> Function:
    def test(text: Any) -> bool:
        try:
            function(text_of(text))
        except CelError as error:
            if str(error) == _NO_OVERLOAD:
                raise
            return False
        return True

    return test


def ip_of(text: Any) -> Opaque:
    """The address that a text is."""
    try:
        found = ipaddress.ip_address(text_of(text))
    except ValueError:
        raise CelError(f'IP Address "{text}" parse error during conversion from string') from None
    return Opaque("net.IP", found)


def cidr_of(text: Any) -> Opaque:
    """The network that a text is."""
    try:
        if "/" in text_of(text):
            return Opaque("net.CIDR", ipaddress.ip_interface(text))
    except ValueError:
        pass
    raise CelError(f'network address parse error during conversion from string: network address "{text}"')


def _url(text: Any) -> Opaque:
    parts = urlsplit(text_of(text))
    if not (parts.scheme and (parts.netloc or text.startswith("/"))) and not text.startswith("/"):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return Opaque("kubernetes.URL", parts)


_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")


def _semver(text: Any) -> Opaque:
    match = _SEMVER.fullmatch(text_of(text))
    if match is None:
        raise CelError("semver: invalid version")
    major, minor, patch, pre, _ = match.groups()
    return Opaque("kubernetes.Semver", (int(major), int(minor), int(patch), _precedence(pre)))


def _precedence(pre: str | None) -> tuple[Any, ...]:
    if not pre:
        return (1,)
    parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre.split("."))
    return (0, *parts)


# Optionals, sets


def _none_of_zero(value: Any) -> Optional:
    is_zero = value is None or (not isinstance(value, (Opaque, Optional, Timestamp)) and not value)
    return Optional() if is_zero else Optional(value, True)


def _equivalent(left: list[Any], right: list[Any]) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _contains_all(left: list[Any], right: list[Any]) -> bool:
    return all(contained(each, left) for each in right)


FUNCTIONS: Mapping[str, Function] = {
    "size": size,
    "int": _int,
    "uint": _uint,
    "double": _double,
    "string": as_string,
    "bool": _bool,
    "bytes": lambda value: value.encode() if isinstance(value, str) else bytes(value),
    "timestamp": _timestamp,
    "duration": _duration,
    "dyn": lambda value: value,
    "type": lambda value: TypeValue(values.type_name(value)),
    "matches": matches,
    "quantity": _quantity,
    "isQuantity": _succeeds(_quantity),
    "ip": ip_of,
    "isIP": _succeeds(ip_of),
    "ip.isCanonical": lambda text: str(ip_of(text).content) == text,
    "cidr": cidr_of,
    "isCIDR": _succeeds(cidr_of),
    "url": _url,
    "isURL": _succeeds(_url),
    "semver": _semver,
    "isSemver": _succeeds(_semver),
    "optional.of": lambda value: Optional(value, True),
    "optional.none": lambda: Optional(),
    "optional.ofNonZeroValue": _none_of_zero,
    "sets.contains": _contains_all,
    "sets.equivalent": _equivalent,
    "sets.intersects": lambda left, right: any(contained(each, left) for each in right),
    "math.greatest": lambda *found: max(found[0] if isinstance(found[0], list) else found),
    "math.least": lambda *found: min(found[0] if isinstance(found[0], list) else found),
    "strings.quote": lambda text: '"' + text_of(text).replace("\\", "\\\\").replace('"', '\\"') + '"',
}

"""Operators, functions and methods: CEL's own (cel-spec), cel-go's strings, lists, sets and optionals, and Kubernetes'
libraries (k8s.io/apiserver pkg/cel/library)."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit
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


def _mismatch() -> CelError:
    return CelError(_NO_OVERLOAD)


def _arithmetic(name: str, plain: Callable[[Any, Any], Any]) -> Function:
    def operate(left: Any, right: Any) -> Any:
        if is_number(left) and type(left) is type(right):
            return values.checked(type(left)(plain(left, right)))
        raise _mismatch()

    operate.__name__ = name
    return operate


def _add(left: Any, right: Any) -> Any:
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
    raise _mismatch()


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
        raise _mismatch()
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    return values.checked(type(left)(quotient if (left < 0) == (right < 0) else -quotient))


def _modulo(left: Any, right: Any) -> Any:
    if not is_number(left) or type(left) is not type(right) or isinstance(left, float):
        raise _mismatch()
    if right == 0:
        raise CelError("modulus by zero")
    return type(left)(int(math.copysign(1, left)) * (abs(int(left)) % abs(int(right))))


def _negate(value: Any) -> Any:
    if isinstance(value, Uint) or not is_number(value):
        raise _mismatch()
    return values.checked(-value)


def _not(value: Any) -> Any:
    if not isinstance(value, bool):
        raise _mismatch()
    return not value


def _compared(holds: Callable[[Any, Any], bool]) -> Function:
    def compare(left: Any, right: Any) -> bool:
        if is_number(left) and is_number(right):
            return holds(left, right)
        if type(left) is type(right) and isinstance(left, (str, bytes, bool, Timestamp, Duration)):
            return holds(left, right)
        raise _mismatch()

    return compare


def _contained(item: Any, container: Any) -> bool:
    if isinstance(container, list):
        return any(equal(item, each) for each in container)
    if isinstance(container, dict):
        return item in container
    raise _mismatch()


OPERATORS: Mapping[str, Function] = {
    "_==_": equal,
    "_!=_": lambda left, right: not equal(left, right),
    "_<_": _compared(lambda left, right: left < right),
    "_<=_": _compared(lambda left, right: left <= right),
    "_>_": _compared(lambda left, right: left > right),
    "_>=_": _compared(lambda left, right: left >= right),
    "@in": _contained,
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _arithmetic("multiply", lambda left, right: left * right),
    "_/_": _divide,
    "_%_": _modulo,
    "-_": _negate,
    "!_": _not,
}


# Conversions


def _size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise _mismatch()


def _int(value: Any) -> int:
    match value:
        case bool():
            raise _mismatch()
        case int():
            return int(values.checked(int(value)))
        case float():
            if not math.isfinite(value):
                raise CelError("integer overflow")
            return int(values.checked(int(value)))
        case str():
            if not re.fullmatch(r"[+-]?\d+", value):
                raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')
            return int(values.checked(int(value)))
        case Timestamp():
            return int(value.at.timestamp())
        case Duration():
            return value.ns
    raise _mismatch()


def _uint(value: Any) -> Uint:
    if isinstance(value, str):
        if not value.isdecimal():
            raise CelError(f'strconv.ParseUint: parsing "{value}": invalid syntax')
        return Uint(values.checked(Uint(value)))
    if is_number(value):
        return Uint(values.checked(Uint(int(value)))) if value >= 0 else Uint(_raise("unsigned integer overflow"))
    raise _mismatch()


def _raise(text: str) -> int:
    raise CelError(text)


def _double(value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None
    if is_number(value):
        return float(value)
    raise _mismatch()


def _string(value: Any) -> str:
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
    raise _mismatch()


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
        raise CelError(f'strconv.ParseBool: parsing "{value}": invalid syntax')
    raise _mismatch()


def _timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        return values.parse_timestamp(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Timestamp(datetime.fromtimestamp(value, ZoneInfo("UTC")))
    raise _mismatch()


def _duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return values.parse_duration(value)
    raise _mismatch()


def _matches(text: Any, pattern: Any) -> bool:
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise _mismatch()
    return _regex(pattern).search(text) is not None


def _regex(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern.replace(r"\z", r"\Z"))
    except re.error as error:
        raise CelError(f"error parsing regexp: {error}") from None


# Quantities, addresses, URLs


def _quantity(text: Any) -> QuantityValue:
    try:
        return QuantityValue(parse(_text(text)), text)
    except ValueError:
        pattern = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise CelError(f"quantities must match the regular expression {pattern}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _mismatch()
    return value


def _succeeds(function: Function) -> Function:
    def test(text: Any) -> bool:
        try:
            function(_text(text))
        except CelError as error:
            if str(error) == _NO_OVERLOAD:
                raise
            return False
        return True

    return test


def _ip(text: Any) -> Opaque:
    try:
        found = ipaddress.ip_address(_text(text))
    except ValueError:
        raise CelError(f'IP Address "{text}" parse error during conversion from string') from None
    return Opaque("net.IP", found)


def _cidr(text: Any) -> Opaque:
    try:
        found = ipaddress.ip_interface(_text(text)) if "/" in _text(text) else _refuse_cidr(text)
    except ValueError:
        return _refuse_cidr(text)
    return Opaque("net.CIDR", found)


def _refuse_cidr(text: Any) -> Any:
    raise CelError(f'network address parse error during conversion from string: network address "{text}"')


def _url(text: Any) -> Opaque:
    parts = urlsplit(_text(text))
    if not (parts.scheme and (parts.netloc or text.startswith("/"))) and not text.startswith("/"):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return Opaque("kubernetes.URL", parts)


_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")


def _semver(text: Any) -> Opaque:
    match = _SEMVER.fullmatch(_text(text))
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
    return all(_contained(each, left) for each in right)


FUNCTIONS: Mapping[str, Function] = {
    "size": _size,
    "int": _int,
    "uint": _uint,
    "double": _double,
    "string": _string,
    "bool": _bool,
    "bytes": lambda value: value.encode() if isinstance(value, str) else bytes(value),
    "timestamp": _timestamp,
    "duration": _duration,
    "dyn": lambda value: value,
    "type": lambda value: TypeValue(values.type_name(value)),
    "matches": _matches,
    "quantity": _quantity,
    "isQuantity": _succeeds(_quantity),
    "ip": _ip,
    "isIP": _succeeds(_ip),
    "ip.isCanonical": lambda text: str(_ip(text).content) == text,
    "cidr": _cidr,
    "isCIDR": _succeeds(_cidr),
    "url": _url,
    "isURL": _succeeds(_url),
    "semver": _semver,
    "isSemver": _succeeds(_semver),
    "optional.of": lambda value: Optional(value, True),
    "optional.none": lambda: Optional(),
    "optional.ofNonZeroValue": _none_of_zero,
    "sets.contains": _contains_all,
    "sets.equivalent": _equivalent,
    "sets.intersects": lambda left, right: any(_contained(each, left) for each in right),
    "math.greatest": lambda *found: max(found[0] if isinstance(found[0], list) else found),
    "math.least": lambda *found: min(found[0] if isinstance(found[0], list) else found),
    "strings.quote": lambda text: '"' + _text(text).replace("\\", "\\\\").replace('"', '\\"') + '"',
}


# Methods of strings


def _index_of(value: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((index for index, each in enumerate(value) if equal(each, wanted)), -1)
    return _text(value).find(_text(wanted), start)


def _last_index_of(value: Any, wanted: Any) -> int:
    if isinstance(value, list):
        return max((index for index, each in enumerate(value) if equal(each, wanted)), default=-1)
    return _text(value).rfind(_text(wanted))


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(_text(text)) if end is None else end
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        return list(text) if limit < 0 else [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, -1 if limit < 0 else limit - 1)


def _format(template: str, given: list[Any]) -> str:
    found, at, used = [], 0, 0
    for match in re.finditer(r"%(?:\.(\d+))?([sdfexXbo%])", template):
        found.append(template[at : match.start()])
        at = match.end()
        if match[2] == "%":
            found.append("%")
            continue
        if used >= len(given):
            raise CelError(f"index {used} out of range")
        found.append(_formatted(given[used], match[2], int(match[1]) if match[1] else None))
        used += 1
    return "".join([*found, template[at:]])


def _formatted(value: Any, verb: str, precision: int | None) -> str:
    match verb:
        case "s":
            return _shown(value)
        case "d" if isinstance(value, int) and not isinstance(value, bool):
            return str(int(value))
        case "f" if is_number(value):
            return f"{value:.{6 if precision is None else precision}f}"
        case "e" if is_number(value):
            return f"{value:.{6 if precision is None else precision}e}"
        case "x" | "X" | "b" | "o" if isinstance(value, int):
            return format(int(value), verb)
        case "x" | "X" if isinstance(value, (str, bytes)):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if verb == "X" else text
    raise CelError(f"error during formatting: no matching verb for {values.type_name(value)}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(_shown(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, TypeValue):
        return value.name
    return _string(value)


def _join(found: list[str], separator: str = "") -> str:
    return separator.join(_text(each) for each in found)


def _find(text: str, pattern: str) -> str:
    match = _regex(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group() for match in _regex(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _ascii(change: Callable[[str], str]) -> Function:
    return lambda text: "".join(change(each) if each.isascii() else each for each in _text(text))


# Methods of lists


def _is_sorted(found: list[Any]) -> bool:
    return all(not OPERATORS["_>_"](a, b) for a, b in pairwise(found))


def _extreme(choose: Callable[..., Any], name: str) -> Function:
    def extreme(found: list[Any]) -> Any:
        if not found:
            raise CelError(f"{name} called on empty list")
        return choose(found)

    return extreme


def _total(found: list[Any]) -> Any:
    total: Any = 0
    for index, each in enumerate(found):
        total = each if index == 0 else _add(total, each)
    return total


def _slice(found: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(found):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(found)}")
    return found[start:end]


def _flatten(found: list[Any], depth: int = 1) -> list[Any]:
    flat: list[Any] = []
    for each in found:
        flat += _flatten(each, depth - 1) if isinstance(each, list) and depth > 0 else [each]
    return flat


def _distinct(found: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for each in found:
        if not _contained(each, kept):
            kept.append(each)
    return kept


# Methods of optionals, quantities, times, addresses


def _value(held: Any) -> Any:
    if not isinstance(held, Optional):
        raise _mismatch()
    if not held.present:
        raise CelError("optional.none() dereference")
    return held.value


def _or_value(held: Any, other: Any) -> Any:
    if not isinstance(held, Optional):
        raise _mismatch()
    return held.value if held.present else other


def _compare_to(left: Any, right: Any) -> int:
    if isinstance(left, QuantityValue) and isinstance(right, QuantityValue):
        return (left.amount > right.amount) - (left.amount < right.amount)
    if isinstance(left, Opaque) and isinstance(right, Opaque) and left.kind == right.kind == "kubernetes.Semver":
        return int(left.content > right.content) - int(left.content < right.content)
    raise _mismatch()


def _later(wanted: int) -> Function:
    return lambda left, right: _compare_to(left, right) == wanted


def _amount(value: Any) -> Decimal:
    if isinstance(value, QuantityValue):
        return value.amount
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise _mismatch()


def _quantity_of(amount: Decimal) -> QuantityValue:
    return QuantityValue(amount, format(amount, "f"))


def _as_integer(value: QuantityValue) -> int:
    if value.amount != value.amount.to_integral_value():
        raise CelError("cannot convert value to integer")
    return int(value.amount)


def _part(of: Callable[[datetime], int], in_duration: int | None = None) -> Function:
    def part(value: Any, zone: str = "UTC") -> int:
        if isinstance(value, Duration) and in_duration is not None:
            return value.ns // in_duration if in_duration > 10**6 else value.ns // in_duration % 1000
        if not isinstance(value, Timestamp):
            raise _mismatch()
        return of(value.at.astimezone(ZoneInfo(zone)))

    return part


def _contains_ip(network: Opaque, wanted: Any) -> bool:
    address = wanted.content if isinstance(wanted, Opaque) else _ip(wanted).content
    return address in network.content.network


def _contains_cidr(network: Opaque, wanted: Any) -> bool:
    inner = (wanted.content if isinstance(wanted, Opaque) else _cidr(wanted).content).network
    outer = network.content.network
    return bool(inner.version == outer.version and inner.subnet_of(outer))


def _of_url(get: Callable[[Any], Any]) -> Function:
    return lambda url: get(url.content)


def _host(parts: Any) -> str:
    return str(parts.netloc.rpartition("@")[2])


METHODS: Mapping[str, Function] = {
    "size": _size,
    "contains": lambda text, part: _text(part) in _text(text),
    "startsWith": lambda text, part: _text(text).startswith(_text(part)),
    "endsWith": lambda text, part: _text(text).endswith(_text(part)),
    "matches": _matches,
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "replace": lambda text, old, new, count=-1: _text(text).replace(old, new, count),
    "split": _split,
    "substring": _substring,
    "trim": lambda text: _text(text).strip(),
    "join": _join,
    "format": _format,
    "reverse": lambda value: value[::-1],
    "find": _find,
    "findAll": _find_all,
    "isSorted": _is_sorted,
    "sum": _total,
    "min": _extreme(min, "min"),
    "max": _extreme(max, "max"),
    "slice": _slice,
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": sorted,
    "hasValue": lambda held: held.present,
    "value": _value,
    "orValue": _or_value,
    "or": lambda held, other: held if held.present else other,
    "isGreaterThan": _later(1),
    "isLessThan": _later(-1),
    "compareTo": _compare_to,
    "isInteger": lambda value: value.amount == value.amount.to_integral_value(),
    "asInteger": _as_integer,
    "asApproximateFloat": lambda value: float(value.amount),
    "sign": lambda value: (value.amount > 0) - (value.amount < 0),
    "add": lambda left, right: _quantity_of(_amount(left) + _amount(right)),
    "sub": lambda left, right: _quantity_of(_amount(left) - _amount(right)),
    "major": lambda value: value.content[0],
    "minor": lambda value: value.content[1],
    "patch": lambda value: value.content[2],
    "getFullYear": _part(lambda at: at.year),
    "getMonth": _part(lambda at: at.month - 1),
    "getDate": _part(lambda at: at.day),
    "getDayOfMonth": _part(lambda at: at.day - 1),
    "getDayOfWeek": _part(lambda at: (at.weekday() + 1) % 7),
    "getDayOfYear": _part(lambda at: at.timetuple().tm_yday - 1),
    "getHours": _part(lambda at: at.hour, 3600 * 10**9),
    "getMinutes": _part(lambda at: at.minute, 60 * 10**9),
    "getSeconds": _part(lambda at: at.second, 10**9),
    "getMilliseconds": _part(lambda at: at.microsecond // 1000, 10**6),
    "family": lambda ip: ip.content.version,
    "isUnspecified": lambda ip: ip.content.is_unspecified,
    "isLoopback": lambda ip: ip.content.is_loopback,
    "isLinkLocalMulticast": lambda ip: ip.content.is_multicast and ip.content.is_link_local,
    "isLinkLocalUnicast": lambda ip: ip.content.is_link_local,
    "isGlobalUnicast": lambda ip: not (ip.content.is_multicast or ip.content.is_loopback or ip.content.is_unspecified),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "prefixLength": lambda cidr: cidr.content.network.prefixlen,
    "masked": lambda cidr: Opaque("net.CIDR", ipaddress.ip_interface(str(cidr.content.network))),
    "ip": lambda cidr: Opaque("net.IP", cidr.content.ip),
    "getScheme": _of_url(lambda parts: parts.scheme),
    "getHost": _of_url(_host),
    "getHostname": _of_url(lambda parts: parts.hostname or ""),
    "getPort": _of_url(lambda parts: str(parts.port or "")),
    "getEscapedPath": _of_url(lambda parts: parts.path),
    "getQuery": _of_url(lambda parts: parse_qs(parts.query, keep_blank_values=True)),
}

"""Methods of values: cel-go's strings, lists and optionals, and Kubernetes' libraries (pkg/cel/library)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo

from mews.kube.cel import values
from mews.kube.cel.functions import (
    OPERATORS,
    Function,
    add,
    as_string,
    cidr_of,
    contained,
    ip_of,
    matches,
    mismatch,
    regex_of,
    size,
    text_of,
)
from mews.kube.cel.values import (
    CelError,
    Duration,
    Opaque,
    Optional,
    QuantityValue,
    Timestamp,
    TypeValue,
    equal,
    is_number,
)

# Methods of strings


def _index_of(value: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((index for index, each in enumerate(value) if equal(each, wanted)), -1)
    return text_of(value).find(text_of(wanted), start)


def _last_index_of(value: Any, wanted: Any) -> int:
    if isinstance(value, list):
        return max((index for index, each in enumerate(value) if equal(each, wanted)), default=-1)
    return text_of(value).rfind(text_of(wanted))


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text_of(text)) if end is None else end
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
    return as_string(value)


def _join(found: list[str], separator: str = "") -> str:
    return separator.join(text_of(each) for each in found)


def _find(text: str, pattern: str) -> str:
    match = regex_of(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group() for match in regex_of(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _ascii(change: Callable[[str], str]) -> Function:
    return lambda text: "".join(change(each) if each.isascii() else each for each in text_of(text))


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
        total = each if index == 0 else add(total, each)
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
        if not contained(each, kept):
            kept.append(each)
    return kept


# Methods of optionals, quantities, times, addresses


def _value(held: Any) -> Any:
    if not isinstance(held, Optional):
        raise mismatch()
    if not held.present:
        raise CelError("optional.none() dereference")
    return held.value


def _or_value(held: Any, other: Any) -> Any:
    if not isinstance(held, Optional):
        raise mismatch()
    return held.value if held.present else other


def _compare_to(left: Any, right: Any) -> int:
    if isinstance(left, QuantityValue) and isinstance(right, QuantityValue):
        return (left.amount > right.amount) - (left.amount < right.amount)
    if isinstance(left, Opaque) and isinstance(right, Opaque) and left.kind == right.kind == "kubernetes.Semver":
        return int(left.content > right.content) - int(left.content < right.content)
    raise mismatch()


def _later(wanted: int) -> Function:
    return lambda left, right: _compare_to(left, right) == wanted


def _amount(value: Any) -> Decimal:
    if isinstance(value, QuantityValue):
        return value.amount
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise mismatch()


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
            raise mismatch()
        return of(value.at.astimezone(ZoneInfo(zone)))

    return part


def _contains_ip(network: Opaque, wanted: Any) -> bool:
    address = wanted.content if isinstance(wanted, Opaque) else ip_of(wanted).content
    return address in network.content.network


def _contains_cidr(network: Opaque, wanted: Any) -> bool:
    inner = (wanted.content if isinstance(wanted, Opaque) else cidr_of(wanted).content).network
    outer = network.content.network
    return bool(inner.version == outer.version and inner.subnet_of(outer))


def _of_url(get: Callable[[Any], Any]) -> Function:
    return lambda url: get(url.content)


def _host(parts: Any) -> str:
    return str(parts.netloc.rpartition("@")[2])


METHODS: Mapping[str, Function] = {
    "size": size,
    "contains": lambda text, part: text_of(part) in text_of(text),
    "startsWith": lambda text, part: text_of(text).startswith(text_of(part)),
    "endsWith": lambda text, part: text_of(text).endswith(text_of(part)),
    "matches": matches,
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "replace": lambda text, old, new, count=-1: text_of(text).replace(old, new, count),
    "split": _split,
    "substring": _substring,
    "trim": lambda text: text_of(text).strip(),
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

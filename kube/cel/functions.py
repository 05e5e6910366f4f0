"""The functions of CEL's and Kubernetes' libraries at run time, by name; which is meant follows from the values."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mews.kube.api.quoted_text import quoted
from mews.kube.cel.formatting import formatted
from mews.kube.cel.libraries import Address, AddressBlock, Quantity
from mews.kube.cel.named_formats import FORMAT_NAMES, NamedFormat, named_format
from mews.kube.cel.operators import OPERATORS, Function, add, compare, shown
from mews.kube.cel.overload_errors import ADDABLE, NO_OVERLOAD, ORDERED, RefusedOperandError
from mews.kube.cel.regexes import PatternError, searcher
from mews.kube.cel.semver import Semver
from mews.kube.cel.urls import Url
from mews.kube.cel.values import NOTHING, CelError, Duration, Receiver, SomeValue, Timestamp, equal, type_of

_MILLI, _NANO = 10**6, 10**9


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise CelError(NO_OVERLOAD)


def _matches(text: Any, pattern: Any) -> bool:
    try:
        return searcher(_text(pattern)).search(_text(text)) is not None
    except PatternError as error:
        raise CelError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    found = _find_all(text, pattern, 1)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    try:
        found = [match.group(0) for match in searcher(pattern).finditer(text)]
    except PatternError as error:
        raise CelError(f"Illegal regex: {error}") from None
    return found if most < 0 else found[:most]


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(within: Any, what: Any, start: int = 0) -> int:
    if isinstance(within, list):
        return next((index for index, item in enumerate(within) if equal(item, what)), -1)
    if what == "":
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return _text(within).find(_text(what), start)


def _last_index_of(within: Any, what: Any, end: int | None = None) -> int:
    if isinstance(within, list):
        return next((index for index in reversed(range(len(within))) if equal(within[index], what)), -1)
    if what == "":
        return len(within) if end is None else end
    if end is not None and end < 0:
        raise CelError(f"index out of range: {end}")
    if end is not None and end >= len(within):
        return -1
    last = len(within) if end is None else min(end + len(what), len(within))
    return _text(within).rfind(_text(what), 0, last)


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if end is not None and start > last:
        raise CelError(f"invalid substring range. start: {start}, end: {last}")
    for place in (start, last):
        if not 0 <= place <= len(text):
            raise CelError(f"index out of range: {place}")
    return text[start:last]


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most)


def _split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if by:
        return text.split(by) if most < 0 else text.split(by, most - 1)
    letters = list(text)
    return letters if most < 0 or len(letters) <= most else [*letters[: most - 1], "".join(letters[most - 1 :])]


_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
_ASCII_UPPER = {code: code - 32 for code in range(97, 123)}


def _quote(text: str) -> str:
    escapes = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    escapes |= {"\\": "\\\\", '"': '\\"'}
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'


def _ordered(one: Any, other: Any) -> int:
    """Compare two members of a list; Kubernetes overlooks that some have no order."""
    if type_of(one) in ORDERED and type_of(other) != type_of(one):
        return 0
    return 0 if one != one or other != other else compare(one, other)


def _check_order(items: Any) -> None:
    if not isinstance(items, list) or (items and type_of(items[0]) not in ORDERED):
        raise CelError(NO_OVERLOAD)


def _sorted(items: list[Any]) -> bool:
    _check_order(items)
    return all(_ordered(items[i], items[i + 1]) <= 0 for i in range(len(items) - 1))


def _sum(items: Any) -> Any:
    if not isinstance(items, list):
        raise CelError(NO_OVERLOAD)
    if not items:
        return 0
    total = items[0]
    if type_of(total) not in ADDABLE:
        raise CelError(NO_OVERLOAD)
    for item in items[1:]:
        try:
            total = add(total, item)
        except CelError as error:
            raise RefusedOperandError(str(error)) from None
    return total


def _extreme(name: str, sign: int) -> Function:
    def find(items: Any) -> Any:
        _check_order(items)
        if not items:
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if _ordered(item, best) * sign > 0:
                best = item
        return best

    return find


def _contains_all(one: list[Any], other: list[Any]) -> bool:
    return all(any(equal(item, candidate) for candidate in one) for item in other)


def _is(parse: Callable[..., Any]) -> Function:
    def test(*args: Any) -> bool:
        try:
            parse(*args)
        except CelError:
            return False
        return True

    return test


def _semver(text: str, loose: bool = False) -> Semver:
    return Semver.parse(_text(text), loose=loose)


def _order(one: Any, other: Any) -> int:
    if isinstance(one, Semver):
        return one.compare(other)
    return int(one.amount > other.amount) - int(one.amount < other.amount)


def _plus(one: Quantity, other: Any, sign: int = 1) -> Quantity:
    return Quantity(one.amount + sign * (other.amount if isinstance(other, Quantity) else other))


def _as_integer(value: Quantity) -> int:
    if not value.is_integer:
        raise CelError("cannot convert value to integer")
    return int(value.amount)


def _ip(value: Any) -> Any:
    return value.address if isinstance(value, AddressBlock) else Address.parse(_text(value))


def _canonical(text: str) -> bool:
    return str(Address.parse(text)) == text


def _parsed(kind: Any, text: Any) -> Any:
    try:
        return kind.parse(text)
    except CelError:
        raise RefusedOperandError(NO_OVERLOAD) from None


def _within(network: AddressBlock, what: Any) -> bool:
    value = (what if isinstance(what, Address) else _parsed(Address, what)).value
    return value.version == network.address.value.version and value in network.network


def _covers(network: AddressBlock, what: Any) -> bool:
    other = what if isinstance(what, AddressBlock) else AddressBlock.parse(what)
    return other.bits >= network.bits and _within(network, other.address)


def _masked(network: AddressBlock) -> AddressBlock:
    return AddressBlock(Address(network.network.network_address), network.bits)


def _global(address: Address) -> bool:
    value = address.value
    broadcast = ipaddress.ip_address("255.255.255.255")
    return not (
        value.is_unspecified or value.is_loopback or value.is_multicast or value.is_link_local or value == broadcast
    )


def _validated(format_: NamedFormat, text: str) -> Any:
    found = format_.errors(text)
    return SomeValue(found) if found else NOTHING


def _named(name: str) -> Any:
    found = named_format(_text(name))
    return SomeValue(found) if found is not None else NOTHING


def _optional(value: Any) -> Any:
    if isinstance(value, SomeValue) or value is NOTHING:
        return value
    raise CelError(NO_OVERLOAD)


def _value(optional: Any) -> Any:
    if isinstance(_optional(optional), SomeValue):
        return optional.value
    raise CelError("optional.none() dereference")


def _at_end(items: Any, index: int) -> Any:
    if not isinstance(items, list):
        raise CelError(NO_OVERLOAD)
    return SomeValue(items[index]) if items else NOTHING


def _atoi(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise CelError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    return int(text)


def _zone(name: str) -> tzinfo:
    if ":" in name:
        hours, _, minutes = name.partition(":")
        sign = -1 if name.startswith("-") else 1
        return timezone(timedelta(hours=_atoi(hours), minutes=sign * _atoi(minutes)))
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        raise CelError(f"unknown time zone {name}") from None


def _part(of_time: Callable[[Any], int], nanos: int = 0) -> Function:
    """Return a part of a time, or of a duration the number of whole ``nanos``."""

    def find(value: Any, zone: str = "UTC") -> int:
        if isinstance(value, Duration) and nanos:
            whole = abs(value.nanos) // nanos
            return whole if value.nanos >= 0 else -whole
        if isinstance(value, Timestamp):
            return of_time(value.moment().astimezone(_zone(zone)))
        raise CelError(NO_OVERLOAD)

    return find


def _inserted(map_: dict[str, Any], *more: Any) -> dict[str, Any]:
    fresh = more[0] if len(more) == 1 else {more[0]: more[1]}
    for key in fresh:
        if key in map_:
            raise CelError(f"insert failed: key {shown(key)} already exists")
    return {**map_, **fresh}


def _asked(name: str) -> Function:
    """Return a method of a value that has its own."""

    def ask(target: Any, *args: Any) -> Any:
        if isinstance(target, Receiver) and name in target.methods and all(isinstance(arg, str) for arg in args):
            return target.methods[name](*args)
        raise CelError(NO_OVERLOAD)

    return ask


_AUTHORIZATION = (
    *("path", "group", "serviceAccount", "resource", "subresource", "namespace", "name", "fieldSelector"),
    *("labelSelector", "check", "errored", "error", "allowed", "reason"),
)
_EMPTY: tuple[Any, ...] = (None, "", b"", 0, False, Duration(0))

FUNCTIONS: Mapping[str, Function] = {
    **OPERATORS,
    "matches": _matches,
    "contains": lambda text, part: _text(part) in _text(text),
    "startsWith": lambda text, part: _text(text).startswith(_text(part)),
    "endsWith": lambda text, part: _text(text).endswith(_text(part)),
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": lambda text: _text(text).translate(_ASCII_LOWER),
    "upperAscii": lambda text: _text(text).translate(_ASCII_UPPER),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: _text(text).strip(),
    "format": formatted,
    "strings.quote": _quote,
    "join": lambda items, by="": by.join(_text(item) for item in items),
    "sets.contains": _contains_all,
    "sets.equivalent": lambda one, other: _contains_all(one, other) and _contains_all(other, one),
    "sets.intersects": lambda one, other: any(equal(item, candidate) for item in one for candidate in other),
    "find": _find,
    "findAll": _find_all,
    "isSorted": _sorted,
    "sum": _sum,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "url": Url.parse,
    "isURL": _is(Url.parse),
    "getScheme": lambda url: url.scheme,
    "getHost": lambda url: url.host,
    "getHostname": lambda url: url.hostname,
    "getPort": lambda url: url.port,
    "getEscapedPath": lambda url: url.path,
    "getQuery": lambda url: url.query,
    "quantity": Quantity.parse,
    "isQuantity": _is(Quantity.parse),
    "sign": lambda value: (value.amount > 0) - (value.amount < 0),
    "isGreaterThan": lambda one, other: _order(one, other) > 0,
    "isLessThan": lambda one, other: _order(one, other) < 0,
    "compareTo": _order,
    "asApproximateFloat": lambda value: float(value.amount),
    "asInteger": _as_integer,
    "isInteger": lambda value: value.is_integer,
    "add": _plus,
    "sub": lambda one, other: _plus(one, other, -1),
    "ip": _ip,
    "isIP": _is(Address.parse),
    "ip.isCanonical": _canonical,
    "family": lambda address: address.value.version,
    "isUnspecified": lambda address: address.value.is_unspecified,
    "isLoopback": lambda address: address.value.is_loopback,
    "isLinkLocalMulticast": lambda address: (
        address.value.is_multicast and str(address).startswith(("224.0.0.", "ff02", "ff12", "ff32"))
    ),
    "isLinkLocalUnicast": lambda address: address.value.is_link_local,
    "isGlobalUnicast": _global,
    "cidr": AddressBlock.parse,
    "isCIDR": _is(AddressBlock.parse),
    "containsIP": _within,
    "containsCIDR": _covers,
    "prefixLength": lambda network: network.bits,
    "masked": _masked,
    "format.named": _named,
    "validate": _validated,
    "semver": _semver,
    "isSemver": _is(_semver),
    "major": lambda version: version.numbers[0],
    "minor": lambda version: version.numbers[1],
    "patch": lambda version: version.numbers[2],
    "optional.of": SomeValue,
    "optional.ofNonZeroValue": lambda value: NOTHING if value in _EMPTY or value in ([], {}) else SomeValue(value),
    "optional.none": lambda: NOTHING,
    "hasValue": lambda optional: isinstance(_optional(optional), SomeValue),
    "value": _value,
    "first": lambda items: _at_end(items, 0),
    "last": lambda items: _at_end(items, -1),
    "optional.unwrap": lambda items: [item.value for item in items if isinstance(item, SomeValue)],
    "unwrapOpt": lambda items: [item.value for item in items if isinstance(item, SomeValue)],
    "cel.@mapInsert": _inserted,
    "getFullYear": _part(lambda moment: int(moment.year)),
    "getMonth": _part(lambda moment: moment.month - 1),
    "getDayOfYear": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _part(lambda moment: moment.day - 1),
    "getDate": _part(lambda moment: int(moment.day)),
    "getDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
    "getHours": _part(lambda moment: int(moment.hour), 3600 * _NANO),
    "getMinutes": _part(lambda moment: int(moment.minute), 60 * _NANO),
    "getSeconds": _part(lambda moment: int(moment.second), _NANO),
    "getMilliseconds": _part(lambda moment: moment.microsecond // 1000, _MILLI),
    **{f"format.{name}": (lambda name=name: named_format(name)) for name in FORMAT_NAMES},
    **{name: _asked(name) for name in _AUTHORIZATION},
}

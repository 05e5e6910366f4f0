"""What a call costs once it is made: the steps that count against the limit of an evaluation (cel-go's
interpreter/runtimecost.go, Kubernetes' apiserver/pkg/cel/library/cost.go). Pure.

cel-go charges by the overload that was found for the types of the arguments. Here the arguments' own types decide, so
that a call on values of unknown type may cost more than there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mews.kube.cel.libraries import Address, AddressBlock
from mews.kube.cel.named_formats import NamedFormat
from mews.kube.cel.values import Receiver

AUTHORIZATION_COST = 350_000
"""The steps of a look at what a user may do."""
_WALK, _REGEX = 0.1, 0.25
_LISTS = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))
_ONCE = frozenset((
    "url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity",
    "semver", "isSemver", "startsWith", "endsWith", "bytes", "string", "strings.quote", "format",
))  # fmt: skip
"""Functions that walk once through their first argument."""
_CONVERTED: Mapping[str, type] = {"bytes": str, "string": bytes}
"""Conversions that walk through a text of the other sort only."""
_TWICE = frozenset(("replace", "split", "ip.isCanonical"))
_ORDERED = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
SET_FACTORS = {"sets.contains": 1, "sets.intersects": 1, "sets.equivalent": 2}
"""How often each member of one list is compared with each of the other."""
_EQUALITY = frozenset(("_==_", "_!=_"))
_FORMAT_PATTERNS = {
    "dns1123Label": 30, "dns1123Subdomain": 60, "dns1035Label": 30, "qualifiedName": 60, "dns1123LabelPrefix": 30,
    "dns1123SubdomainPrefix": 60, "dns1035LabelPrefix": 30, "labelValue": 40,
    "uri": 1103, "uuid": 70, "byte": 84, "date": 71, "datetime": 71,
}  # fmt: skip
"""Signs of the pattern behind a named format, as Kubernetes counts them."""


def call_cost(name: str, values: list[Any], result: Any) -> int:
    """Return the steps of a call of that function on these values; those of ``check`` are counted before it is made."""
    if name in _EQUALITY:
        if isinstance(values[0], (Address, AddressBlock)):
            return 1
        return _walked(min(_size(values[0]), _size(values[1])))
    if name == "@in" and isinstance(values[1], list):
        return len(values[1])
    if name in SET_FACTORS and len(values) > 1:
        return 1 + SET_FACTORS[name] * _size(values[0]) * _size(values[1])
    if name in _LISTS:
        return _traversal(values[0])
    return _of_texts(name, values, result)


def _of_texts(name: str, values: list[Any], result: Any) -> int:
    """Return the steps of a call that may walk through texts."""
    texts = [value for value in values if isinstance(value, (str, bytes))]
    if name in _CONVERTED and not isinstance(values[0], _CONVERTED[name]):
        return 1
    if name in _ONCE:
        return _walked(_size(values[0])) if values and isinstance(values[0], (str, bytes)) else 1
    if name in _TWICE and texts:
        return _walked(2 * _size(values[0]))
    if name == "join":
        return _walked(2 * _size(result))
    if len(texts) < 2:
        return _of_networks(name, values)
    one, other = _size(texts[0]), _size(texts[1])
    if name in _ORDERED:
        return _walked(min(one, other))
    if name == "_+_":
        return _walked(one + other)
    if name in ("matches", "find", "findAll"):
        return _walked(1 + one) * math.ceil(other * _REGEX)
    return _walked(one) * _walked(other) if name == "contains" else 1


def _of_networks(name: str, values: list[Any]) -> int:
    other = _size(values[1]) if len(values) > 1 and isinstance(values[1], str) else 0
    if name == "validate" and isinstance(values[0], NamedFormat):
        return _walked(1 + other) * math.ceil(_FORMAT_PATTERNS.get(values[0].name, 0) * _REGEX)
    if name in ("containsIP", "containsCIDR"):
        size = _size(values[0])
        return _walked(2 * size) + _walked(other) + (_walked(size) + 1 if name == "containsCIDR" else 0)
    return 1


def _walked(size: int) -> int:
    return math.ceil(size * _WALK)


def _size(value: Any) -> int:
    if isinstance(value, Address):
        return value.value.max_prefixlen // 8
    if isinstance(value, AddressBlock):
        return math.ceil(value.bits / 8)
    is_sized = isinstance(value, (str, bytes, list, dict)) and not isinstance(value, Receiver)
    return len(value) if is_sized else 1


def _traversal(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * _WALK)
    if isinstance(value, bytes):
        return int(len(value) * _WALK)
    if isinstance(value, list):
        return sum(_traversal(item) for item in value)
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1

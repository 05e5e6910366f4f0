"""Kubernetes quantities (k8s.io/apimachinery/pkg/api/resource)."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import lru_cache

_PATTERN = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([KMGTPE]i)|([numkMGTPE]))?$")
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@lru_cache(maxsize=4096)
def _parse(text: str) -> Decimal:
    match = _PATTERN.match(text)
    if match is None:
        raise ValueError(
            f"quantity {text!r}: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number, exponent, binary, decimal = match.groups()
    value = Decimal(number)
    if exponent:
        try:
            return value.scaleb(int(exponent[1:]))
        except InvalidOperation:
            raise ValueError(f"quantity {text!r}: its exponent is out of range") from None
    if binary:
        return value * _BINARY[binary]
    if decimal:
        return value.scaleb(_DECIMAL[decimal])
    return value


def parse(quantity: str | int | float) -> Decimal:
    """Return the exact value of a quantity.

    Raises ValueError when the text is not one.
    """
    return _parse(str(quantity).strip())


def whole(quantity: str | int | float) -> int:
    """Return the value rounded up to a whole number, as ``Quantity.Value()``: bytes, devices, pods."""
    return int(parse(quantity).to_integral_value(ROUND_CEILING))


def milli(quantity: str | int | float) -> int:
    """Thousandths, rounded up, as ``Quantity.MilliValue()``: CPU."""
    return _milli(str(quantity).strip())


@lru_cache(maxsize=4096)
def _milli(text: str) -> int:
    return int((_parse(text) * 1000).to_integral_value(ROUND_CEILING))


_DECIMAL_SUFFIXES = (
    ("E", 18),
    ("P", 15),
    ("T", 12),
    ("G", 9),
    ("M", 6),
    ("k", 3),
    ("", 0),
    ("m", -3),
    ("u", -6),
    ("n", -9),
)


_MOST_DIGITS, _MOST_POWER, _LARGEST = 18, 100, Decimal(2**63 - 1)


def _bounded(value: Decimal) -> Decimal:
    """Return the value within what an int64 holds where it has more digits than one, as ParseQuantity caps it; and
    where its exponent is beyond what anybody has."""
    if len(value.as_tuple().digits) <= _MOST_DIGITS and value.adjusted() <= _MOST_POWER:
        return value
    return max(-_LARGEST, min(_LARGEST, value))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    value = _bounded(_parse(text))
    match = _PATTERN.match(text)
    assert match is not None
    _, exponent, binary, _ = match.groups()
    if value == 0:
        return "0"
    if binary and abs(value) >= 1024:
        whole_bytes = value.to_integral_value(ROUND_CEILING)
        suffix = max((s for s, unit in _BINARY.items() if whole_bytes % unit == 0), key=_BINARY.__getitem__, default="")
        return f"{int(whole_bytes) // _BINARY.get(suffix, 1)}{suffix}"
    nanos = int((value * 10**9).to_integral_value(ROUND_CEILING))
    for suffix, power in _DECIMAL_SUFFIXES:
        if nanos % 10 ** (power + 9) == 0:
            number = str(nanos // 10 ** (power + 9))
            return f"{number}e{power}" if exponent and power else number + ("" if exponent else suffix)
    raise AssertionError(f"{text}: whole nanos have a suffix")


def canonical(quantity: str | int | float) -> str:
    """Return the quantity as the API server stores it: no fraction, the largest suffix of its family that loses
    nothing.

    ``0.5`` -> ``500m``, ``1024Mi`` -> ``1Gi``, ``1000`` -> ``1k`` (contract apiserver.md section 3).
    Raises ValueError when the text is not a quantity.
    """
    return _canonical(str(quantity).strip())


def total_text(total: Decimal, first: str | int | float) -> str:
    """Return a sum as ``Quantity.String()`` writes it: in the family of suffixes of its first term."""
    if str(first).endswith("i"):
        for suffix, power in (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)):
            if total and total % (1 << power) == 0:
                return f"{int(total) >> power}{suffix}"
    return canonical(format(total, "f"))

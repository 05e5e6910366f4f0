"""Values of Kubernetes' libraries: quantities and addresses."""

from __future__ import annotations

import ipaddress
import re
from fractions import Fraction
from typing import Any, ClassVar

from msgspec import Struct

from mews.kube.api.quoted_text import quoted
from mews.kube.cel.values import CelError

_ANY_QUANTITY = re.compile(r"[+-]?[0-9]*(\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")
_QUANTITY = re.compile(r"([+-]?)([0-9]*\.?[0-9]*)(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?")
_SCALES = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Quantity(Struct, frozen=True):
    """An amount, exactly."""

    cel_name: ClassVar[str] = "kubernetes.Quantity"
    amount: Fraction

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """``1.5Gi``; raises ``CelError``."""
        if not text or not _ANY_QUANTITY.fullmatch(text):
            why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            raise CelError(why)
        match = _QUANTITY.fullmatch(text)
        if match is None:
            raise CelError("unable to parse quantity's suffix")
        amount = Fraction(f"0{match[2]}0" if "." in match[2] else f"0{match[2]}")
        if match[3]:
            amount *= Fraction(10) ** int(match[3][1:])
        elif match[4] in _BINARY:
            amount *= Fraction(1024) ** (_BINARY.index(match[4]) + 1)
        elif match[4]:
            amount *= Fraction(10) ** _SCALES[match[4]]
        return cls(-amount if match[1] == "-" else amount)

    @property
    def is_integer(self) -> bool:
        """A whole number that an int holds."""
        return self.amount.denominator == 1 and -(1 << 63) <= self.amount < 1 << 63


class Address(Struct, frozen=True):
    """An IP address."""

    cel_name: ClassVar[str] = "net.IP"
    value: ipaddress.IPv4Address | ipaddress.IPv6Address

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises ``CelError``."""
        try:
            value = ipaddress.ip_address(text)
        except ValueError:
            why = _address_error(text)
            raise CelError(f"IP Address {quoted(text)} parse error during conversion from string: {why}") from None
        if "%" in text:
            raise CelError(f'IP address "{text}" with zone value is not allowed')
        if isinstance(value, ipaddress.IPv6Address) and value.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
        return cls(value)

    def __str__(self) -> str:
        return str(self.value)


def _address_error(text: str) -> str:
    """Return what Go's ``netip.ParseAddr`` says of a text that is no address."""
    first = next((char for char in text if char in ".:%"), "")
    why = {".": _four_error(text), "%": "missing IPv6 address"}.get(first, "unable to parse IP")
    return f"ParseAddr({quoted(text)}): {why}"


def _four_error(text: str) -> str:
    fields = text.split(".")
    for index, field in enumerate(fields):
        rest = ".".join(fields[index:])
        if index > 3:
            return "IPv4 address too long"
        if wrong := re.search("[^0-9]", field):
            return f"unexpected character (at {quoted(rest[wrong.start() :])})"
        if len(field) > 1 and field[0] == "0":
            return "IPv4 field has octet with leading zero"
        if int(field or "0") > 255:
            return "IPv4 field has value >255"
        if not field:
            at = rest if index < len(fields) - 1 else text[-1:]
            return f"IPv4 field must have at least one digit (at {quoted(at)})"
    return "IPv4 address too short"


class AddressBlock(Struct, frozen=True):
    """A CIDR: an address and how many of its bits count."""

    cel_name: ClassVar[str] = "net.CIDR"
    address: Address
    bits: int

    @classmethod
    def parse(cls, text: str) -> AddressBlock:
        """Raises ``CelError``."""
        address, slash, bits = text.rpartition("/")
        if not slash:
            raise _bad_block(text, "no '/'")
        try:
            most = ipaddress.ip_address(address).max_prefixlen
        except ValueError:
            raise _bad_block(text, _address_error(address)) from None
        if not re.fullmatch(r"0|[1-9]\d{0,2}", bits):
            raise _bad_block(text, f'bad bits after slash: "{bits}"')
        if int(bits) > most:
            raise _bad_block(text, "prefix length out of range")
        try:
            return cls(Address.parse(address), int(bits))
        except CelError as error:  # The address alone is fine.
            prefix = "network address parse error during conversion from string"
            raise CelError(f"{prefix}: {str(error).replace(quoted(address), quoted(text))}") from None

    @property
    def network(self) -> Any:
        """As ``ipaddress`` has it."""
        return ipaddress.ip_network(f"{self.address}/{self.bits}", strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def _bad_block(text: str, why: str) -> CelError:
    prefix = "network address parse error during conversion from string: " * 2
    return CelError(f"{prefix}netip.ParsePrefix({quoted(text)}): {why}")

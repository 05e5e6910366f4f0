"""Values of Kubernetes' libraries: quantities, URLs, addresses, semantic versions, named formats."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from mews.kube.cel.values import CelError

_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?")
_SCALES = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NUMBER = r"(0|[1-9]\d*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


class Quantity(Struct, frozen=True):
    """An amount, exactly."""

    cel_name: ClassVar[str] = "kubernetes.Quantity"
    amount: Fraction

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """``1.5Gi``; raises ``CelError``."""
        match = _QUANTITY.fullmatch(text)
        if match is None:
            why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            raise CelError(why)
        amount = Fraction(match[2] + ("0" if match[2].endswith(".") else ""))
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


class Url(Struct, frozen=True):
    """An absolute URL or a path."""

    cel_name: ClassVar[str] = "kubernetes.URL"
    text: str

    @classmethod
    def parse(cls, text: str) -> Url:
        """``https://host/path``; raises ``CelError``."""
        try:
            parts = urlsplit(text)
            fine = bool(parts.scheme and (parts.netloc or parts.path)) or text.startswith("/")
            fine = fine and (parts.port is None or parts.port >= 0) and not re.search(r"[\x00-\x20\x7f]", text)
        except ValueError:
            fine = False
        if not fine:
            raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
        return cls(text)

    @property
    def scheme(self) -> str:
        """``https``."""
        return urlsplit(self.text).scheme

    @property
    def host(self) -> str:
        """With the port."""
        return urlsplit(self.text).netloc.rpartition("@")[2]

    @property
    def hostname(self) -> str:
        """Without the port and without brackets."""
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.partition(":")[0]

    @property
    def port(self) -> str:
        """The port as it is written."""
        return self.host.rpartition("]")[2].rpartition(":")[2] if ":" in self.host.rpartition("]")[2] else ""

    @property
    def path(self) -> str:
        """The path, escaped."""
        return urlsplit(self.text).path

    @property
    def query(self) -> dict[str, list[str]]:
        """What is asked, by name."""
        return parse_qs(urlsplit(self.text).query, keep_blank_values=True)


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
            why = f'ParseAddr("{text}"): unable to parse IP'
            raise CelError(f'IP Address "{text}" parse error during conversion from string: {why}') from None
        if "%" in text:
            raise CelError(f'IP address "{text}" with zone value is not allowed')
        if isinstance(value, ipaddress.IPv6Address) and value.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
        return cls(value)

    def __str__(self) -> str:
        return str(self.value)


class AddressBlock(Struct, frozen=True):
    """A CIDR: an address and how many of its bits count."""

    cel_name: ClassVar[str] = "net.CIDR"
    address: Address
    bits: int

    @classmethod
    def parse(cls, text: str) -> AddressBlock:
        """Raises ``CelError``."""
        address, slash, bits = text.partition("/")
        if not slash:
            raise _bad_block(text, "no '/'")
        try:
            most = ipaddress.ip_address(address).max_prefixlen
        except ValueError:
            raise _bad_block(text, f'ParseAddr("{address}"): unable to parse IP') from None
        if not re.fullmatch(r"0|[1-9]\d{0,2}", bits):
            raise _bad_block(text, f'bad bits after slash: "{bits}"')
        if int(bits) > most:
            raise _bad_block(text, "prefix length out of range")
        return cls(Address.parse(address), int(bits))

    @property
    def network(self) -> Any:
        """As ``ipaddress`` has it."""
        return ipaddress.ip_network(f"{self.address}/{self.bits}", strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def _bad_block(text: str, why: str) -> CelError:
    prefix = "network address parse error during conversion from string: " * 2
    return CelError(f'{prefix}netip.ParsePrefix("{text}"): {why}')


class Semver(Struct, frozen=True):
    """A semantic version."""

    cel_name: ClassVar[str] = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    pre: tuple[str, ...]
    build: str

    @classmethod
    def parse(cls, text: str, *, loose: bool = False) -> Semver:
        """``1.2.3-rc.1+build``; ``loose`` takes ``v1.2`` too. Raises ``CelError``."""
        given = text
        if loose:
            text = text.removeprefix("v")
            head, mark, tail = re.fullmatch(r"([^+-]*)([+-]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
            numbers = [part.lstrip("0") or "0" for part in head.split(".")]
            text = ".".join([*numbers, *["0"] * (3 - len(numbers))]) + mark + tail
        match = _SEMVER.fullmatch(text)
        if match is None:
            raise CelError("No Major.Minor.Patch elements found" if given.count(".") < 2 else "Invalid character(s)")
        pre = tuple(match[4].split(".")) if match[4] else ()
        return cls((int(match[1]), int(match[2]), int(match[3])), pre, match[5] or "")

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1."""
        mine, theirs = (self.numbers, _order(self.pre)), (other.numbers, _order(other.pre))
        return (mine > theirs) - (mine < theirs)


def _order(pre: tuple[str, ...]) -> tuple[Any, ...]:
    return (1,) if not pre else (0, *((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre))


class NamedFormat(Struct, frozen=True):
    """A format by name, and what is wrong with a text by it."""

    cel_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    errors: Callable[[str], list[str]]


_LABEL, _LABEL_1035 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "[a-z]([-a-z0-9]*[a-z0-9])?"
_DATE = r"\d{4}-\d\d-\d\d"
_RULES: dict[str, tuple[str, int, str]] = {
    "dns1123Label": (
        _LABEL,
        63,
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'",
    ),
    "dns1123Subdomain": (rf"{_LABEL}(\.{_LABEL})*", 253, "a lowercase RFC 1123 subdomain must consist of lower case"),
    "dns1035Label": (_LABEL_1035, 63, "a DNS-1035 label must consist of lower case alphanumeric characters or '-'"),
    "qualifiedName": (rf"({_LABEL}(\.{_LABEL})*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", 317, "name part must"),
    "dns1123LabelPrefix": (r"[a-z0-9]([-a-z0-9]*)?", 63, "a lowercase RFC 1123 label must consist of lower case"),
    "dns1123SubdomainPrefix": (rf"{_LABEL}(\.{_LABEL})*[-.]?", 253, "a lowercase RFC 1123 subdomain must consist of"),
    "dns1035LabelPrefix": (r"[a-z]([-a-z0-9]*)?", 63, "a DNS-1035 label must consist of lower case"),
    "labelValue": (r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", 63, "a valid label must be an empty string or"),
    "uuid": (r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}", 1 << 30, "does not match the UUID format"),
    "byte": ("([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", 1 << 30, "invalid base64"),
    "date": (_DATE, 1 << 30, "invalid date"),
    "datetime": (rf"{_DATE}[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", 1 << 30, "invalid datetime"),
    "uri": (r"([A-Za-z][A-Za-z0-9+.\-]*:\S+|/\S*)", 1 << 30, "invalid URI for request"),
}


def named_format(name: str) -> NamedFormat | None:
    """Return the format of that name."""
    if name not in _RULES:
        return None
    pattern, longest, text = _RULES[name]

    def errors(value: str) -> list[str]:
        found = [f"must be no more than {longest} characters"] if len(value) > longest else []
        return found if re.fullmatch(pattern, value) else [*found, text]

    return NamedFormat(name, errors)


FORMAT_NAMES = tuple(_RULES)

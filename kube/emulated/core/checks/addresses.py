"""What is asked of IP addresses and ranges (k8s.io/apimachinery/pkg/util/validation/ip.go).

Fields that are older than strict rules take what Go's older parser took (zeros before numbers, bits beyond a prefix)
and warn of it.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any

from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LATER = "will be considered invalid in a future Kubernetes release"

_LONGEST = 64
"""Longer ones are no address that anybody would write twice."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def address(path: str, text: str) -> list[FieldError]:
    """Return an IP address, as older fields take it: zeros before numbers are passed over."""
    return [] if is_address(text) else [refusals.bad(path, text, _ADDRESS)]


def is_address(text: str) -> bool:
    """Return whether it is an IP address; zeros before a number do not count."""
    return parsed(text) is not None


def _without_zeros(text: str) -> str:
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", text) if ":" not in text else text


def _read(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text) if "%" not in text else None
    except ValueError:
        return None


def parsed(text: str) -> Address | None:
    """Return the address, whose numbers may begin with zeros; None for what is none."""
    return _parsed(text) if len(text) <= _LONGEST else _read(_without_zeros(text))


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Address | None:
    """Return a pod's and its node's are looked at with each write of the pod's status."""
    return _read(_without_zeros(text))


def _mapped(found: Address | None) -> ipaddress.IPv4Address | None:
    return found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None


def strict_address(path: str, text: str) -> list[FieldError]:
    """Return an IP address in its canonical form."""
    found = parsed(text)
    if found is None:
        return [refusals.bad(path, text, _ADDRESS)]
    if _read(text) is None:
        return [refusals.bad(path, text, "must not have leading 0s")]
    if _mapped(found) is not None:
        return [refusals.bad(path, text, "must not be an IPv4-mapped IPv6 address")]
    if str(found) != text:
        return [refusals.bad(path, text, f'must be in canonical form ("{found}")')]
    return []


def address_warnings(path: str, text: str) -> list[str]:
    """Return what there is to warn of in an address that an older field takes."""
    found, strict = parsed(text), _read(text)
    if found is None:
        return []
    if strict is None or _mapped(strict) is not None:
        return [f'{path}: non-standard IP address "{text}" {_LATER}: use "{_mapped(found) or found}"']
    if strict.version == 6 and str(strict) != text:
        return [f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{strict}")']
    return []


def address_range(path: str, text: str) -> list[FieldError]:
    """Return a CIDR; bits beyond its prefix are passed over."""
    return [] if network(text) else [refusals.bad(path, text, _RANGE)]


def network(text: str) -> Any:
    """Return the range, or None when it is none."""
    base, slash, length = text.partition("/")
    if not slash or not re.fullmatch("[0-9]+", length) or parsed(base) is None:
        return None
    try:
        return ipaddress.ip_network(f"{_without_zeros(base)}/{int(length)}", strict=False)
    except ValueError:
        return None


def _is_strict(text: str) -> bool:
    base, _, length = text.partition("/")
    return _read(base) is not None and (length == "0" or not length.startswith("0"))


def range_warnings(path: str, text: str) -> list[str]:
    """Return what there is to warn of in a range that an older field takes."""
    found, base = network(text), parsed(text.partition("/")[0])
    if found is None or base is None:
        return []
    texts: list[str] = []
    if base != found.network_address:
        alone = f"{base}/{found.max_prefixlen}"
        texts.append(f'{path}: CIDR value "{text}" is ambiguous in this context (should be "{found}" or "{alone}"?)')
    if not _is_strict(text) or _mapped(base) is not None:
        texts.append(f'{path}: non-standard CIDR value "{text}" {_LATER}: use "{found}"')
    if not texts and found.version == 6 and str(found) != text:
        texts.append(f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{found}")')
    return texts


def interface_address(path: str, text: str) -> list[FieldError]:
    """Return the address of an interface with its prefix, in canonical form: bits beyond the prefix stay."""
    if network(text) is None:
        example = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [refusals.bad(path, text, example)]
    base, _, length = text.partition("/")
    canonical = f"{parsed(base)}/{int(length)}"
    return [] if canonical == text else [refusals.bad(path, text, f'must be in canonical form ("{canonical}")')]


def strict_range(path: str, text: str) -> list[FieldError]:
    """Return a CIDR in its canonical form, without bits beyond its prefix."""
    found = network(text)
    if found is None:
        return [refusals.bad(path, text, _RANGE)]
    if not _is_strict(text):
        return [refusals.bad(path, text, "must not have leading 0s in IP or prefix length")]
    base = parsed(text.partition("/")[0])
    if _mapped(base) is not None:
        return [refusals.bad(path, text, "must not have an IPv4-mapped IPv6 address")]
    if base != found.network_address:
        return [refusals.bad(path, text, "must not have bits set beyond the prefix length")]
    return [] if str(found) == text else [refusals.bad(path, text, f'must be in canonical form ("{found}")')]


def family(text: str) -> int:
    """4 or 6; 0 for what is no address or range."""
    found = parsed(text) or network(text)
    return found.version if found else 0

"""Whose requests a server answers that listens on somebody's own machine. Pure; every HTTP face of every room asks it.

A web page that the user happens to have open can send requests to loopback, under a name of its own that it lets point
there (DNS rebinding) or straight to the address (cross-site requests, which need no answer to do harm, and WebSockets,
which browsers let through without asking). Such requests give themselves away by three headers that a page cannot
forge: Host, Origin (RFC 6454) and Sec-Fetch-Site (W3C Fetch Metadata Request Headers).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct

_OWN_SITES = ("same-origin", "none")
"""Of Sec-Fetch-Site: a page of this very server, or the user, who typed the address."""


class Callers(Struct, frozen=True):
    """``names``: further host names that the server goes by, in lower case. ``addresses``: whether any address may be
    its Host, as for servers that listen beyond loopback: a name can be made to point elsewhere, an address cannot."""

    names: frozenset[str] = frozenset()
    addresses: bool = False

    def refusal(self, headers: Mapping[str, str], *, secure: bool = False) -> str | None:
        """Return why a request with these headers (names in lower case) is not answered, None where it is."""
        host = headers.get("host")
        if host is not None and not _is_ours(self, host):
            return f"Host {host!r} is none of this server's names; --allow-host adds one"
        site = headers.get("sec-fetch-site")
        if site is not None and site.lower() not in _OWN_SITES:
            return f"Sec-Fetch-Site {site!r}: requests of other sites' pages are not answered"
        origin = headers.get("origin")
        if origin is not None and not _is_same(origin, host or "", secure=secure):
            return f"Origin {origin!r}: requests of other origins are not answered"
        return None


@lru_cache(maxsize=256)
def _is_ours(server: Callers, host: str) -> bool:
    name = name_of(host)
    if name is None:
        return False
    if name == "localhost" or name.endswith(".localhost") or name in server.names:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return server.addresses or address.is_loopback


def callers(listens_on: str, allowed: Iterable[str] = ()) -> Callers:
    """Return those of a server that listens on that name or address; ``allowed``: what the user names besides."""
    names = frozenset(name.lower().rstrip(".") for name in (listens_on, *allowed))
    try:
        addresses = not ipaddress.ip_address(listens_on).is_loopback
    except ValueError:
        addresses = listens_on.lower() != "localhost"
    return Callers(names, addresses)


def name_of(host: str) -> str | None:
    """Return the name or address in a Host header, without port and brackets, in lower case; None where it is
    neither."""
    try:
        parts = urlsplit(f"//{host}")
        named, _ = parts.hostname, parts.port
    except ValueError:
        return None
    if named is None or parts.path or parts.query or parts.fragment or parts.username is not None:
        return None
    return named.rstrip(".")


def _is_same(origin: str, host: str, *, secure: bool) -> bool:
    """Return whether an Origin is the server itself, as the Host names it."""
    scheme, separator, rest = origin.lower().partition("://")
    if not separator or scheme not in ("http", "https", "ws", "wss"):
        return False
    ports = {"http": ":80", "ws": ":80", "https": ":443", "wss": ":443"}
    default = ports[scheme]
    here = host.lower().removesuffix(":443" if secure else ":80")
    return rest.removesuffix(default) == here and (scheme in ("https", "wss")) == secure

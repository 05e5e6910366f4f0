"""URLs of webhooks, read as Go's net/url does (k8s.io/apiserver/pkg/util/webhook/validation.go)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError

_FORM = "; desired format: https://host[/path]"
_HOST_SIGNS = frozenset("-_.~!$&'()*+,;=:[]<>\"")
_USER_SIGNS = frozenset("-._:~!$&'()*+,;=%@")
_HEX = frozenset("0123456789abcdefABCDEF")


class UrlError(ValueError):
    """A text is no URL; says why."""


class ParsedUrl(Struct, frozen=True):
    """The parts of a URL that its rules ask about."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    query: str = ""
    fragment: str = ""


def url_errors(url: str, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the URL of a webhook."""
    try:
        found = parsed(url)
    except UrlError as error:
        text = f"parse {refusals.shown(url.partition('#')[0])}: {error}"
        yield refusals.required(path, f"url must be a valid URL: {text}{_FORM}")
        return
    if found.scheme != "https":
        yield refusals.bad(path, found.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not found.host:
        yield refusals.bad(path, "", f"host must be specified{_FORM}")
    if found.user:
        yield refusals.bad(path, found.user, "user information is not permitted in the URL")
    if found.fragment:
        yield refusals.bad(path, found.fragment, "fragments are not permitted in the URL")
    if found.query:
        yield refusals.bad(path, found.query, "query parameters are not permitted in the URL")


def service_errors(service: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the service of a webhook."""
    # Upstream hands name and namespace over the wrong way round, so each is missed under the other's path.
    if not service.get("namespace"):
        yield refusals.required(f"{path}.name")
    if not service.get("name"):
        yield refusals.required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield refusals.bad(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    where = service.get("path")
    if where is None or where in ("", "/"):
        return
    if where == "//":
        yield refusals.bad(f"{path}.path", where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        yield refusals.bad(f"{path}.path", where, "must start with a '/'")
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        if not step:
            yield refusals.bad(f"{path}.path", where, f"segment[{index}] may not be empty")
            continue
        for error in names.subdomain_errors("", step):
            text = error.text.partition(": ")[2]
            yield refusals.bad(f"{path}.path", where, f"segment[{index}]: {text}")


def parsed(url: str) -> ParsedUrl:
    """Return the parts of a URL.

    Raises ``UrlError`` in Go's words.
    """
    whole, _, fragment = url.partition("#")
    if re.search(r"[\x00-\x1f\x7f]", whole):
        raise UrlError("net/url: invalid control character in URL")
    scheme, rest = _scheme(whole)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return ParsedUrl(scheme, query=query, fragment=_unescaped(fragment))
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user, host = "", ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, rest = rest[2:].partition("/")
        user, host = _authority(authority)
        rest = slash + rest
    _unescaped(rest)
    return ParsedUrl(scheme, user, host, query, _unescaped(fragment))


def _scheme(whole: str) -> tuple[str, str]:
    if whole.startswith(":"):
        raise UrlError("missing protocol scheme")
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", whole)
    return (found[1].lower(), whole[found.end() :]) if found else ("", whole)


def _authority(text: str) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    if at and not all(char.isascii() and (char.isalnum() or char in _USER_SIGNS) for char in user):
        raise UrlError("net/url: invalid userinfo")
    return user, _host(host)


def _host(text: str) -> str:
    port = ""
    if text.startswith("["):
        if "]" not in text:
            raise UrlError("missing ']' in host")
        port = text.rpartition("]")[2]
    elif ":" in text:
        port = f":{text.rpartition(':')[2]}"
    if port and not re.fullmatch(":[0-9]*", port):
        raise UrlError(f"invalid port {refusals.shown(port)} after host")
    _unescaped(text)
    for char in text:
        if char.isascii() and not char.isalnum() and char not in _HOST_SIGNS and char != "%":
            raise UrlError(f"invalid character {refusals.shown(char)} in host name")
    return text


def _unescaped(text: str) -> str:
    for found in re.finditer("%", text):
        escape = text[found.start() : found.start() + 3]
        if len(escape) < 3 or not {*escape[1:]} <= _HEX:
            raise UrlError(f"invalid URL escape {refusals.shown(escape)}")
    return text

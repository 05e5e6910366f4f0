"""URLs as Go's net/url reads them, with its complaints."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import parse_qs, quote, urlsplit

from msgspec import Struct

from mews.kube.api.quoted_text import quoted
from mews.kube.cel.values import CelError

_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_PATH_SIGNS = "$&+,/:;=@!'()*~[]-_.%"
"""What Go leaves in a path as it is."""
_NO_HOST = re.compile(r"[ <>\"\\^`{|}]")


class Url(Struct, frozen=True):
    """An absolute URL or a path."""

    cel_name: ClassVar[str] = "kubernetes.URL"
    text: str

    @classmethod
    def parse(cls, text: str) -> Url:
        """``https://host/path``; raises ``CelError``."""
        if why := url_error(text):
            raise CelError(f"URL parse error during conversion from string: {why}")
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
        parts = urlsplit(self.text)
        is_opaque = parts.scheme and not parts.netloc and not parts.path.startswith("/")
        return "" if is_opaque else quote(parts.path, safe=_PATH_SIGNS)

    @property
    def query(self) -> dict[str, list[str]]:
        """What is asked, by name."""
        return parse_qs(urlsplit(self.text).query, keep_blank_values=True)


def url_error(text: str) -> str:
    """Return what Go's ``url.ParseRequestURI`` says of a text, "" where it takes it."""
    why = _error(text)
    return f"parse {quoted(text)}: {why}" if why else ""


def _error(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", text, re.DOTALL)
    if not match and not text.startswith("/"):
        return "missing protocol scheme" if text.startswith(":") else "invalid URI for request"
    rest = match[2] if match else text
    if match and rest.startswith("//"):
        authority, _, path = re.match(r"//([^/?]*)(/?)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
        return _host_error(authority.rpartition("@")[2]) or _escape_error(path.partition("?")[0])
    if match and not rest.startswith("/"):
        return "" if rest else "invalid URI for request"
    return _escape_error(rest.partition("?")[0])


def _host_error(host: str) -> str:
    if host.startswith("[") and "]" not in host:
        return "missing ']' in host"
    port = re.search(r":[^:\]]*$", host)
    if port and not re.fullmatch(r":\d*", port[0], re.ASCII):
        return f"invalid port {quoted(port[0])} after host"
    wrong = _NO_HOST.search(host)
    return f"invalid character {quoted(wrong[0])} in host name" if wrong else _escape_error(host)


def _escape_error(text: str) -> str:
    wrong = _ESCAPE.search(text)
    return f"invalid URL escape {quoted(wrong[0])}" if wrong else ""

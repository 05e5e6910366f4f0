"""Plain HTTP to a chassis: a connection per request, nothing repeated, everything noted."""

from __future__ import annotations

import errno
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from mews.harness.conformance.errors import HttpServerError, Malformed, NoAnswer
from mews.harness.conformance.exchange import Exchange, hide, without_secrets
from mews.harness.conformance.json_members import MemberTwice, once

MOST_BYTES = 64 << 20
"""Of one reply."""
UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL})


class ChassisTarget(Struct, frozen=True):
    """Where a chassis is: ``scheme://host:port/prefix`` without credentials, and how its certificate is checked.

    ``ca``: a file of certificates to trust instead of the machine's; ``insecure``: trust any.
    """

    url: str
    ca: str | None = None
    insecure: bool = False
    patience_s: float = 60.0


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


class HttpReply(Struct, frozen=True):
    """An answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body, as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body's JSON, as RFC 8259 has it: what only some readers take (a byte order mark, NaN) is none, and a
        member that is there twice is read differently by each.

        Raises Malformed.
        """
        coding = self.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise Malformed(f"HTTP {self.status} with a body in {coding}, which was not asked for")
        try:
            return json.loads(self.body.decode("utf-8"), object_pairs_hook=once, parse_constant=_no_number)
        except MemberTwice as error:
            raise Malformed(f"HTTP {self.status} with the member {error.name!r} twice in one object") from error
        except (ValueError, RecursionError) as error:
            raise Malformed(f"HTTP {self.status} with a body that is no JSON: {self.text[:120]!r}") from error


class Client:
    """Sends requests and keeps every exchange in ``log``. May be used by several threads."""

    def __init__(self, address: ChassisTarget) -> None:
        parts = urlsplit(address.url)
        self.address = address
        self.encrypted = parts.scheme == "https"
        self.log: list[Exchange] = []
        self.about = ""
        """The clause that is being judged, for the log."""
        self.credentials: tuple[str, str] | None = None
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._secrets: list[str] = []
        self._lock = threading.Lock()
        self._tls = _tls(address) if self.encrypted else None

    def keep_secret(self, *words: str) -> None:
        """Never let these words into the log."""
        self._secrets.extend(word for word in words if word not in self._secrets)

    def hidden(self, text: str) -> str:
        """The text without what is to be kept secret."""
        return hide(text, self._secrets)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        """The answer, whatever its status.

        Raises NoAnswer.
        """
        return self._noted(method, path, body, dict(headers or {}), MOST_BYTES)

    def head_of_stream(self, path: str, headers: Mapping[str, str]) -> HttpReply:
        """The answer to a GET without its body, which need not end.

        Raises NoAnswer.
        """
        return self._noted("GET", path, None, dict(headers), 0)

    def _noted(self, method: str, path: str, body: bytes | None, sent: dict[str, str], most: int) -> HttpReply:
        began_s = time.monotonic()
        try:
            reply = self._send(method, path, body, sent, most)
        except NoAnswer as error:
            self._note(method, path, body, sent, None, time.monotonic() - began_s, str(error))
            raise
        self._note(method, path, body, sent, reply, time.monotonic() - began_s)
        return reply

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int = MOST_BYTES
    ) -> HttpReply:
        connection = self.connection()
        try:
            connection.request(method, self.target(path), body, dict(headers))
            response = connection.getresponse()
            content = response.read(most) if most else b""
        except TimeoutError as error:
            text = f"{method} {path}: no answer within {self.address.patience_s:g} s"
            raise NoAnswer("timeout", text) from error
        except (OSError, http.client.HTTPException) as error:
            raise no_answer(error, self.address.url, f"{method} {path}") from error
        finally:
            connection.close()
        found: dict[str, str] = {}
        for name, value in response.getheaders():
            key = name.lower()
            found[key] = f"{found[key]}, {value}" if key in found else value
        return HttpReply(response.status, found, content)

    def addresses(self) -> Sequence[object]:
        """The host's addresses.

        Raises OSError.
        """
        return socket.getaddrinfo(self._host, self._port or (443 if self.encrypted else 80), type=socket.SOCK_STREAM)

    def connect_once(self, patience_s: float) -> None:
        """Open a connection and close it again.

        Raises NoAnswer.
        """
        try:
            port = self._port or (443 if self.encrypted else 80)
            socket.create_connection((self._host, port), timeout=patience_s).close()
        except TimeoutError as error:
            text = f"{self.address.url}: no connection within {patience_s:g} s"
            raise NoAnswer("unreachable", text) from error
        except OSError as error:
            raise no_answer(error, self.address.url, "connect") from error

    def target(self, path: str) -> str:
        """The path as it goes over the wire, whatever characters a chassis has put into it."""
        return quote(self._prefix + (path if path.startswith("/") else f"/{path}"), safe="/?&=%$'()*+,;:@!~-._#[]")

    def connection(self) -> http.client.HTTPConnection:
        """A new connection, not yet open."""
        if self._tls is not None:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self.address.patience_s, context=self._tls
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self.address.patience_s)

    def _note(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        reply: HttpReply | None,
        seconds: float,
        error: str = "",
    ) -> None:
        with self._lock:
            self.log.append(
                Exchange(
                    method=method,
                    path=self.hidden(path),
                    headers=without_secrets(headers, self._secrets),
                    body=self.hidden((body or b"").decode("utf-8", "replace")),
                    status=None if reply is None else reply.status,
                    reply_headers={} if reply is None else without_secrets(reply.headers, self._secrets),
                    reply="" if reply is None else self.hidden(reply.text),
                    seconds=seconds,
                    error=error,
                    clause=self.about,
                )
            )


def no_answer(error: OSError | http.client.HTTPException, url: str, request: str) -> NoAnswer:
    """Why a request had no answer, in one line."""
    if isinstance(error, ConnectionRefusedError):
        return NoAnswer("refused", f"{url}: the connection is refused")
    if isinstance(error, socket.gaierror):
        return NoAnswer("unresolved", f"{url}: no such host: {error.strerror or error}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return NoAnswer(
            "untrusted", f"{url}: the certificate is not trusted: {error.verify_message}; --ca or --insecure"
        )
    if isinstance(error, ssl.SSLError):
        return NoAnswer("untrusted", f"{url}: no TLS: {error.reason or error}")
    if isinstance(error, OSError) and error.errno in UNREACHABLE:
        return NoAnswer("unreachable", f"{url}: {error.strerror}")
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, ConnectionError):
        return NoAnswer("not-http", f"{url}: this does not look like HTTP: it answers {str(error)[:60]}")
    return NoAnswer("dropped", f"{request}: no answer: {type(error).__name__}: {error}".rstrip(": "))


def below_500(reply: HttpReply, request: str, *, but: tuple[int, ...] = ()) -> HttpReply:
    """The reply, unless its status is 500 or more and none of ``but``.

    Raises HttpServerError.
    """
    if reply.status >= 500 and reply.status not in but:
        text = f"{request}: HTTP {reply.status}: {reply.text[:120]}".rstrip(": ")
        raise HttpServerError(text, request, comes_back=reply.status == 503 and "retry-after" in reply.headers)
    return reply


def _tls(address: ChassisTarget) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=address.ca)
    if address.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

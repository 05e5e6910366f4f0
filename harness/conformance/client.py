"""Plain HTTP to a chassis: a connection per request but for long walks, everything noted."""

from __future__ import annotations

import base64
import codecs
import contextlib
import errno
import gzip
import http.client
import json
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from mews.emulator.clock import unix_s
from mews.harness.conformance.errors import HttpServerError, MalformedError, NoAnswerError, OutOfTimeError
from mews.harness.conformance.exchange import Exchange, hide, without_secrets
from mews.harness.conformance.forward_proxy import proxy_of, proxy_text
from mews.harness.conformance.json_members import DuplicateMemberError, once

MOST_BYTES = 64 << 20
"""Of one reply."""
MOST_RETRIES = 6
"""Of a request that is answered with 429 or 503 and Retry-After."""
MOST_RETRY_S = 30.0
"""A longer Retry-After is not waited for."""
FAR_S = 86_400.0
"""A Date this far from this machine's is none that logs and certificates can live with."""
TUNNEL = "Tunnel connection failed: "
"""What http.client says before the answer of a proxy that does not CONNECT."""
MAY_WANT_CERTIFICATE = "; if it asks for a client certificate, give --cert FILE"
"""Said of a server that hangs up under TLS: why it does so is lost with the connection."""
UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL})


class ChassisTarget(Struct, frozen=True):
    """Where a chassis is: ``scheme://host:port/prefix`` without credentials, and how its certificate is checked.

    ``ca``: a file of certificates to trust instead of the machine's; ``insecure``: trust any; ``cert``: this client's
    own certificate with its key, or with that of the file ``key``.
    """

    url: str
    ca: str | None = None
    insecure: bool = False
    patience_s: float = 60.0
    cert: str | None = None
    key: str | None = None


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


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
        """Return the body's JSON, as RFC 8259 has it: what only some readers take (a byte order mark, NaN) is none, and
        a member that is there twice is read differently by each.

        Raises MalformedError.
        """
        try:
            return json.loads(self.body.decode("utf-8"), object_pairs_hook=once, parse_constant=_no_number)
        except DuplicateMemberError as error:
            raise MalformedError(f"HTTP {self.status} with the member {error.name!r} twice in one object") from error
        except (ValueError, RecursionError) as error:
            marked = " because of the byte order mark at its start" if self.body.startswith(codecs.BOM_UTF8) else ""
            text = f"HTTP {self.status} with a body that is not JSON{marked}: {self.text[:120]!r}"
            raise MalformedError(text) from error


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
        self.on_note: Callable[[str, str], None] = lambda topic, text: None
        """Called with what is wrong with the last exchange of the log, whatever it was about."""
        self.deadline_s: float | None = None
        """Of ``time.monotonic``: nothing is sent afterwards."""
        self.waited: list[str] = []
        """Requests that were made again because the answer said when to come back."""
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._proxy = proxy_of(parts)
        self._secrets: list[str] = []
        self._lock = threading.Lock()
        self._keeps = self._loses = False
        self._idle: http.client.HTTPConnection | None = None
        self._tls = tls_context(address) if self.encrypted else None

    def keep_secret(self, *words: str) -> None:
        """Never let these words into the log."""
        self._secrets.extend(word for word in words if word not in self._secrets)

    def hidden(self, text: str) -> str:
        """Return the text without what is to be kept secret."""
        return hide(text, self._secrets)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpReply:
        """Return the answer, whatever its status.

        Raises NoAnswerError, OutOfTimeError.
        """
        for _ in range(MOST_RETRIES):
            reply = self._noted(method, path, body, dict(headers or {}), MOST_BYTES)
            after_s = _retry_after_s(reply)
            if after_s is None or after_s > MOST_RETRY_S:
                return reply
            self.waited.append(f"{method} {path}: HTTP {reply.status}, Retry-After {after_s:g} s")
            self._rest(after_s)
        return reply

    def head_of_stream(self, path: str, headers: Mapping[str, str]) -> HttpReply:
        """Return the answer to a GET without its body, which need not end.

        Raises NoAnswerError, OutOfTimeError.
        """
        return self._noted("GET", path, None, dict(headers), 0)

    def _noted(self, method: str, path: str, body: bytes | None, sent: dict[str, str], most: int) -> HttpReply:
        began_s = time.monotonic()
        if self.left_s() <= 0:
            raise OutOfTimeError(f"{method} {path}: not sent, no time is left")
        try:
            reply = self._send(method, path, body, sent, most)
        except NoAnswerError as error:
            self._note(method, path, body, sent, error.partial, time.monotonic() - began_s, str(error))
            if error.kind == "timeout" and self.left_s() <= 0:
                raise OutOfTimeError(f"{method} {path}: no answer before the time was over") from error
            raise
        shown, coding = _decoded(reply)
        self._note(method, path, body, sent, shown, time.monotonic() - began_s)
        if coding:
            self.on_note("coding", f"{method} {path}: a body in {coding}, which was not asked for")
        wrong = _clock(reply.headers.get("date"))
        if wrong:
            self.on_note("clock", f"{method} {path}: {wrong}")
        return shown

    def left_s(self) -> float:
        """Return seconds until nothing more may be sent."""
        return float("inf") if self.deadline_s is None else self.deadline_s - time.monotonic()

    def _rest(self, seconds: float) -> None:
        if seconds > self.left_s():
            raise OutOfTimeError(f"a Retry-After of {seconds:g} s is longer than the time left")
        threading.Event().wait(seconds)

    @contextlib.contextmanager
    def one_connection(self) -> Iterator[None]:
        """Reads in here go over one connection for as long as the server keeps it: for reading much. A server may close
        a connection that is idle at any time (RFC 9112, 9.3.1): such a read is made again over a new one, and only that
        one is judged."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            if self._idle is not None:
                self._idle.close()
            self._idle = None

    @contextlib.contextmanager
    def answers_lost(self) -> Iterator[None]:
        """Writes in here are sent, and the connection is closed before their answer: NoAnswerError of the kind lost."""
        self._loses = True
        try:
            yield
        finally:
            self._loses = False

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int = MOST_BYTES
    ) -> HttpReply:
        keeps = self._keeps and method in ("GET", "HEAD")
        kept, self._idle = (self._idle, None) if keeps else (None, self._idle)
        connection, response = kept or self.connection(), None
        asked = {**({} if self.encrypted else self._for_proxy()), **headers}
        try:
            if kept is not None:
                response = self._over_kept(kept, method, path, body, asked)
                connection = kept if response is not None else self.connection()
            if response is None:
                connection.request(method, self.target(path), body, asked)
                if self._loses and method not in ("GET", "HEAD"):
                    raise NoAnswerError(NoAnswerError.LOST, f"{method} {path}: the answer was not read, on purpose")
                response = connection.getresponse()
            content = response.read(most) if most else b""
        except TimeoutError as error:
            text = f"{method} {path}: no answer within {self.address.patience_s:g} s"
            raise NoAnswerError("timeout", text) from error
        except http.client.IncompleteRead as error:
            assert response is not None
            got, more = len(error.partial), f" of {len(error.partial) + error.expected}" if error.expected else ""
            partial = HttpReply(response.status, {}, error.partial)
            raise NoAnswerError("cut", f"{method} {path}: the answer ends after {got}{more} bytes", partial) from error
        except (OSError, http.client.HTTPException) as error:
            raise no_answer(error, self._named(), f"{method} {path}") from error
        finally:
            if keeps and response is not None and response.isclosed() and connection.sock is not None:
                self._idle = connection
            else:
                connection.close()
        if self._is_short(response, content, most):
            length = response.headers["content-length"]
            partial = HttpReply(response.status, {}, content)
            raise NoAnswerError(
                "cut", f"{method} {path}: the answer ends after {len(content)} of {length} bytes", partial
            )
        found: dict[str, str] = {}
        for name, value in response.getheaders():
            key = name.lower()
            found[key] = f"{found[key]}, {value}" if key in found else value
        return HttpReply(response.status, found, content)

    def _over_kept(
        self, kept: http.client.HTTPConnection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse | None:
        """Return the answer over a connection that has been idle; None where it is closed instead."""
        try:
            if kept.sock is not None:
                kept.sock.settimeout(self._timeout_s())
            kept.request(method, self.target(path), body, dict(headers))
            return kept.getresponse()
        except (ConnectionError, ssl.SSLEOFError):
            kept.close()
            return None

    def _timeout_s(self) -> float:
        return max(0.2, min(self.address.patience_s, self.left_s()))

    def _is_short(self, response: http.client.HTTPResponse, content: bytes, most: int) -> bool:
        """Return whether less came than was named; http.client says so only where all of it was asked for."""
        length = response.headers.get("content-length", "")
        return bool(most and length.isdecimal() and response.length and len(content) < min(int(length), most))

    def addresses(self) -> Sequence[object]:
        """Return the addresses of the host, or of the proxy in between.

        Raises OSError.
        """
        return socket.getaddrinfo(*self._first_stop(), type=socket.SOCK_STREAM)

    def connect_once(self, patience_s: float) -> None:
        """Open a connection, to the proxy where there is one, and close it again.

        Raises NoAnswerError.
        """
        try:
            socket.create_connection(self._first_stop(), timeout=patience_s).close()
        except TimeoutError as error:
            text = f"{self._named()}: no connection within {patience_s:g} s"
            raise NoAnswerError("unreachable", text) from error
        except OSError as error:
            raise no_answer(error, self._named(), "connect") from error

    def _named(self) -> str:
        """Return the chassis in what is said of connections: with the proxy, whose fault it may be."""
        through = "" if self._proxy is None else f" (through the proxy {proxy_text(self._proxy)})"
        return f"{self.address.url}{through}"

    def target(self, path: str) -> str:
        """Return the path as it goes over the wire, whatever characters it has; to an HTTP proxy, the URL."""
        whole = quote(self._prefix + (path if path.startswith("/") else f"/{path}"), safe="/?&=%$'()*+,;:@!~-._#[]")
        if self._proxy is None or self.encrypted:
            return whole
        return f"http://{urlsplit(self.address.url).netloc}{whole}"

    def connection(self) -> http.client.HTTPConnection:
        """Return a new connection, not yet open."""
        timeout_s = self._timeout_s()
        host, port = self._first_stop()
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        if self._proxy is not None:
            connection.set_tunnel(self._host, self._port or 443, self._for_proxy())
        return connection

    def _first_stop(self) -> tuple[str, int]:
        """Whom to connect to: the chassis, or the proxy in between."""
        if self._proxy is not None:
            return self._proxy.hostname or "", self._proxy.port or 80
        return self._host, self._port or (443 if self.encrypted else 80)

    def _for_proxy(self) -> dict[str, str]:
        """Headers for the proxy: the credentials of its URL."""
        if self._proxy is None or self._proxy.username is None:
            return {}
        pair = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

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


def no_answer(error: OSError | http.client.HTTPException, url: str, request: str) -> NoAnswerError:
    """Return why a request had no answer, in one line."""
    if isinstance(error, ConnectionRefusedError):
        return NoAnswerError("refused", f"{url}: the connection is refused")
    if isinstance(error, socket.gaierror):
        return NoAnswerError("unresolved", f"{url}: no such host: {error.strerror or error}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return NoAnswerError(
            "untrusted", f"{url}: the certificate is not trusted: {error.verify_message}; --ca or --insecure"
        )
    if isinstance(error, ssl.SSLError):
        return NoAnswerError("untrusted", f"{url}: no TLS: {error.reason or error}{_hint(error)}")
    if type(error) is OSError and str(error).startswith(TUNNEL):
        return NoAnswerError("unreachable", f"{url}: the proxy refuses: {str(error).removeprefix(TUNNEL)}")
    if isinstance(error, OSError) and error.errno in UNREACHABLE:
        return NoAnswerError("unreachable", f"{url}: {error.strerror}")
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, ConnectionError):
        return NoAnswerError("not-http", f"{url}: this does not look like HTTP: it answers {str(error)[:60]}")
    return NoAnswerError("dropped", f"{request}: no answer: {type(error).__name__}: {error}".rstrip(": "))


def _hint(error: ssl.SSLError) -> str:
    """Return which option helps where a server asks for a client certificate, or does not take the one shown; one that
    hangs up in the middle of the handshake may, too."""
    reason = (error.reason or "").lower()
    if "alert" in reason and "cert" in reason:
        return "; --cert FILE shows a client certificate"
    return MAY_WANT_CERTIFICATE if isinstance(error, ssl.SSLEOFError) else ""


def below_500(reply: HttpReply, request: str, *, but: tuple[int, ...] = ()) -> HttpReply:
    """Return the reply, unless its status is 429, or 500 or more and none of ``but``.

    Raises HttpServerError.
    """
    if (reply.status >= 500 or reply.status == 429) and reply.status not in but:
        text = f"{request}: HTTP {reply.status}: {reply.text[:120]}".rstrip(": ")
        when = "retry-after" in reply.headers
        if reply.status == 429 and not when:
            raise HttpServerError(f"{text}, without Retry-After", request, topic="busy")
        raise HttpServerError(text, request, comes_back=reply.status in (429, 503) and when)
    return reply


def _retry_after_s(reply: HttpReply) -> float | None:
    """Return it after how many seconds the answer says to come back; None where it does not."""
    text = reply.headers.get("retry-after", "")
    return float(text) if reply.status in (429, 503) and text.isdecimal() else None


def _decoded(reply: HttpReply) -> tuple[HttpReply, str]:
    """Return the reply with its body as it was before it was compressed, and the coding; empty where it was not."""
    coding = reply.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("", "identity") or not reply.body:
        return reply, ""
    try:
        body = gzip.decompress(reply.body) if coding in ("gzip", "x-gzip") else zlib.decompress(reply.body)
    except (OSError, EOFError, zlib.error):
        return reply, coding
    return HttpReply(reply.status, reply.headers, body), coding


def _clock(date: str | None) -> str:
    """Return what is wrong with a Date header; empty where it is right or there is none."""
    if date is None:
        return ""
    try:
        shown_s = parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return f"the Date {date!r} is no date of HTTP (RFC 9110, 5.6.7)"
    return f"the Date {date!r} is more than a day from this machine's" if abs(shown_s - unix_s()) > FAR_S else ""


def tls_context(address: ChassisTarget) -> ssl.SSLContext:
    """Return how its connections are encrypted.

    Raises OSError for certificates that cannot be used.
    """
    context = ssl.create_default_context(cafile=address.ca)
    if address.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if address.cert is not None:
        context.load_cert_chain(address.cert, address.key, password="")
    return context

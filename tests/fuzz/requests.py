"""Requests as bytes: valid ones, and what chance makes of them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Sent:
    """A request before it is written to the wire; ``raw`` goes out instead of it where it is given."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes | None = None

    def wire(self, *, keep: bool = False) -> bytes:
        """The bytes; ``keep`` asks for no end of the connection after them."""
        if self.raw is not None:
            return self.raw
        head = {"Host": "127.0.0.1", **({} if keep else {"Connection": "close"}), **self.headers}
        if self.body and not {"Content-Length", "Transfer-Encoding"} & set(head):
            head["Content-Length"] = str(len(self.body))
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + self.body


WEIRD: tuple[str, ...] = (
    "null",
    "true",
    "-1",
    "0",
    "1e400",
    "1" + "0" * 400,
    "-0.0",
    "1.5",
    "9223372036854775808",
    "NaN",
    "Infinity",
    '""',
    '"x"',
    '"\\ud800"',
    '"\\u0000"',
    '"' + "a" * 70_000 + '"',
    "[]",
    "{}",
    '[["x"]]',
    '{"a":{"b":[]}}',
    "[" * 2_000 + "]" * 2_000,
    '{"":""}',
    '"2026-13-45T99:99:99Z"',
    '"10^400"',
    '"1e999999999"',
    "[null]",
    '[1,"a"]',
)
_SIZES = ("-1", "ffffffffffffffff", "18446744073709551616", "1e3", "0x10", "", " ", "+5", "5, 5", "five", "9" * 400)
_CHUNKS = (
    b"ffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    b"zz\r\nabc\r\n0\r\n\r\n",
    b"-1\r\nabc\r\n0\r\n\r\n",
    b"5\r\nab",
    b"3\r\nabcXX0\r\n\r\n",
    b"3;a=b\r\nabc\r\n0\r\n\r\n",
    b"\r\n",
    b"0\r\n",
    b"3\nabc\n0\n\n",
    b"9" * 300 + b"\r\nabc\r\n",
    b"0\r\nTrailer: x\r\n\r\n",
    b'4\r\n{"a"\r\n100000000\r\n',
)
_HEADERS = (
    ("Content-Type", "application/json; charset=\ufffd"),
    ("Content-Type", "application/json; charset=utf-99"),
    ("Content-Type", "text/plain"),
    ("Content-Type", "/"),
    ("Content-Type", "application/merge-patch+json"),
    ("Content-Type", "application/apply-patch+yaml"),
    ("Content-Type", "application/json-patch+json"),
    ("Content-Type", "application/vnd.kubernetes.protobuf"),
    ("Content-Encoding", "gzip"),
    ("Content-Encoding", "br"),
    ("Content-Encoding", "nonsense"),
    ("Accept", "text/html"),
    ("Accept", "application/json;q=x,,;"),
    ("Authorization", "Basic Og=="),
    ("Authorization", "Basic \xff\xff"),
    ("Authorization", "Bearer \x7f"),
    ("Authorization", "Basic 7aCA7aCA"),
    ("X-Auth-Token", "\xff"),
    ("If-Match", "*"),
    ("If-None-Match", '"'),
    ("Range", "bytes=9-1"),
    ("Expect", "100-continue"),
    ("Expect", "soon"),
    ("Upgrade", "h2c"),
    ("OData-Version", "9.9"),
    ("Last-Event-ID", "-1"),
    ("Last-Event-ID", "9" * 400),
    ("Cookie", "a=b; \x01"),
    ("Connection", "Upgrade"),
    ("Transfer-Encoding", "gzip, chunked"),
    ("Transfer-Encoding", "identity"),
    ("Impersonate-User", "\xff"),
    ("Authorization", "Bearer \udcff"),
    ("X-Mews-Token", "\udcff"),
    ("X-Auth-Token", "\udcff"),
    ("Host", "\udcff"),
    ("Origin", "\udcff"),
    ("User-Agent", "\udcff"),
    ("Last-Event-ID", "x"),
    ("Last-Event-ID", "\u00b2"),
    ("X-Mews-Token", "\xff"),
    ("Host", "127.0.0.1:99999999999"),
    ("Host", "[::1"),
    ("Host", ""),
    ("X-Long", "a" * 20_000),
)
_QUERY = (
    "limit=x",
    "limit=-1",
    "limit=99999999999999999999",
    "continue=%ff",
    "continue=e30",
    "watch=maybe",
    "fieldManager=",
    "fieldSelector=a",
    "fieldSelector=metadata.name%3D%3D%3D",
    "labelSelector=a%20in",
    "labelSelector=%00",
    "resourceVersion=x",
    "resourceVersion=-1",
    "resourceVersionMatch=Exact",
    "timeoutSeconds=x",
    "dryRun=x",
    "propagationPolicy=x",
    "gracePeriodSeconds=x",
    "pretty=%ff",
    "$filter=a%20eq",
    "$top=-1",
    "$skip=x",
    "$select=%00",
    "$expand=.($levels=99)",
    "only",
    "since=-1",
    "since=" + "9" * 400,
    "since=%c2%b2",
    "since=" + "9" * 5_000,
    "wait_s=nan",
    "wait_s=1e400",
    "wait_s=-1",
    "name[]=%ff",
    "host=%00",
    "a=%ed%a0%80",
    "tailLines=x",
    "sinceSeconds=x",
    "fieldValidation=x",
    "force=x",
    "dialect=%2e%2e",
    "chassis=%00",
)
_PATHS = ("%00", "%ff", "%ed%a0%80", "..", "//", "a" * 9_000, "%", "%zz", "~", "\u00e9", ";x", "*", "?")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "M-SEARCH", "\x00")


def _json_of(body: bytes) -> Any:
    if body.count(b"[") > 500:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        found += _places(item, (*path, key))
    return found


_MARK = "\u2603weird\u2603"


def _with_mark(value: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return _MARK
    head, *rest = path
    if isinstance(value, dict):
        return {key: _with_mark(item, tuple(rest)) if key == head else item for key, item in value.items()}
    return [_with_mark(item, tuple(rest)) if index == head else item for index, item in enumerate(value)]


def weird_value(sent: Sent, rng: random.Random) -> Sent:
    """One value anywhere in a JSON body, the body itself included, is of another type or beyond its bounds."""
    document = _json_of(sent.body) or {}
    marked = json.dumps(_with_mark(document, rng.choice(_places(document))))
    return replace(sent, body=marked.replace(json.dumps(_MARK), rng.choice(WEIRD)).encode("utf-8", "surrogatepass"))


def weird_key(sent: Sent, rng: random.Random) -> Sent:
    """One more member, with a name of chance."""
    document = _json_of(sent.body)
    if not isinstance(document, dict):
        return weird_value(sent, rng)
    name = rng.choice(
        ("", "\ud800", "__proto__", "metadata", "spec", "status", "kind", "apiVersion", "@odata.id", "a.b")
    )
    member = f"{json.dumps(name)}:{rng.choice(WEIRD)}"
    text = json.dumps(document)
    return replace(sent, body=(text[:-1] + ("," if document else "") + member + "}").encode())


def cut_body(sent: Sent, rng: random.Random) -> Sent:
    """The body ends early, with a length that says so or does not."""
    body = sent.body[: rng.randrange(len(sent.body) + 1)]
    length = str(rng.choice((len(body), len(sent.body))))
    return replace(sent, body=body, headers={**sent.headers, "Content-Length": length})


def flip_bytes(sent: Sent, rng: random.Random) -> Sent:
    """Some bytes of the body are others."""
    body = bytearray(sent.body or b"{}")
    for _ in range(rng.randint(1, 4)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return replace(sent, body=bytes(body))


def bad_length(sent: Sent, rng: random.Random) -> Sent:
    """A length that is none."""
    return replace(sent, headers={**sent.headers, "Content-Length": rng.choice(_SIZES)})


def bad_chunks(sent: Sent, rng: random.Random) -> Sent:
    """A chunked body that is malformed, ends early or is enormous by its own account."""
    headers = {**sent.headers, "Transfer-Encoding": "chunked"}
    return replace(sent, headers=headers, body=rng.choice(_CHUNKS))


def both_lengths(sent: Sent, rng: random.Random) -> Sent:
    """Chunked, and with a length."""
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(sent.body), sent.body) if sent.body else b"0\r\n\r\n"
    return replace(sent, headers={**sent.headers, "Transfer-Encoding": "chunked", "Content-Length": "3"}, body=body)


def header(sent: Sent, rng: random.Random) -> Sent:
    """One header is strange."""
    name, value = rng.choice(_HEADERS)
    return replace(sent, headers={**sent.headers, name: value})


def encoded(sent: Sent, rng: random.Random) -> Sent:
    """A body that says how it is encoded, truly or not."""
    body = rng.choice((gzip.compress(sent.body), b"\x1f\x8b" + sent.body, sent.body))
    return replace(sent, headers={**sent.headers, "Content-Encoding": "gzip"}, body=body)


def query(sent: Sent, rng: random.Random) -> Sent:
    """A parameter of chance."""
    mark = "&" if "?" in sent.target else "?"
    return replace(sent, target=sent.target + mark + rng.choice(_QUERY))


def path(sent: Sent, rng: random.Random) -> Sent:
    """A part of the path is strange, gone or there twice."""
    parts = sent.target.split("/")
    at = rng.randrange(len(parts))
    parts[at : at + rng.randint(0, 1)] = [rng.choice(_PATHS)]
    return replace(sent, target="/".join(parts) or "x")


def method(sent: Sent, rng: random.Random) -> Sent:
    """Another verb."""
    return replace(sent, method=rng.choice(_METHODS))


def garbled(sent: Sent, rng: random.Random) -> Sent:
    """Bytes of head or body are lost, doubled or others."""
    wire = bytearray(sent.wire())
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(wire))
        wire[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
    return replace(sent, raw=bytes(wire))


def plain(sent: Sent, rng: random.Random) -> Sent:
    """As it is: what is valid has to go on being answered."""
    return sent


MUTATIONS: tuple[Callable[[Sent, random.Random], Sent], ...] = (
    weird_value,
    weird_value,
    weird_value,
    weird_key,
    cut_body,
    flip_bytes,
    bad_length,
    bad_chunks,
    both_lengths,
    header,
    header,
    encoded,
    query,
    query,
    path,
    path,
    method,
    garbled,
    plain,
)


_UNFRAMING = frozenset(mutate.__name__ for mutate in (cut_body, bad_length, bad_chunks, both_lengths, garbled))
_OF_THE_CONNECTION = frozenset({"connection", "content-length", "expect", "transfer-encoding", "upgrade"})


def is_framed(sent: Sent, names: list[str]) -> bool:
    """Whether it is certain where the request ends, and that its connection speaks HTTP after it."""
    headers = {name.lower() for name in sent.headers}
    return _UNFRAMING.isdisjoint(names) and _OF_THE_CONNECTION.isdisjoint(headers) and sent.method != "CONNECT"


def drawn(seeds: list[Sent], rng: random.Random) -> tuple[Sent, list[str]]:
    """A request made of a valid one by one or two mutations, and what they are called."""
    sent, names = rng.choice(seeds), []
    for mutate in rng.choices(MUTATIONS, k=rng.choice((1, 1, 2))):
        if sent.raw is None:
            sent = mutate(sent, rng)
            names.append(mutate.__name__)
    return sent, names

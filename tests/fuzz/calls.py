"""Calls of gRPC: valid ones, and what chance makes of them."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Call:
    """A method by its path and the bytes of its message; ``messages`` of them are sent."""

    method: str
    message: bytes
    metadata: tuple[tuple[str, str | bytes], ...] = ()
    messages: int = 1
    packed: bool = False
    cancelled: bool = False


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _nested(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = _field(1, data)
    return data


_PIECES: tuple[bytes, ...] = (
    b"\xff" * 11,
    b"\x0a\xff\xff\xff\xff\x0f",
    _field(1, b"\xff\xfe"),
    _field(1, b"a\x00b"),
    _field(1, b"../../x.sock"),
    _field(1, b"/" * 300),
    _field(1, b"a" * 50_000),
    _field(2, b"\xed\xa0\x80"),
    _field(3, b"example.com/\xc2\xb2"),
    _field(2**28, b"later"),
    b"\x08" + _varint(2**64 - 1),
    b"\x0b\x0c",
    b"\x0b" * 200,
    _nested(90),
    _nested(2_000),
    _field(1, b"") * 20_000,
)
_METHODS = (
    "",
    "/",
    "//",
    "/x",
    "/x/y",
    "/v1beta1.Registration/",
    "/v1beta1.Registration/Nope",
    "/\xff/a",
    "/" + "a" * 4_000,
)
_METADATA: tuple[tuple[str, str | bytes], ...] = (
    ("a", "b" * 7_000),
    ("a", "b" * 30_000),
    ("a-bin", b"\x00\xff" * 500),
    ("grpc-timeout-x", "1"),
    ("x-auth-token", "~"),
)  # fmt: skip


def flipped(call: Call, rng: random.Random) -> Call:
    """Some bytes of the message are others."""
    message = bytearray(call.message or b"\x0a\x01a")
    for _ in range(rng.randint(1, 4)):
        message[rng.randrange(len(message))] = rng.randrange(256)
    return replace(call, message=bytes(message))


def cut(call: Call, rng: random.Random) -> Call:
    """The message ends early."""
    return replace(call, message=call.message[: rng.randrange(len(call.message) + 1)])


def pieced(call: Call, rng: random.Random) -> Call:
    """A piece before the message or after it: no field, one beyond all bounds, or one of another type."""
    piece = rng.choice(_PIECES)
    return replace(call, message=rng.choice((piece + call.message, call.message + piece, piece)))


def noise(call: Call, rng: random.Random) -> Call:
    """Bytes of chance."""
    return replace(call, message=rng.randbytes(rng.randint(0, 60)))


def repeated(call: Call, rng: random.Random) -> Call:
    """The message many times over, which is one whose lists are long."""
    return replace(call, message=call.message * rng.choice((2, 50, 1_000)))


def large(call: Call, rng: random.Random) -> Call:
    """Larger than servers take, itself or once it is unpacked."""
    return replace(call, message=bytes(5 << 20), packed=rng.random() < 0.7)


def packed(call: Call, rng: random.Random) -> Call:
    """Compressed."""
    return replace(call, packed=True)


def elsewhere(call: Call, rng: random.Random) -> Call:
    """A method that is none."""
    return replace(call, method=rng.choice(_METHODS))


def weird_metadata(call: Call, rng: random.Random) -> Call:
    """Metadata that nobody asked for."""
    return replace(call, metadata=(rng.choice(_METADATA),))


def several(call: Call, rng: random.Random) -> Call:
    """No message, or more than one."""
    return replace(call, messages=rng.choice((0, 2, 5)))


def given_up(call: Call, rng: random.Random) -> Call:
    """Its client goes away at once."""
    return replace(call, cancelled=True)


def plain(call: Call, rng: random.Random) -> Call:
    """As it is."""
    return call


MUTATIONS: tuple[Callable[[Call, random.Random], Call], ...] = (
    *(flipped, flipped, cut, pieced, pieced, pieced, noise, repeated, packed, elsewhere, weird_metadata),
    *(several, given_up, plain),
)
LARGE_SHARE = 0.002
_ONE_FRAME = 16_000
"""Bytes of a message that fit into one frame of HTTP/2."""


def drawn(calls: list[Call], rng: random.Random) -> tuple[Call, str]:
    """A call made of a valid one by one or two mutations, and what they are called."""
    call = rng.choice(calls)
    chosen = [large] if rng.random() < LARGE_SHARE else rng.choices(MUTATIONS, k=rng.choice((1, 1, 2)))
    for mutate in chosen:
        call = mutate(call, rng)
    return call, "+".join(mutate.__name__ for mutate in chosen)


def bytes_on_the_wire(call: Call) -> bytes:
    """A connection's first bytes in HTTP/2 that make this call: preface, settings, headers, one frame of data."""
    headers = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", call.method),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    )
    literal = b"".join(
        b"\x00" + _varint(len(name)) + name.encode() + _varint(len(value)) + value.encode() for name, value in headers
    )
    message = call.message[:_ONE_FRAME]
    body = gzip.compress(message) if call.packed else message
    data = bytes((call.packed,)) + len(body).to_bytes(4, "big") + body
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"") + _frame(1, 4, 1, literal) + _frame(0, 1, 1, data)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def garbled(wire: bytes, rng: random.Random) -> bytes:
    """Bytes are lost, doubled or others; or the rest is missing, or comes twice."""
    found = bytearray(wire)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(found))
        found[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 3))
    match rng.randrange(4):
        case 0:
            return bytes(found[: rng.randrange(len(found))])
        case 1:
            return bytes(found) + bytes(found[24:])
    return bytes(found)

"""SPDY/3.1 as bytes: frames and their headers (draft-mbelshe-httpbis-spdy-00; what moby/spdystream speaks). No I/O."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

_VERSION = 3
_CONTROL = 0x8000
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN = 0x01
PROTOCOL_ERROR, CANCEL = 1, 5

LONGEST_CONTROL = 64 * 1024
"""Bytes of a control frame, and of its headers when they are unpacked."""

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    "00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(struct.pack(">I", len(word)) + word.replace("_", " ").encode() for word in _WORDS.split()) + _TEXT.encode()
)
"""What both ends compress headers against: the draft's section 2.6.10.1."""


class SpdyError(Exception):
    """What came is no SPDY/3.1."""


class ControlFrame(Struct, frozen=True):
    """A control frame: its ``type``, and what it is about."""

    type: int
    stream: int = 0
    flags: int = 0
    number: int = 0
    """A ping's ID, or the status of a reset."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""


class SpdyData(Struct, frozen=True):
    """Bytes of a stream; the last ones with ``FIN``."""

    stream: int
    data: bytes
    flags: int = 0


class FrameReader:
    """Bytes in, frames out; headers unpack one after the other, so that frames must be read in order."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._unpack = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[ControlFrame | SpdyData]:
        """Yield the frames that are complete now.

        Raises SpdyError.
        """
        self._rest += data
        while len(self._rest) >= 8:
            first, second = struct.unpack_from(">II", self._rest)
            flags, length = second >> 24, second & 0xFFFFFF
            control = first >> 16 & _CONTROL
            if control and length > LONGEST_CONTROL:
                raise SpdyError(f"a control frame of {length} bytes")
            if len(self._rest) < 8 + length:
                return
            body = bytes(self._rest[8 : 8 + length])
            del self._rest[: 8 + length]
            if not control:
                yield SpdyData(first, body, flags)
            else:
                if first >> 16 & 0x7FFF != _VERSION:
                    raise SpdyError(f"version {first >> 16 & 0x7FFF}")
                yield self._control(first & 0xFFFF, flags, body)

    def _control(self, kind: int, flags: int, body: bytes) -> ControlFrame:
        try:
            if kind == SYN_STREAM:
                stream = struct.unpack_from(">I", body)[0]
                return ControlFrame(kind, stream & 0x7FFFFFFF, flags, headers=self._headers(body[10:]))
            if kind in (SYN_REPLY, HEADERS):
                stream = struct.unpack_from(">I", body)[0]
                return ControlFrame(kind, stream & 0x7FFFFFFF, flags, headers=self._headers(body[4:]))
            if kind in (RST_STREAM, WINDOW_UPDATE):
                stream, number = struct.unpack_from(">II", body)
                return ControlFrame(kind, stream & 0x7FFFFFFF, flags, number)
            if kind == PING:
                return ControlFrame(kind, number=struct.unpack_from(">I", body)[0])
        except struct.error as error:
            raise SpdyError(f"a frame of type {kind} of {len(body)} bytes") from error
        return ControlFrame(kind, flags=flags)

    def _headers(self, packed: bytes) -> dict[str, str]:
        try:
            block = self._unpack.decompress(packed, LONGEST_CONTROL)
        except zlib.error as error:
            raise SpdyError(f"headers: {error}") from error
        if self._unpack.unconsumed_tail:
            raise SpdyError(f"headers of more than {LONGEST_CONTROL} bytes")
        (count,), at = struct.unpack_from(">I", block), 4
        words: list[str] = []
        for _ in range(2 * min(count, LONGEST_CONTROL)):
            (length,) = struct.unpack_from(">I", block, at)
            words.append(block[at + 4 : at + 4 + length].decode("latin-1"))
            at += 4 + length
        return {name.lower(): value.partition("\0")[0] for name, value in zip(words[::2], words[1::2], strict=True)}


class FrameWriter:
    """Frames as bytes, which must be sent in the order in which they were written."""

    def __init__(self) -> None:
        self._pack = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int, headers: Mapping[str, str] | None = None, flags: int = 0) -> bytes:
        """Accept a stream."""
        return _control(SYN_REPLY, struct.pack(">I", stream) + self._packed(headers or {}), flags)

    def open(self, stream: int, headers: Mapping[str, str], flags: int = 0) -> bytes:
        """Open a stream."""
        return _control(SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._packed(headers), flags)

    def _packed(self, headers: Mapping[str, str]) -> bytes:
        block = struct.pack(">I", len(headers))
        for word in (word.encode("latin-1") for pair in headers.items() for word in pair):
            block += struct.pack(">I", len(word)) + word
        return self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)


def data_frame(stream: int, data: bytes, flags: int = 0) -> bytes:
    """Return bytes of a stream."""
    return struct.pack(">II", stream, flags << 24 | len(data)) + data


def reset_frame(stream: int, status: int) -> bytes:
    """Return the sudden end of a stream."""
    return _control(RST_STREAM, struct.pack(">II", stream, status))


def ping_frame(number: int) -> bytes:
    """Return a ping, or the answer to one."""
    return _control(PING, struct.pack(">I", number))


def goaway_frame(last: int) -> bytes:
    """No further stream is taken."""
    return _control(GOAWAY, struct.pack(">II", last, 0))


def _control(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", _CONTROL | _VERSION, kind, flags << 24 | len(body)) + body

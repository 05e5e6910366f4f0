"""One answer in HTTP/1.1, as its bytes come."""

from __future__ import annotations

_LONGEST_HEAD = 1 << 20
_BODY_KEPT = 4096
NO_HTTP = "no HTTP"


class AnswerReader:
    """Fed with what a connection gives: ``status`` once the head is there, ``whole`` once nothing more is to come.

    A HEAD's answer has no body. 1xx answers are passed over, but for 101, after which HTTP is over.
    """

    def __init__(self, method: str) -> None:
        self.status = ""
        self.whole = False
        self.closes = False
        self.body = b""
        self._headless = method == "HEAD"
        self._unread = bytearray()
        self._left: int | None = 0
        self._chunked = False
        self._trailers = False

    def feed(self, data: bytes) -> None:
        """More bytes."""
        self._unread += data
        while not self.status and not self.whole and self._read_head():
            pass
        if self.status and not self.whole:
            self._read_body()

    def end(self) -> None:
        """Nothing more comes."""
        if not self.status and self._unread:
            self.status = NO_HTTP
        self.whole = self.closes = True

    def _read_head(self) -> bool:
        """Whether a head was read that was not the last."""
        end = self._unread.find(b"\r\n\r\n")
        begins = self._unread.startswith(b"HTTP/"[: len(self._unread)])
        if not begins or (end < 0 and len(self._unread) > _LONGEST_HEAD):
            self.status, self.whole, self.closes = NO_HTTP, True, True
        if end < 0 or self.whole:
            return False
        first, *lines = bytes(self._unread[:end]).split(b"\r\n")
        del self._unread[: end + 4]
        words = first.split()
        if len(words) < 2 or not words[1].isdigit():
            self.status, self.whole, self.closes = NO_HTTP, True, True
            return False
        if words[1].startswith(b"1") and words[1] != b"101":
            return True
        self._begin(first[:8], words[1].decode(), lines)
        return False

    def _begin(self, version: bytes, status: str, lines: list[bytes]) -> None:
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        connection = headers.get(b"connection", b"").lower()
        self.status = status
        self.closes = b"close" in connection or (version == b"HTTP/1.0" and b"keep-alive" not in connection)
        if status == "101":
            self.whole = self.closes = True
        elif self._headless or status in ("204", "304"):
            self.whole = True
        elif b"chunked" in headers.get(b"transfer-encoding", b"").lower():
            self._chunked = True
        else:
            length = headers.get(b"content-length", b"")
            self._left = int(length) if length.isdigit() else None
            self.whole = self._left == 0
            self.closes = self.closes or self._left is None

    def _read_body(self) -> None:
        if self._chunked:
            while self._read_chunk():
                pass
            return
        data = self._taken(len(self._unread) if self._left is None else self._left)
        if self._left is not None:
            self._left -= data
            self.whole = self._left == 0

    def _read_chunk(self) -> bool:
        """Whether something was read, and more is to come. ``_left`` counts the line's end after a chunk."""
        if self._left:
            self._left -= self._taken(self._left)
            return not self._left
        line, end, _ = bytes(self._unread[:4096]).partition(b"\r\n")
        if not end:
            return False
        del self._unread[: len(line) + 2]
        if self._trailers:
            self.whole = not line
            return bool(line)
        size = int(line.partition(b";")[0], 16)
        self._trailers = size == 0
        self._left = size + 2 if size else 0
        return True

    def _taken(self, most: int) -> int:
        """Take up to so many bytes of a body; the first of them are kept."""
        data = self._unread[:most]
        if len(self.body) < _BODY_KEPT:
            self.body += bytes(data[: _BODY_KEPT - len(self.body)])
        del self._unread[:most]
        return len(data)

"""What of a log a client asked for (k8s.io/cri-client pkg/logs/logs.go). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from mews.kube.emulated.kubelet.runtime import LogMark


class LogSelection(Struct, frozen=True):
    """Options of a log: lines written from ``since`` on (unix seconds), each after its time, at most so many bytes."""

    tail_lines: int | None = None
    since: float | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


def tail_start(text: bytes, lines: int | None) -> int:
    """Return where the last so many lines begin; a last one without its end counts."""
    if lines is None:
        return 0
    if lines == 0:
        return len(text)
    at = len(text) - 1 if text.endswith(b"\n") else len(text)
    for _ in range(lines):
        at = text.rfind(b"\n", 0, max(at, 0))
        if at < 0:
            return 0
    return at + 1


class LogText:
    """Pieces of a log in, what is to be shown out."""

    def __init__(self, selection: LogSelection) -> None:
        self._selection = selection
        self._left = selection.limit_bytes
        self._begins = True
        self._shown = True

    @property
    def full(self) -> bool:
        """Whether as much was shown as was asked for."""
        return self._left is not None and self._left <= 0

    def show(self, piece: bytes, written_at: float) -> bytes:
        """Return what a piece comes to."""
        if self._selection.since is None and not self._selection.timestamps:
            return self._cut(piece)
        return self._cut(b"".join(self._lines(piece, written_at)))

    def _lines(self, piece: bytes, written_at: float) -> Iterator[bytes]:
        since = self._selection.since
        for line in piece.split(b"\n"):
            ends = len(line) < len(piece)
            piece = piece[len(line) + 1 :] if ends else b""
            if not line and not ends:
                return
            if self._begins:
                self._shown = since is None or written_at >= since
                if self._shown and self._selection.timestamps:
                    yield nanosecond_time(written_at).encode() + b" "
            if self._shown:
                yield line + (b"\n" if ends else b"")
            self._begins = ends

    def _cut(self, text: bytes) -> bytes:
        if self._left is None:
            return text
        text = text[: self._left]
        self._left -= len(text)
        return text


def nanosecond_time(unix_s: float) -> str:
    """RFC 3339 with nine decimals, as the kubelet writes before lines."""
    seconds, nanoseconds = divmod(round(unix_s * 1e9), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"


def pieces(text: bytes, offset: int, marks: Sequence[LogMark]) -> Iterator[tuple[bytes, LogMark]]:
    """Yield the text from ``offset`` on, cut where its marks are."""
    for index, mark in enumerate(marks):
        start = max(mark.offset, offset)
        end = marks[index + 1].offset if index + 1 < len(marks) else offset + len(text)
        if end > start:
            yield text[start - offset : end - offset], mark

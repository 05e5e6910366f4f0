"""The streams of one command or container, as whoever runs it sees its client."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from msgspec import Struct

STDOUT, STDERR = 1, 2
"""The streams that a client reads, by their numbers in every protocol."""

_MOST_UNREAD = 256 * 1024


class TerminalSize(Struct, frozen=True):
    """Characters of a terminal."""

    columns: int
    rows: int


class StreamOptions(Struct, frozen=True):
    """Which streams a client asks for (core/v1 PodExecOptions, PodAttachOptions)."""

    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class StandardStreams(Protocol):
    """The client's end of the streams."""

    @property
    def options(self) -> StreamOptions:
        """Which of them there are."""
        ...

    async def read(self) -> bytes:
        """Return what comes next on standard input; empty at its end."""
        ...

    async def write(self, stream: int, data: bytes) -> None:
        """Send to the client, on ``STDOUT`` or ``STDERR``; what it did not ask for is dropped."""
        ...

    async def resized(self) -> TerminalSize | None:
        """Return the next size of the client's terminal; None when none will follow."""
        ...


class StartRefusedError(Exception):
    """A command could not be started."""


StreamSession = Callable[[StandardStreams], Awaitable[int]]
"""A command or attachment that runs with a client's streams; returns its exit code. Raises StartRefusedError."""


class Inbox:
    """Bytes on their way to a reader: whoever puts in waits while there is too much."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()

    async def put(self, data: bytes) -> None:
        """Add; dropped once it has ended."""
        while self._size >= _MOST_UNREAD and not self._ended:
            await self._change()
        if data and not self._ended:
            self._chunks.append(data)
            self._size += len(data)
            self._changed.set()

    def end(self) -> None:
        """Nothing follows."""
        self._ended = True
        self._changed.set()

    async def get(self) -> bytes:
        """Return the next chunk; empty at the end."""
        while not self._chunks and not self._ended:
            await self._change()
        if not self._chunks:
            return b""
        chunk = self._chunks.popleft()
        self._size -= len(chunk)
        self._changed.set()
        return chunk

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class TerminalSizes:
    """Sizes as JSON documents one after the other, however they are cut (client-go tools/remotecommand/resize.go)."""

    def __init__(self) -> None:
        self._text = ""
        self._sizes: deque[TerminalSize] = deque()
        self._ended = False
        self._changed = asyncio.Event()

    def feed(self, data: bytes) -> None:
        """More of the text; what is no size is left out."""
        self._text += data.decode("utf-8", "replace")
        decoder = json.JSONDecoder()
        while self._text.strip():
            try:
                found, end = decoder.raw_decode(self._text.lstrip())
            except ValueError:
                self._text = self._text[-_LONGEST_SIZE:]
                break
            self._text = self._text.lstrip()[end:]
            size = _size(found)
            if size is not None:
                self._sizes.append(size)
        self._changed.set()

    def end(self) -> None:
        """No size follows."""
        self._ended = True
        self._changed.set()

    async def get(self) -> TerminalSize | None:
        """Return the next one."""
        while not self._sizes and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        return self._sizes.popleft() if self._sizes else None


_LONGEST_SIZE = 1024
_LARGEST = 0xFFFF


def _size(found: Any) -> TerminalSize | None:
    if not isinstance(found, dict):
        return None
    columns, rows = found.get("Width"), found.get("Height")
    if not (isinstance(columns, int) and isinstance(rows, int)):
        return None
    return TerminalSize(columns, rows) if 0 < columns <= _LARGEST and 0 < rows <= _LARGEST else None


def exit_status(code: int) -> Mapping[str, Any]:
    """Return the end of a command as a Status (cri/streaming/remotecommand/exec.go)."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def refusal_status(text: str) -> Mapping[str, Any]:
    """Return a command that could not be started, as a Status."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {text}",
        "reason": "InternalError",
        "details": {"causes": [{"message": text}]},
        "code": 500,
    }


async def outcome_of(session: StreamSession, streams: StandardStreams, what: str) -> Mapping[str, Any]:
    """Run a session; its end as a Status. ``what`` stands before the text of one that did not start."""
    try:
        return exit_status(await session(streams))
    except StartRefusedError as error:
        return refusal_status(f"{what}: {error}")


async def while_reading(reading: Coroutine[Any, Any, None], work: Coroutine[Any, Any, None]) -> None:
    """Do the work for as long as what the client sends is read. What the work raises is raised; a client that goes
    away cancels it."""
    reader, worker = asyncio.create_task(reading), asyncio.create_task(work)
    try:
        await asyncio.wait((reader, worker), return_when=asyncio.FIRST_COMPLETED)
        if worker.done():
            await worker
    finally:
        for task in (reader, worker):
            task.cancel()
        await asyncio.gather(reader, worker, return_exceptions=True)

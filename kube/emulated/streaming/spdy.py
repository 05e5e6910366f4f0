"""The server's end of a SPDY/3.1 connection: the streams that a client opens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from mews.kube.emulated.streaming.spdy_frames import (
    CANCEL,
    FIN,
    GOAWAY,
    PING,
    PROTOCOL_ERROR,
    RST_STREAM,
    SYN_STREAM,
    ControlFrame,
    FrameReader,
    FrameWriter,
    SpdyData,
    SpdyError,
    data_frame,
    goaway_frame,
    ping_frame,
    reset_frame,
)
from mews.kube.emulated.streaming.standard_streams import Inbox

_AT_ONCE = 32 * 1024
_MOST_STREAMS = 1024
"""Open at one time, on one connection."""


class ByteWire(Protocol):
    """What carries the bytes: a connection after its upgrade, or a tunnel in a WebSocket."""

    async def read(self) -> bytes:
        """Return what came; empty at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send in the order of the calls; return when there is room for more.

        Raises ConnectionError.
        """
        ...


class SpdyStream:
    """One stream that the client opened."""

    def __init__(self, connection: SpdyConnection, number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers
        """Names in lower case."""
        self.inbox = Inbox()
        self._connection = connection
        self._closed = False
        self.was_reset = False

    async def read(self) -> bytes:
        """Return what the client sends; empty at its end."""
        return await self.inbox.get()

    async def write(self, data: bytes) -> None:
        """Send to the client; dropped after the end."""
        for start in range(0, len(data), _AT_ONCE):
            if not self._closed:
                await self._connection.send(data_frame(self.number, data[start : start + _AT_ONCE]))

    async def close(self) -> None:
        """Nothing more is sent."""
        if not self._closed:
            self._closed = True
            await self._connection.send(data_frame(self.number, b"", FIN))

    async def reset(self, status: int = CANCEL) -> None:
        """End both directions."""
        self.forget()
        await self._connection.send(reset_frame(self.number, status))

    def forget(self) -> None:
        """It is over on both sides."""
        self._closed = True
        self.inbox.end()
        self._connection.forget(self.number)


class SpdyConnection:
    """Reads frames in ``run`` until the client goes; ``on_stream`` is called for each stream that it opens, and must
    not wait; a text that it returns refuses the stream."""

    def __init__(self, wire: ByteWire, on_stream: Callable[[SpdyStream], str | None]) -> None:
        self._wire = wire
        self._on_stream = on_stream
        self._streams: dict[int, SpdyStream] = {}
        self._reader = FrameReader()
        self._writer = FrameWriter()
        self._sending = asyncio.Lock()
        self._last = 0

    async def send(self, frame: bytes) -> None:
        """Send one frame."""
        async with self._sending:
            await self._wire.write(frame)

    async def run(self) -> None:
        """Until the client hangs up, goes away, or sends what makes no sense."""
        try:
            while data := await self._wire.read():
                for frame in self._reader.feed(data):
                    if isinstance(frame, ControlFrame) and frame.type == GOAWAY:
                        return
                    await self._on_frame(frame)
        except (SpdyError, ConnectionError):
            return
        finally:
            for stream in list(self._streams.values()):
                stream.inbox.end()

    async def _on_frame(self, frame: ControlFrame | SpdyData) -> None:
        stream = self._streams.get(frame.stream)
        if isinstance(frame, SpdyData):
            if stream is None:
                return
            await stream.inbox.put(frame.data)
            if frame.flags & FIN:
                stream.inbox.end()
        elif frame.type == SYN_STREAM:
            await self._open(frame)
        elif frame.type == RST_STREAM and stream is not None:
            stream.was_reset = True
            stream.forget()
        elif frame.type == PING and frame.number % 2:
            await self.send(ping_frame(frame.number))

    async def _open(self, frame: ControlFrame) -> None:
        if frame.stream <= self._last or frame.stream % 2 == 0 or len(self._streams) >= _MOST_STREAMS:
            await self.send(reset_frame(frame.stream, PROTOCOL_ERROR))
            return
        self._last = frame.stream
        stream = self._streams[frame.stream] = SpdyStream(self, frame.stream, frame.headers)
        if frame.flags & FIN:
            stream.inbox.end()
        async with self._sending:
            await self._wire.write(self._writer.reply(frame.stream))
        if self._on_stream(stream) is not None:
            await stream.reset(PROTOCOL_ERROR)

    def forget(self, number: int) -> None:
        """A stream is over."""
        self._streams.pop(number, None)

    async def go_away(self) -> None:
        """Take no further stream."""
        await self.send(goaway_frame(self._last))

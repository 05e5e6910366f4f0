"""A command's streams over SPDY (k8s.io/kubelet pkg/cri/streaming/remotecommand/httpstream.go)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.streaming.spdy import ByteWire, SpdyConnection, SpdyStream
from mews.kube.emulated.streaming.standard_streams import (
    STDOUT,
    StreamOptions,
    StreamSession,
    TerminalSize,
    TerminalSizes,
    outcome_of,
    while_reading,
)

PROTOCOLS = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
"""Over SPDY, the best first; ``channel.k8s.io`` is what a client means that names none."""

_RESIZING = PROTOCOLS[:2]
_CREATION_S = 30.0
"""So long the client may take to open its streams."""


class SpdyStandardStreams:
    """StandardStreams over the streams of one connection."""

    def __init__(self, options: StreamOptions, streams: Mapping[str, SpdyStream]) -> None:
        self.options = options
        self._streams = streams
        self._sizes = TerminalSizes()
        self._resizing = asyncio.ensure_future(self._resize()) if "resize" in streams else None

    async def read(self) -> bytes:
        """Return the stream ``stdin``."""
        stdin = self._streams.get("stdin")
        return b"" if stdin is None else await stdin.read()

    async def write(self, stream: int, data: bytes) -> None:
        """The streams ``stdout`` and ``stderr``."""
        target = self._streams.get("stdout" if stream == STDOUT else "stderr")
        if target is not None:
            await target.write(data)

    async def resized(self) -> TerminalSize | None:
        """Return the stream ``resize``."""
        return None if self._resizing is None else await self._sizes.get()

    async def _resize(self) -> None:
        while data := await self._streams["resize"].read():
            self._sizes.feed(data)
        self._sizes.end()

    def close(self) -> None:
        """Read no more sizes."""
        if self._resizing is not None:
            self._resizing.cancel()


async def serve_spdy_command(
    wire: ByteWire, options: StreamOptions, session: StreamSession, *, protocol: str, what: str
) -> None:
    """Wait for the streams that were asked for, run the session with them, and send how it ended.

    A client that goes away cancels the session.
    """
    wanted = _wanted(options, protocol)
    streams: dict[str, SpdyStream] = {}
    complete = asyncio.Event()

    def opened(stream: SpdyStream) -> str | None:
        kind = stream.headers.get("streamtype", "")
        if kind not in wanted or kind in streams:
            return f"unexpected stream type: {kind!r}"
        streams[kind] = stream
        if len(streams) == len(wanted):
            complete.set()
        return None

    connection = SpdyConnection(wire, opened)
    await while_reading(connection.run(), _serve(options, session, streams, complete, protocol=protocol, what=what))


def _wanted(options: StreamOptions, protocol: str) -> set[str]:
    wanted = {"error"}
    wanted |= {name for name in ("stdin", "stdout", "stderr") if getattr(options, name)}
    if options.tty:
        wanted -= {"stderr"}
        wanted |= {"resize"} if protocol in _RESIZING else set()
    return wanted


async def _serve(
    options: StreamOptions,
    session: StreamSession,
    streams: Mapping[str, SpdyStream],
    complete: asyncio.Event,
    *,
    protocol: str,
    what: str,
) -> None:
    try:
        async with asyncio.timeout(_CREATION_S):
            await complete.wait()
    except TimeoutError:
        return
    ends = SpdyStandardStreams(options, streams)
    try:
        status = await outcome_of(session, ends, what)
    finally:
        ends.close()
    with contextlib.suppress(ConnectionError):
        text = _status_text(status, protocol)
        await streams["error"].write(text)
        for name in ("stdout", "stderr", "error"):
            if name in streams:
                await streams[name].close()


def _status_text(status: Mapping[str, Any], protocol: str) -> bytes:
    if protocol == PROTOCOLS[0]:
        return json.dumps(status, separators=(",", ":")).encode()
    return b"" if status["status"] == "Success" else str(status["message"]).encode()

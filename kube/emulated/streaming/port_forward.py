"""Ports of a pod, forwarded over SPDY or channels of a WebSocket (k8s.io/kubelet pkg/cri/streaming/portforward)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from mews.kube.emulated.streaming.spdy import ByteWire, SpdyConnection, SpdyStream
from mews.kube.emulated.streaming.standard_streams import Inbox
from mews.kube.emulated.streaming.websocket_channels import PLAIN, V4, V4_BASE64, Channels, Messages

PORT_FORWARD = "portforward.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
"""The WebSocket protocol whose messages are the bytes of a SPDY connection."""

CHANNEL_PROTOCOLS = (V4, V4_BASE64, PLAIN)
_CREATION_S = 30.0
_CHUNK = 32 * 1024

Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a port of the pod. Raises OSError with the text for the client."""


class _Client(Protocol):
    """The client's end of one forwarded connection."""

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


async def forward(client: _Client, dial: Dial, port: int, whose: str) -> str:
    """Return one connection through, until both sides have ended. Returns the error for the client, "" for none."""
    try:
        reader, writer = await dial(port)
    except OSError as error:
        return f"error forwarding port {port} to pod {whose}: {error}"
    sending = asyncio.create_task(_to_pod(client, writer))
    try:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                await client.write(data)
            await client.close()
        # As upstream's runtimes: once the pod's side has ended, the rest is not waited for.
        return ""
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _to_pod(client: _Client, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await client.read():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


class SpdyPortForward:
    """One client's connection; each forwarded connection is a pair of streams of one request ID."""

    def __init__(self, wire: ByteWire, dial: Dial, whose: str) -> None:
        self._dial = dial
        self._whose = whose
        self._pairs: dict[str, dict[str, SpdyStream]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._connection = SpdyConnection(wire, self._opened)

    async def run(self) -> None:
        """Until the client goes."""
        try:
            await self._connection.run()
        finally:
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)

    def _opened(self, stream: SpdyStream) -> str | None:
        kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
        if kind not in ("error", "data"):
            return f"invalid stream type {kind!r}"
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 0x10000):
            return f"unable to parse {port!r} as a port"
        request = stream.headers.get("requestid") or str(stream.number - (2 if kind == "data" else 0))
        pair = self._pairs.setdefault(request, {})
        if kind in pair:
            return f"{kind} stream already assigned"
        pair[kind] = stream
        if len(pair) == 2:
            del self._pairs[request]
            self._begin(self._forward(pair["data"], pair["error"], int(port)))
        else:
            self._begin(self._expire(request, stream))
        return None

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _expire(self, request: str, stream: SpdyStream) -> None:
        await asyncio.sleep(_CREATION_S)
        if stream in self._pairs.get(request, {}).values():
            del self._pairs[request]
            with contextlib.suppress(ConnectionError):
                await stream.reset()

    async def _forward(self, data: SpdyStream, error: SpdyStream, port: int) -> None:
        with contextlib.suppress(ConnectionError):
            fault = await forward(data, self._dial, port, self._whose)
            if fault:
                await error.write(fault.encode())
                await error.close()
                await data.reset()
                return
            await data.close()
            await error.close()
        data.forget()
        error.forget()


class _ChannelClient:
    """Channel ``2 n`` of a WebSocket."""

    def __init__(self, channels: Channels, number: int) -> None:
        self.inbox = Inbox()
        self._channels = channels
        self._number = number

    async def read(self) -> bytes:
        return await self.inbox.get()

    async def write(self, data: bytes) -> None:
        await self._channels.send(self._number, data)

    async def close(self) -> None:
        """A channel cannot be closed by itself."""


async def serve_channel_ports(messages: Messages, dial: Dial, ports: Sequence[int], whose: str) -> None:
    """Forward each port once: channel 2 n carries the nth one's data, 2 n + 1 its error; both begin with the port's
    number in two bytes."""
    channels = Channels(messages)
    clients = [_ChannelClient(channels, 2 * index) for index in range(len(ports))]
    for index, port in enumerate(ports):
        for channel in (2 * index, 2 * index + 1):
            await channels.send(channel, port.to_bytes(2, "little"))

    async def one(index: int) -> None:
        with contextlib.suppress(ConnectionError):
            fault = await forward(clients[index], dial, ports[index], whose)
            if fault:
                await channels.send(2 * index + 1, fault.encode())

    async def receive() -> None:
        while (received := await channels.receive()) is not None:
            number, data = received
            if number % 2 == 0 and number // 2 < len(clients):
                await clients[number // 2].inbox.put(data)
        for client in clients:
            client.inbox.end()

    reading = asyncio.create_task(receive())
    work = asyncio.gather(*(one(index) for index in range(len(ports))))
    try:
        await asyncio.wait((reading, work), return_when=asyncio.FIRST_COMPLETED)
    finally:
        reading.cancel()
        work.cancel()
        await asyncio.gather(reading, work, return_exceptions=True)

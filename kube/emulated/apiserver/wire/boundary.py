"""What every HTTP server of the embedded Kubernetes has before its handlers: framing, sizes, half-closed connections.

As Go's net/http does it: a client that has shut down its sending side after a request still gets the answer, while a
stream (watch, followed log, command) ends there, as its context is cancelled; a Content-Encoding of a request is not
looked at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = logging.getLogger(__name__)
log.addFilter(lambda record: record.levelno < logging.ERROR)
"""What is no HTTP is answered with 400; it is the client's fault, and nothing to log a traceback for."""

LONGEST_HEADER = 1 << 20
"""Bytes; net/http's default."""


_CUT = "unexpected EOF"


class BodyError(ValueError):
    """A body cannot be read."""


class _Connection(RequestHandler):
    __slots__ = ("asked", "half_closed", "streams", "tunnel")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked = False
        self.half_closed = False
        self.streams = False
        self.tunnel: Tunnel | None = None

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        if self.tunnel is not None:
            self.tunnel.feed(data)
            return
        super().data_received(data)
        self.asked = self.asked or bool(self._messages)

    def connection_lost(self, error: BaseException | None) -> None:
        """The client has gone."""
        if self.tunnel is not None:
            self.tunnel.end()
        super().connection_lost(error)

    async def room(self) -> None:
        """Return once there is room for more to send.

        Raises ConnectionError.
        """
        await self._drain_helper()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client will send no more. True keeps the connection for the answer."""
        self.half_closed = True
        # Between two requests the connection's loop waits; while one is on its way it does not.
        busy = self.asked and (self._waiter is None or self._waiter.done())
        if not busy or self.streams or self.transport is None or self.transport.get_extra_info("sslcontext"):
            return None
        if self._current_request is not None and not self._current_request.content.is_eof():
            self._current_request.content.set_exception(BodyError(_CUT))
        self.close()
        return True


_MOST_UNREAD = 256 * 1024


class Tunnel:
    """A connection that no longer speaks HTTP: the bytes of both sides as they are."""

    def __init__(self, connection: _Connection, transport: asyncio.Transport) -> None:
        self._connection = connection
        self._transport = transport
        self._unread = bytearray()
        self._ended = False
        self._changed = asyncio.Event()

    def feed(self, data: bytes) -> None:
        """Bytes of the client."""
        self._unread += data
        if len(self._unread) > _MOST_UNREAD:
            self._transport.pause_reading()
        self._changed.set()

    def end(self) -> None:
        """The client has gone."""
        self._ended = True
        self._changed.set()

    async def read(self) -> bytes:
        """What came; empty at the end."""
        while not self._unread and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._unread)
        self._unread.clear()
        if not self._ended and not self._transport.is_reading():
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Send.

        Raises ConnectionError.
        """
        if self._transport.is_closing():
            raise ConnectionResetError("the client has gone")
        self._transport.write(data)
        await self._connection.room()


async def open_tunnel(request: web.BaseRequest, headers: Mapping[str, str]) -> tuple[Tunnel, web.StreamResponse]:
    """Switch protocols with these headers. The response is what the handler returns at the end; then the connection
    closes."""
    connection, transport = request.protocol, request.transport
    assert isinstance(connection, _Connection)
    if transport is None or connection.half_closed:
        raise ConnectionResetError("the client has gone")
    assert isinstance(transport, asyncio.Transport)
    connection.tunnel = Tunnel(connection, transport)
    response = web.StreamResponse(status=101, headers=headers)
    response.force_close()
    await response.prepare(request)
    return connection.tunnel, response


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


def guarded_server(handle: Any) -> web.Server:
    """aiohttp's low-level server with this boundary, for that handler."""
    return _Server(
        handle,
        handler_cancellation=True,
        access_log=None,
        logger=log,
        max_line_size=LONGEST_HEADER,
        max_field_size=LONGEST_HEADER,
        auto_decompress=False,
    )


def begin_stream(request: web.BaseRequest) -> None:
    """This answer has no end of its own: it ends once the client sends no more.

    Raises ConnectionResetError where the client has said so already.
    """
    connection = request.protocol
    assert isinstance(connection, _Connection)
    connection.streams = True
    if connection.half_closed:
        connection.force_close()
        raise ConnectionResetError("the client has gone")


async def read_at_most(request: web.BaseRequest, limit: int) -> bytes | None:
    """The raw body; None where it is over the limit.

    Raises BodyError where its framing makes no sense or it ends too early.
    """
    found, connection = bytearray(), request.protocol
    assert isinstance(connection, _Connection)
    try:
        while not request.content.at_eof():
            if connection.half_closed and not request.content.total_bytes > len(found) and not request.content.is_eof():
                raise BodyError(_CUT)
            found += await request.content.readany()
            if len(found) > limit:
                return None
    except (web.RequestPayloadError, asyncio.IncompleteReadError, ValueError) as error:
        raise BodyError(" ".join(str(error).split())) from error
    return bytes(found)

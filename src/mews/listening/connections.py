"""Connections of the HTTP listeners on a loop: framing, sizes, time limits, half-closed connections.

As Go's net/http does it: a client that has shut down its sending side after a request still gets the answer, while a
stream (watch, followed log, command) ends there, as its context is cancelled; a Content-Encoding of a request is not
looked at; a head that has not come in time ends its connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from mews.listening.limits import BODIES_IN_FLIGHT, BODY_S, HEAD_S, IDLE_S, LINGER_S, LONGEST_HEADER

log = logging.getLogger(__name__)
log.addFilter(lambda record: record.levelno < logging.ERROR)
"""What is no HTTP is answered with 400; it is the client's fault, and nothing to log a traceback for."""

_CUT = "unexpected EOF"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class BodyError(ValueError):
    """A body cannot be read."""


class TooLargeError(BodyError):
    """A body has more bytes than the face takes."""


class BusyError(BodyError):
    """The bodies of other requests leave no room for this one."""


class Bodies:
    """How many bytes of bodies a listener holds at this moment."""

    def __init__(self, most: int = BODIES_IN_FLIGHT) -> None:
        self._most = most
        self._held = 0

    def hold(self, size: int) -> None:
        """Count bytes until they are given back.

        Raises BusyError where there is no room.
        """
        if self._held + size > self._most:
            raise BusyError("the server is holding too many requests; try again later")
        self._held += size

    def give_back(self, size: int) -> None:
        """They are no longer needed."""
        self._held -= size


class _Connection(RequestHandler):
    __slots__ = ("asked", "bodies", "busy", "half_closed", "head_due", "held", "streams", "tunnel")

    def __init__(self, *args: Any, bodies: Bodies, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked = False
        self.bodies = bodies
        self.busy = False
        self.half_closed = False
        self.head_due: asyncio.TimerHandle | None = None
        self.held = 0
        self.streams = False
        self.tunnel: Tunnel | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        if self.tunnel is not None:
            self.tunnel.feed(data)
            return
        known = self._request_count
        super().data_received(data)
        self.asked = self.asked or bool(self._messages)
        if self._request_count != known:
            self.busy = True
            self._stop_waiting()
        elif self.head_due is None and not self.busy and not self._messages:
            self._await_head()

    def _await_head(self) -> None:
        self.head_due = self._loop.call_later(HEAD_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self.head_due is not None:
            self.head_due.cancel()
            self.head_due = None

    def _give_up(self) -> None:
        """Its head has not come: what holds a connection without asking anything is let go."""
        self.head_due = None
        if self.transport is not None:
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(_TOO_SLOW)
            self.force_close()

    def connection_lost(self, error: BaseException | None) -> None:
        """The client has gone."""
        self._stop_waiting()
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
        """Return what came; empty at the end."""
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
    def __init__(self, handler: Any, **options: Any) -> None:
        super().__init__(handler, **options)
        self._bodies = Bodies()

    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, bodies=self._bodies, **self._kwargs)


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
        keepalive_timeout=IDLE_S,
        lingering_time=LINGER_S,
    )


def let_go(request: web.BaseRequest) -> None:
    """The request is answered: its body counts no longer."""
    connection = request.protocol
    assert isinstance(connection, _Connection)
    connection.bodies.give_back(connection.held)
    connection.held = 0
    connection.busy = not request.content.is_eof()  # what is left of its body is no head


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
    """Return the raw body; None where it is over the limit.

    Raises BodyError where its framing makes no sense, it ends too early or does not come in time, BusyError.
    """
    if (request.content_length or 0) > limit:
        return None
    try:
        async with asyncio.timeout(BODY_S):
            return await _read(request, limit)
    except TimeoutError:
        raise BodyError(f"the body did not come within {BODY_S:g} s") from None
    except (web.RequestPayloadError, asyncio.IncompleteReadError, ValueError) as error:
        if isinstance(error, BodyError):
            raise
        raise BodyError(" ".join(str(error).split())) from error


async def whole_body(request: web.BaseRequest, limit: int) -> bytes:
    """Return the raw body.

    Raises TooLargeError where it is over the limit, and as ``read_at_most``.
    """
    body = await read_at_most(request, limit)
    if body is None:
        raise TooLargeError(f"the body is too large: {limit} bytes are allowed")
    return body


async def _read(request: web.BaseRequest, limit: int) -> bytes | None:
    found, connection = bytearray(), request.protocol
    assert isinstance(connection, _Connection)
    while not request.content.at_eof():
        if connection.half_closed and not request.content.total_bytes > len(found) and not request.content.is_eof():
            raise BodyError(_CUT)
        more = await request.content.readany()
        connection.bodies.hold(len(more))
        connection.held += len(more)
        found += more
        if len(found) > limit:
            return None
    return bytes(found)

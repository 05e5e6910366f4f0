"""Requests that become streams: commands, attachments and forwarded ports, over SPDY/3.1 or a WebSocket.

The API server serves them with it, and the kubelets' own servers, which the real API server asks.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping

from aiohttp import WSMsgType, web

from mews.kube.api.errors import ApiError, BadRequestError
from mews.kube.emulated.streaming import port_forward, remote_command, websocket_channels
from mews.kube.emulated.streaming.port_forward import Dial, SpdyPortForward, serve_channel_ports
from mews.kube.emulated.streaming.remote_command import serve_spdy_command
from mews.kube.emulated.streaming.standard_streams import StreamOptions, StreamSession
from mews.kube.emulated.streaming.websocket_channels import serve_channel_command
from mews.listening.connections import open_tunnel

_SPDY = "SPDY/3.1"
_WANTED = "X-Stream-Protocol-Version"
COMMAND, ATTACHMENT = "error executing command in container", "error attaching to container"
"""What upstream writes before the text of a session that does not start."""

_READ_IN_BASE64 = "base64.binary.k8s.io"
_READ_PROTOCOLS = ("binary.k8s.io", _READ_IN_BASE64)
_TRUE = ("1", "true")


_OF_THE_API = ("stdin", "stdout", "stderr", "tty")
OF_THE_KUBELET = ("input", "output", "error", "tty")
"""The parameters by which the kubelet's own API names the streams."""


def stream_options(query: Mapping[str, str], names: tuple[str, ...] = _OF_THE_API) -> StreamOptions:
    """Return the streams that a request asks for.

    Raises BadRequestError for none.
    """
    stdin, stdout, stderr, tty = (query.get(name, "").lower() in _TRUE for name in names)
    if not (stdin or stdout or stderr):
        raise BadRequestError("you must specify at least 1 of stdin, stdout, stderr")
    return StreamOptions(stdin, stdout, stderr and not tty, tty)


def wants_upgrade(request: web.BaseRequest) -> bool:
    """Return whether the request asks for another protocol."""
    return wants_websocket(request) or _spdy(request)


async def serve_command(
    request: web.BaseRequest, session: StreamSession, options: StreamOptions, what: str
) -> web.StreamResponse:
    """Return a session with the client's streams, over what the request asks for.

    Raises BadRequestError for another protocol.
    """
    if wants_websocket(request):
        socket = await open_websocket(request, websocket_channels.COMMAND_PROTOCOLS)
        await serve_channel_command(SocketMessages(socket), options, session, what)
        await socket.close()
        return socket
    protocol = _agreed(request, remote_command.PROTOCOLS)
    tunnel, response = await open_tunnel(request, _switch(protocol))
    await serve_spdy_command(tunnel, options, session, protocol=protocol or remote_command.PROTOCOLS[-1], what=what)
    return response


async def serve_ports(request: web.BaseRequest, dial: Dial, whose: str) -> web.StreamResponse:
    """Return the ports of a pod, over what the request asks for; ``whose`` names the pod to the client.

    Raises BadRequestError for another protocol, and for ports that are none.
    """
    if wants_websocket(request):
        asked = [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        tunnelled = port_forward.TUNNEL in asked
        ports = [] if tunnelled else _ports(request)
        socket = await open_websocket(request, (port_forward.TUNNEL,) if tunnelled else port_forward.CHANNEL_PROTOCOLS)
        if tunnelled:
            await SpdyPortForward(_SocketWire(socket), dial, whose).run()
        else:
            await serve_channel_ports(SocketMessages(socket), dial, ports, whose)
        await socket.close()
        return socket
    protocol = _agreed(request, (port_forward.PORT_FORWARD,))
    tunnel, response = await open_tunnel(request, _switch(protocol))
    await SpdyPortForward(tunnel, dial, whose).run()
    return response


def wants_websocket(request: web.BaseRequest) -> bool:
    """Return whether the request asks for a WebSocket."""
    return request.method == "GET" and request.headers.get("Upgrade", "").lower() == "websocket"


def _spdy(request: web.BaseRequest) -> bool:
    upgrades = "upgrade" in request.headers.get("Connection", "").lower()
    return upgrades and request.headers.get("Upgrade", "").lower() == _SPDY.lower()


def _agreed(request: web.BaseRequest, known: tuple[str, ...]) -> str:
    """Return the protocol of the streams: the client's first that is known; "" where it names none."""
    if not _spdy(request):
        raise BadRequestError("unable to upgrade: missing upgrade headers in request")
    asked = [word.strip() for line in request.headers.getall(_WANTED, ()) for word in line.split(",") if word.strip()]
    if not asked:
        return ""
    found = next((word for word in asked if word in known), None)
    if found is None:
        text = f"unable to negotiate protocol: client supports [{' '.join(asked)}], server accepts [{' '.join(known)}]"
        raise ApiError(text, code=403, reason="Forbidden")
    return found


def _switch(protocol: str) -> dict[str, str]:
    switched = {"Connection": "Upgrade", "Upgrade": _SPDY}
    return switched | ({_WANTED: protocol} if protocol else {})


def _ports(request: web.BaseRequest) -> list[int]:
    found: list[int] = []
    words = [
        word for value in request.query.getall("ports", request.query.getall("port", [])) for word in value.split(",")
    ]
    if not words:
        raise BadRequestError('query parameter "port" is required')
    for word in words:
        if not (word.isascii() and word.isdigit() and 0 < int(word) < 0x10000):
            raise BadRequestError(f'unable to parse "{word}" as a port')
        found.append(int(word))
    return found


async def send_messages(request: web.BaseRequest, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    """Return what is read alone, as messages (k8s.io/streaming wsstream Reader): an empty one first, then each
    chunk."""
    first = await anext(chunks, None)  # a refusal before it is an answer, not a socket
    socket = await open_websocket(request, _READ_PROTOCOLS)
    encoded = socket.ws_protocol == _READ_IN_BASE64
    leaving = asyncio.create_task(_until_left(socket))
    try:
        await _send_chunk(socket, b"", encoded=encoded)
        if first is not None:
            await _send_chunk(socket, first, encoded=encoded)
        while not leaving.done():
            coming = asyncio.ensure_future(anext(chunks, None))
            await asyncio.wait((coming, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
                break
            chunk = coming.result()
            if chunk is None:
                break
            await _send_chunk(socket, chunk, encoded=encoded)
    except ConnectionError:
        pass  # the reader has gone away
    finally:
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    await socket.close()
    return socket


async def _until_left(socket: web.WebSocketResponse) -> None:
    """What a reader writes is ignored; that it closes is not."""
    while (await socket.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
        pass


async def _send_chunk(socket: web.WebSocketResponse, chunk: bytes, *, encoded: bool) -> None:
    await (socket.send_str(base64.b64encode(chunk).decode()) if encoded else socket.send_bytes(chunk))


async def open_websocket(request: web.BaseRequest, protocols: tuple[str, ...]) -> web.WebSocketResponse:
    """Return the WebSocket that a request asks for.

    Raises BadRequestError for a key that is none.
    """
    if not request.headers.get("Sec-WebSocket-Key", "").isascii():  # aiohttp raises what is no answer
        raise BadRequestError("malformed Sec-WebSocket-Key")
    socket = web.WebSocketResponse(protocols=protocols, compress=False)
    await socket.prepare(request)
    return socket


class SocketMessages:
    """Messages of a WebSocket that aiohttp serves."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    @property
    def protocol(self) -> str:
        """What was agreed on."""
        return self._socket.ws_protocol or ""

    async def receive(self) -> bytes | None:
        """Return the next message; None at the end."""
        message = await self._socket.receive()
        if message.type is WSMsgType.BINARY:
            return bytes(message.data)
        if message.type is WSMsgType.TEXT:
            return str(message.data).encode()
        return None

    async def send(self, data: bytes, *, text: bool = False) -> None:
        """Send one message."""
        if self._socket.closed:
            raise ConnectionResetError("the client has gone")
        await (self._socket.send_str(data.decode()) if text else self._socket.send_bytes(data))


class _SocketWire:
    """The bytes of a SPDY connection in the messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._messages = SocketMessages(socket)

    async def read(self) -> bytes:
        while (message := await self._messages.receive()) is not None:
            if message:
                return message
        return b""

    async def write(self, data: bytes) -> None:
        await self._messages.send(data)

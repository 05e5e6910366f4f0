"""A command's streams as channels of one WebSocket (k8s.io/apimachinery pkg/util/httpstream/wsstream; v5 from client-go
tools/remotecommand/websocket.go)."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from typing import Protocol

from mews.kube.emulated.streaming.standard_streams import (
    STDERR,
    STDOUT,
    Inbox,
    StreamOptions,
    StreamSession,
    TerminalSize,
    TerminalSizes,
    outcome_of,
    while_reading,
)

V5, V4, V4_BASE64 = "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"
PLAIN, PLAIN_BASE64 = "channel.k8s.io", "base64.channel.k8s.io"
COMMAND_PROTOCOLS = (V5, V4, V4_BASE64, PLAIN, PLAIN_BASE64)
_IN_BASE64 = (V4_BASE64, PLAIN_BASE64)
_STDIN, _ERROR, _RESIZE = 0, 3, 4
_CLOSE = 255
"""In v5, a message on this channel closes the one that it names."""

_DIGITS = ord("0")


class Messages(Protocol):
    """A WebSocket that was opened."""

    @property
    def protocol(self) -> str:
        """What was agreed on; "" for nothing."""
        ...

    async def receive(self) -> bytes | None:
        """Return the next message, text in UTF-8; None when there is none any more."""
        ...

    async def send(self, data: bytes, *, text: bool = False) -> None:
        """Send one message.

        Raises ConnectionError.
        """
        ...


class Channels:
    """Numbered channels in the form that was agreed on."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._base64 = messages.protocol in _IN_BASE64
        self.closes = messages.protocol == V5

    async def receive(self) -> tuple[int, bytes] | None:
        """Channel and bytes of the next message that is one."""
        while (message := await self._messages.receive()) is not None:
            if not message:
                continue
            if not self._base64:
                return message[0], message[1:]
            with contextlib.suppress(binascii.Error):
                return message[0] - _DIGITS, base64.b64decode(message[1:], validate=True)
        return None

    async def send(self, channel: int, data: bytes) -> None:
        """One message."""
        if self._base64:
            await self._messages.send(bytes([_DIGITS + channel]) + base64.b64encode(data), text=True)
        else:
            await self._messages.send(bytes([channel]) + data)


class ChannelStandardStreams:
    """StandardStreams over channels 0 (standard input), 1, 2 (output) and 4 (sizes)."""

    def __init__(self, channels: Channels, options: StreamOptions) -> None:
        self.options = options
        self._channels = channels
        self._stdin = Inbox()
        self._sizes = TerminalSizes()
        if not options.stdin:
            self._stdin.end()

    async def run(self) -> None:
        """Take what the client sends, until it is gone."""
        try:
            while (received := await self._channels.receive()) is not None:
                channel, data = received
                if channel == _STDIN:
                    await self._stdin.put(data)
                elif channel == _RESIZE:
                    self._sizes.feed(data)
                elif channel == _CLOSE and self._channels.closes and data[:1] == bytes([_STDIN]):
                    self._stdin.end()
        finally:
            self._stdin.end()
            self._sizes.end()

    async def read(self) -> bytes:
        """Channel 0."""
        return await self._stdin.get()

    async def write(self, stream: int, data: bytes) -> None:
        """Channels 1 and 2."""
        asked = self.options.stdout if stream == STDOUT else self.options.stderr and not self.options.tty
        if asked and data:
            await self._channels.send(stream, data)

    async def resized(self) -> TerminalSize | None:
        """Channel 4."""
        return await self._sizes.get() if self.options.tty else None


async def serve_channel_command(messages: Messages, options: StreamOptions, session: StreamSession, what: str) -> None:
    """Run the session with the client's channels, and send how it ended on channel 3.

    A client that goes away cancels the session.
    """
    channels = Channels(messages)
    streams = ChannelStandardStreams(channels, options)
    first = STDOUT if options.stdout else STDERR if options.stderr else _ERROR
    with contextlib.suppress(ConnectionError):
        await channels.send(first, b"")  # upstream's sign that the connection is there
    await while_reading(
        streams.run(), _serve(channels, streams, session, json_status=_has_json(messages.protocol), what=what)
    )


def _has_json(protocol: str) -> bool:
    return protocol in (V5, V4, V4_BASE64)


async def _serve(
    channels: Channels, streams: ChannelStandardStreams, session: StreamSession, *, json_status: bool, what: str
) -> None:
    status = await outcome_of(session, streams, what)
    with contextlib.suppress(ConnectionError):
        if json_status:
            await channels.send(_ERROR, json.dumps(status, separators=(",", ":")).encode())
        elif status["status"] != "Success":
            await channels.send(_ERROR, str(status["message"]).encode())

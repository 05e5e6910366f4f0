"""The sockets of HTTP sessions, known until they are closed. Not for virtual runs: imports aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import aiohttp

from mews.kube.clock import rest

_PATIENCE_S = 2.0
_LOOK_S = 0.01


_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A watch may be silent for long: one whose server has vanished, or whose way there forgot it, breaks after a minute
instead of never (tcp(7); seconds, seconds, times)."""


class Sockets:
    """What sessions with these connectors have open. TLS says goodbye in the background, after a stream was left and
    even after its session was closed, and waits for an answer: a loop that ends before loses the socket."""

    def __init__(self) -> None:
        self._opened: WeakSet[socket.socket] = WeakSet()

    def connector(
        self, ssl_context: ssl.SSLContext | None, limit: int = 100, *, path: str = ""
    ) -> aiohttp.BaseConnector:
        """Return a connector whose sockets are known; ``limit`` 0 is none. ``path`` is that of a unix socket, behind
        which the server speaks without TLS: its folder says who may."""
        if path:
            return aiohttp.UnixConnector(path, limit=limit)
        return aiohttp.TCPConnector(
            limit=limit, ssl=ssl_context if ssl_context is not None else True, socket_factory=self._open
        )

    def _open(self, address: Sequence[Any]) -> socket.socket:
        family, kind, proto = address[:3]
        made = socket.socket(family, kind, proto)
        _keep_alive(made)
        self._opened.add(made)
        return made

    async def closed(self) -> None:
        """Return once all are closed, after their sessions were; or after a while. Nobody waits for an answer to the
        goodbye: who is in the middle of a stream does not read, and says nothing for as long as nothing happens."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _PATIENCE_S
        await asyncio.sleep(0)
        while (left := [each for each in self._opened if each.fileno() >= 0]) and loop.time() < deadline_s:
            for each in left:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            await rest(_LOOK_S)


def _keep_alive(made: socket.socket) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE.items():
        if hasattr(socket, name):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

"""Servers of bytes on a loop: no HTTP, no browser can speak to them. Wall clock only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mews.listening.exhaustion import name_exhaustion
from mews.listening.limits import MOST_THREADS

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def serve_streams(talk: Talk, host: str, port: int, *, most: int = MOST_THREADS) -> asyncio.Server:
    """Listen; each connection is a ``talk``, of which there are ``most`` at once: others are closed unheard.

    Raises OSError where the port is taken.
    """
    talking = 0

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal talking
        if talking >= most:
            writer.close()
            return
        talking += 1
        try:
            await talk(reader, writer)
        finally:
            talking -= 1

    name_exhaustion(asyncio.get_running_loop())
    return await asyncio.start_server(one, host, port)

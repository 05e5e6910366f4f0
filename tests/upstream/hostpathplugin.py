#!/usr/bin/env python3
"""In the place of csi-driver-host-path's proxy mode, in which upstream's DRA specs run it in their driver pods.

``/hostpathplugin --endpoint=SOCKET --proxy-endpoint=tcp://:PORT``: whoever connects to the unix socket is joined to
whoever connects to the port (csi-driver-host-path v1.7.3, internal/proxy). The driver itself is in the suite, which
reaches the port by port-forward. Pods share this machine's ports, so it listens at an address of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def options(words: list[str]) -> dict[str, str]:
    """Name -> value of ``--NAME=VALUE``."""
    return dict(word.lstrip("-").partition("=")[::2] for word in words)


async def joined(one: Stream, other: Stream) -> None:
    """Pass on what each of two sides sends until one of them is gone."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    copies = [asyncio.create_task(copy(one[0], other[1])), asyncio.create_task(copy(other[0], one[1]))]
    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    for task in copies:
        task.cancel()
    await asyncio.gather(*copies, return_exceptions=True)
    for _, writer in (one, other):
        writer.close()


async def serve(endpoint: str, port: int) -> None:
    """Until it is ended. A connection to the port waits for one to the socket."""
    waiting: asyncio.Queue[Stream] = asyncio.Queue()
    joining: set[asyncio.Task[None]] = set()

    async def from_port(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await waiting.put((reader, writer))

    async def from_socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other = await waiting.get()
        while other[0].at_eof():
            other = await waiting.get()
        task = asyncio.ensure_future(joined((reader, writer), other))
        joining.add(task)
        task.add_done_callback(joining.discard)

    with contextlib.suppress(FileNotFoundError):
        os.unlink(endpoint)
    address = f"127.78.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
    await asyncio.start_server(from_port, address, port)
    await asyncio.start_unix_server(from_socket, endpoint)
    await asyncio.Event().wait()


if __name__ == "__main__":
    given = options(sys.argv[1:])
    asyncio.run(serve(given["endpoint"], int(given["proxy-endpoint"].rpartition(":")[2])))

"""Connections to standard streams, as the engine frames them."""

from __future__ import annotations

import asyncio
import socket
import struct

from mews.kube.emulated.kubelet.engine.stream import EngineStream


def frame(stream: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(data)) + data


def test_frames_are_told_apart_however_they_are_cut() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        whole = frame(1, b"out") + frame(2, b"err") + frame(1, b"") + frame(1, b"more")
        stream = EngineStream(ours, early=whole[:5])
        theirs.setblocking(False)
        loop, found = asyncio.get_running_loop(), []

        async def send() -> None:
            for byte in whole[5:]:
                await loop.sock_sendall(theirs, bytes([byte]))
                await asyncio.sleep(0)
            theirs.close()

        sending = asyncio.create_task(send())
        found = [each async for each in stream.frames(tty=False)]
        await sending
        stream.close()
        assert found == [(1, b"out"), (2, b"err"), (1, b""), (1, b"more")]

    asyncio.run(main())


def test_a_terminal_has_one_stream_without_frames() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        stream = EngineStream(ours, early=b"early ")
        theirs.sendall(b"late")
        theirs.close()
        found = b"".join([data async for _, data in stream.frames(tty=True)])
        stream.close()
        assert found == b"early late"

    asyncio.run(main())


def test_standard_input_ends_and_output_goes_on() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        stream = EngineStream(ours)
        await stream.write(b"question")
        stream.end_input()
        assert theirs.recv(100) + theirs.recv(100) == b"question"
        theirs.sendall(b"answer")
        assert await stream.read() == b"answer"
        theirs.close()
        assert await stream.read() == b""
        stream.close()
        assert await stream.read() == b""

    asyncio.run(main())

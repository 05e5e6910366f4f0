"""SPDY/3.1 frames, and what a connection makes of them."""

from __future__ import annotations

import asyncio
import os
import random
import zlib

import pytest

from mews.kube.emulated.streaming.remote_command import serve_spdy_command
from mews.kube.emulated.streaming.spdy_frames import (
    DICTIONARY,
    FIN,
    PING,
    RST_STREAM,
    SYN_REPLY,
    ControlFrame,
    FrameReader,
    FrameWriter,
    SpdyData,
    SpdyError,
    data_frame,
    ping_frame,
)
from mews.kube.emulated.streaming.standard_streams import (
    STDOUT,
    StandardStreams,
    StreamOptions,
    TerminalSize,
    TerminalSizes,
)


def test_the_dictionary_is_the_draft_s() -> None:
    # The checksum that zlib writes for it into the first frame of every client (moby/spdystream's, too).
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_frames_survive_any_cut() -> None:
    writer, chance = FrameWriter(), random.Random(7)
    text = writer.open(1, {"streamType": "error"}) + writer.open(3, {"streamType": "stdin", "port": "80"}, FIN)
    text += data_frame(3, b"x" * 1000, FIN) + ping_frame(1)
    for _ in range(50):
        reader, found, at = FrameReader(), [], 0
        while at < len(text):
            step = chance.randint(1, 40)
            found += reader.feed(text[at : at + step])
            at += step
        assert [type(frame) for frame in found] == [ControlFrame, ControlFrame, SpdyData, ControlFrame]
        assert found[1].headers == {"streamtype": "stdin", "port": "80"}
        assert (found[2].data, found[2].flags, found[3].type) == (b"x" * 1000, FIN, PING)


@pytest.mark.parametrize(
    "bad",
    [
        b"\x80\x02\x00\x01\x00\x00\x00\x0a" + b"\0" * 10,  # version 2
        b"\x80\x03\x00\x01\x00\xff\xff\xff",  # a control frame of 16 MB
        b"\x80\x03\x00\x01\x00\x00\x00\x02\0\0",  # a stream without a number
        b"\x80\x03\x00\x01\x00\x00\x00\x0c" + b"\0" * 10 + b"no",  # headers that are not packed
    ],
)
def test_what_is_no_spdy_is_refused(bad: bytes) -> None:
    with pytest.raises(SpdyError):
        list(FrameReader().feed(bad))


def test_bytes_of_chance_end_in_frames_or_an_error() -> None:
    chance = random.Random(3)
    for _ in range(500):
        head = b"\x80\x03\x00" + bytes([chance.randint(1, 9)]) if chance.random() < 0.7 else b""
        try:
            list(FrameReader().feed(head + chance.randbytes(chance.randint(0, 200))))
        except SpdyError:
            continue


class _Wire:
    """The client's bytes in, the server's out."""

    def __init__(self, sent: bytes) -> None:
        self._sent = sent
        self.frames: list[ControlFrame | SpdyData] = []
        self._reader = FrameReader()
        self.gone = asyncio.Event()

    async def read(self) -> bytes:
        if self._sent:
            sent, self._sent = self._sent, b""
            return sent
        await self.gone.wait()
        return b""

    async def write(self, data: bytes) -> None:
        self.frames += self._reader.feed(data)


async def _served(wire: _Wire, options: StreamOptions, session: object, protocol: str = "v4.channel.k8s.io") -> None:
    await serve_spdy_command(wire, options, session, protocol=protocol, what="error")  # type: ignore[arg-type]


def test_a_command_gets_its_input_and_tells_its_end() -> None:
    writer = FrameWriter()
    sent = b"".join(writer.open(n, {"streamType": kind}) for n, kind in ((1, "error"), (3, "stdin"), (5, "stdout")))
    wire = None

    async def echo(streams: StandardStreams) -> int:
        while data := await streams.read():
            await streams.write(STDOUT, data.upper())
        return 3

    async def main() -> None:
        nonlocal wire
        wire = _Wire(sent + data_frame(3, b"hello ") + data_frame(3, b"world", FIN))
        await _served(wire, StreamOptions(stdin=True, stderr=False), echo)

    asyncio.run(main())
    assert wire is not None
    replies = [frame for frame in wire.frames if isinstance(frame, ControlFrame)]
    assert [(frame.type, frame.stream) for frame in replies] == [(SYN_REPLY, 1), (SYN_REPLY, 3), (SYN_REPLY, 5)]
    output = b"".join(f.data for f in wire.frames if isinstance(f, SpdyData) and f.stream == 5)
    status = b"".join(f.data for f in wire.frames if isinstance(f, SpdyData) and f.stream == 1)
    assert output == b"HELLO WORLD"
    assert b'"reason":"NonZeroExitCode"' in status and b'"message":"3"' in status


def test_a_client_that_goes_ends_its_command() -> None:
    writer, cancelled = FrameWriter(), []

    async def forever(streams: StandardStreams) -> int:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return 0

    async def main() -> None:
        wire = _Wire(writer.open(1, {"streamType": "error"}) + writer.open(3, {"streamType": "stdout"}))
        asyncio.get_running_loop().call_later(0.05, wire.gone.set)
        await _served(wire, StreamOptions(stderr=False), forever)

    asyncio.run(main())
    assert cancelled == [True]


def test_streams_that_were_not_asked_for_are_refused() -> None:
    writer = FrameWriter()
    sent = writer.open(1, {"streamType": "stdin"}) + writer.open(3, {"streamType": "error"})
    sent += writer.open(5, {"streamType": "stdout"})

    async def nothing(streams: StandardStreams) -> int:
        return 0

    async def main() -> list[ControlFrame | SpdyData]:
        wire = _Wire(sent)
        await _served(wire, StreamOptions(stderr=False), nothing)
        return wire.frames

    frames = asyncio.run(main())
    assert [f.stream for f in frames if isinstance(f, ControlFrame) and f.type == RST_STREAM] == [1]


def test_sizes_are_read_however_they_are_cut() -> None:
    async def main() -> list[TerminalSize | None]:
        sizes = TerminalSizes()
        for piece in (b'{"Width":80,', b'"Height":24}\n{"Width":', b'100,"Height":30}{"Width":0,"Height":1}[1]'):
            sizes.feed(piece)
        sizes.end()
        return [await sizes.get() for _ in range(3)]

    assert asyncio.run(main()) == [TerminalSize(80, 24), TerminalSize(100, 30), None]


def test_a_reader_that_is_slow_holds_the_sender_up() -> None:
    from mews.kube.emulated.streaming.standard_streams import Inbox

    async def main() -> int:
        inbox, put = Inbox(), 0

        async def fill() -> None:
            nonlocal put
            for _ in range(100):
                await inbox.put(os.urandom(64 * 1024))
                put += 1

        task = asyncio.create_task(fill())
        await asyncio.sleep(0.02)
        held = put
        while put < 100:
            await inbox.get()
        await task
        return held

    assert asyncio.run(main()) <= 5

"""What a client leaves open on its loop: nothing."""

import asyncio
import socket
import ssl
import threading
from pathlib import Path

import pytest

from mews.emulator.tls import made
from mews.kube.api.resources import PODS
from mews.kube.client.http import HttpKube

pytestmark = pytest.mark.wall

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A watch's one event; then silence, whatever the other side says."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD + f"{len(EVENT):x}\r\n".encode() + EVENT + b"\r\n")
    await reader.read()
    writer.close()


def test_sockets_of_a_stream_that_was_left_are_closed_when_the_client_is(tmp_path: Path) -> None:
    opened = []

    async def main() -> None:
        server = await asyncio.start_server(endless, "127.0.0.1", 0, ssl=there)
        kube = HttpKube(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", ssl=here)
        watch = kube.watch(PODS)
        await anext(watch)
        opened.extend(kube._connection._sockets._opened)
        await watch.aclose()
        await kube.close()
        assert opened
        assert [each.fileno() for each in opened] == [-1]
        server.close()

    identity = made(tmp_path)
    here = ssl.create_default_context(cafile=str(identity.certificate))
    there = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    there.load_cert_chain(identity.certificate, identity.key)
    asyncio.run(main())


def test_a_connection_whose_other_end_has_vanished_breaks_in_the_end() -> None:
    async def main() -> None:
        left = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await endless(reader, writer)
            await writer.wait_closed()
            left.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        kube = HttpKube(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        watch = kube.watch(PODS)
        await anext(watch)
        (opened,) = kube._connection._sockets._opened
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        await watch.aclose()
        await kube.close()
        await asyncio.wait_for(left.wait(), 30)
        server.close()

    asyncio.run(main())


def test_a_goodbye_that_nobody_answers_is_not_waited_for(tmp_path: Path) -> None:
    over = threading.Event()
    identity = made(tmp_path)
    there = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    there.load_cert_chain(identity.certificate, identity.key)
    listening = socket.create_server(("127.0.0.1", 0))

    def busy() -> None:
        """Sends one event, and reads nothing more."""
        with listening.accept()[0] as plain, there.wrap_socket(plain, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(HEAD + f"{len(EVENT):x}\r\n".encode() + EVENT + b"\r\n")
            over.wait(60)

    async def main() -> None:
        here = ssl.create_default_context(cafile=str(identity.certificate))
        kube = HttpKube(f"https://127.0.0.1:{listening.getsockname()[1]}", ssl=here)
        watch = kube.watch(PODS)
        await anext(watch)
        (opened,) = kube._connection._sockets._opened
        await watch.aclose()
        await kube.close()
        assert opened.fileno() == -1

    peer = threading.Thread(target=busy, daemon=True)
    peer.start()
    try:
        asyncio.run(main())
    finally:
        over.set()
        peer.join(60)
        listening.close()

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mews.kube.api.errors import ApiError, GoneError, UnavailableError
from mews.kube.api.resources import CONFIGMAPS, PODS
from mews.kube.client.http import HttpKube

pytestmark = pytest.mark.wall

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def against(answer: Answer, check: Callable[[HttpKube], Awaitable[None]]) -> None:
    """Run a check of the client against a server that says exactly what the test wants."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        kube = HttpKube(f"http://127.0.0.1:{port}")
        try:
            await asyncio.wait_for(check(kube), 60)
        finally:
            await kube.close()
            server.close()
            await server.wait_closed()

    asyncio.run(main())


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"%s","resourceVersion":"1"}}}\n'


def test_nobody_there_is_unavailable() -> None:
    async def main() -> None:
        kube = HttpKube("http://127.0.0.1:1")
        try:
            with pytest.raises(UnavailableError):
                await kube.list(PODS)
            with pytest.raises(UnavailableError):
                await anext(kube.watch(PODS))
        finally:
            await kube.close()

    asyncio.run(main())


def test_a_write_that_gets_no_answer_is_unavailable_and_not_repeated() -> None:
    requests = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1

    async def check(kube: HttpKube) -> None:
        for write in (
            kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="n"),
            kube.delete(CONFIGMAPS, "a", namespace="n"),
            kube.replace(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="n"),
        ):
            with pytest.raises(UnavailableError):
                await write
        assert requests == 3

    against(answer, check)


def test_a_watch_whose_connection_breaks_is_unavailable_after_what_came() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(EVENT % b"a") + chunk((EVENT % b"b")[:20]))

    async def check(kube: HttpKube) -> None:
        names = []
        with pytest.raises(UnavailableError):
            async for event in kube.watch(PODS):
                names.append(event.object["metadata"]["name"])
        assert names == ["a"]

    against(answer, check)


def test_events_may_be_cut_anywhere_and_be_long() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = EVENT % b"a" + EVENT % (b"x" * 300_000)
        pieces = [data[:7], data[7:100], data[100:200_000], data[200_000:]]
        writer.write(STREAM + b"".join(chunk(piece) for piece in pieces) + b"0\r\n\r\n")

    async def check(kube: HttpKube) -> None:
        assert [len(event.object["metadata"]["name"]) async for event in kube.watch(PODS)] == [1, 300_000]

    against(answer, check)


def test_an_error_event_is_raised() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        status = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 1 (9)"}'
        writer.write(STREAM + chunk(b'{"type":"ERROR","object":' + status + b"}\n") + b"0\r\n\r\n")

    async def check(kube: HttpKube) -> None:
        with pytest.raises(GoneError, match="too old resource version"):
            await anext(kube.watch(PODS, resource_version="1"))

    against(answer, check)


def test_a_refusal_that_is_no_status_keeps_its_code_and_text() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 12\r\n\r\nproxy is out")

    async def check(kube: HttpKube) -> None:
        with pytest.raises(ApiError, match="proxy is out") as caught:
            await kube.list(PODS)
        assert caught.value.code == 502

    against(answer, check)

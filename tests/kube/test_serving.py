"""A component's own HTTP server on loopback."""

import asyncio
import socket

import aiohttp
import pytest

from mews.kube.serving import serve_on
from mews.kube.system.services import ServiceReply


@pytest.mark.wall
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "rebound.example"}, 403),
        ({"Origin": "http://x.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_web_pages_and_foreign_names_are_refused(headers, status):
    async def ask():
        async def handler(method, path, body):
            return ServiceReply(200, b"{}")

        listening = socket.create_server(("127.0.0.1", 0))
        listener = await serve_on(listening, handler)
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/filter"
            async with aiohttp.ClientSession() as session, session.post(url, data=b"{}", headers=headers) as reply:
                return reply.status
        finally:
            await listener.close()

    assert asyncio.run(ask()) == status

"""Requests with what a kubeconfig gives, to a server that asks for a certificate."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mews.kube.api.errors import UnavailableError
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.http import HttpKube
from tests.kube.kubeconfig.documents import Identity, written

pytestmark = pytest.mark.wall


@asynccontextmanager
async def server(identity: Identity, seen: list[Any]) -> AsyncIterator[str]:
    """A server whose certificate is for inside.example; it notes who came."""

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        seen.append((peer and peer["subject"], request.headers.get("Authorization")))
        return web.json_response({"kind": "Namespace", "metadata": {"name": "x"}})

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(identity.certificate))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(identity.certificate, identity.key)
    application = web.Application()
    application.router.add_get("/api/v1/namespaces/x", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask(kubeconfig: Path) -> None:
    kube = HttpKube.from_kubeconfig(str(kubeconfig))
    try:
        await kube.get(NAMESPACES, "x")
    finally:
        await kube.close()


def test_the_name_of_the_file_is_checked_and_the_certificate_is_shown(tmp_path: Path, identity: Identity):
    certificate, key = identity.data()
    shown = {"client-certificate-data": certificate, "client-key-data": key}
    seen: list[Any] = []

    async def main() -> None:
        async with server(identity, seen) as url:
            cluster = {"server": url, "certificate-authority-data": certificate}
            with pytest.raises(UnavailableError, match="IP address mismatch"):
                await ask(written(tmp_path, cluster, {"token": "t"}))
            named = {**cluster, "tls-server-name": "inside.example"}
            await ask(written(tmp_path, named, {"token": "t"}))
            await ask(written(tmp_path, named, shown))
            await ask(written(tmp_path, {"server": url, "insecure-skip-tls-verify": True}, {"token": "t"}))

    asyncio.run(main())
    one = ((("commonName", "one"),),)
    assert seen == [(None, "Bearer t"), (one, None), (None, "Bearer t")]


def test_a_plugin_that_fails_later_is_an_answer_that_is_missing(tmp_path: Path, identity: Identity):
    """A component waits and asks again; it does not crash."""

    async def main() -> None:
        async with server(identity, []) as url:

            def token() -> str:
                raise ValueError("no credential")

            kube = HttpKube(url, token=token)
            try:
                with pytest.raises(UnavailableError, match="no credential"):
                    await kube.get(NAMESPACES, "x")
            finally:
                await kube.close()

    asyncio.run(main())

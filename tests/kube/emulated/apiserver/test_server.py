from __future__ import annotations

import asyncio
import random
import ssl
import subprocess
from pathlib import Path

import pytest

from mews.kube.api.errors import UnavailableError
from mews.kube.api.objects import name_of
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.client.http import HttpKube
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.core.store.store import Store
from tests.kube.emulated.apiserver.serving import KUBECONFIG, Served

pytestmark = pytest.mark.wall


def open_watches(store: Store) -> int:
    return sum(shelf.watchers() for _, shelf in store.shelves())


async def until_watched(store: Store, count: int) -> None:
    async with asyncio.timeout(60):
        while open_watches(store) != count:  # noqa: ASYNC110 - the store has no event for it
            await asyncio.sleep(0.01)


def test_a_watch_is_forgotten_when_its_client_goes_and_ends_when_the_server_does() -> None:
    async def main() -> None:
        store = fresh_store(Clock.wall().now, random.Random(1))
        server = ApiServer(store)
        await server.start()
        staying, leaving = HttpKube(server.url), HttpKube(server.url)
        seen: list[str] = []

        async def read(kube: HttpKube) -> None:
            async for event in kube.watch(CONFIGMAPS, namespace="default"):
                seen.append(name_of(event.object))

        try:
            left, stayed = asyncio.create_task(read(leaving)), asyncio.create_task(read(staying))
            await until_watched(store, 2)
            left.cancel()
            await until_watched(store, 1)
            await staying.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        finally:
            await server.stop()
        await asyncio.wait_for(stayed, 60)  # it ends, and raises nothing
        assert seen == ["a"]
        with pytest.raises(UnavailableError):
            await staying.list(PODS)
        await staying.close()
        await leaving.close()

    asyncio.run(main())


def test_many_clients_write_at_once_and_one_watch_sees_it_all() -> None:
    async def main() -> None:
        server = ApiServer(fresh_store(Clock.wall().now, random.Random(1)))
        await server.start()
        kube = HttpKube(server.url)
        try:

            async def write(writer: int) -> None:
                for number in range(25):
                    name = f"c-{writer}-{number}"
                    await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")

            await asyncio.gather(*(write(writer) for writer in range(20)))
            versions = []
            async for event in kube.watch(CONFIGMAPS, resource_version="1"):
                versions.append(int(event.object["metadata"]["resourceVersion"]))
                if len(versions) == 500:
                    break
            assert versions == sorted(set(versions))
        finally:
            await kube.close()
            await server.stop()

    asyncio.run(main())


def test_tokens_reach_the_server_over_tls(tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days",
         "2", "-subj", "/CN=mews", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    async def main() -> None:
        server = ApiServer(
            fresh_store(Clock.wall().now, random.Random(1)), tokens={"secret": "me"}, ssl_context=context
        )
        await server.start()
        text = KUBECONFIG.format(url=server.url, token="secret")
        authority = f'server: "{server.url}", certificate-authority: "{tmp_path / "cert.pem"}"'
        (tmp_path / "kubeconfig").write_text(text.replace(f'server: "{server.url}"', authority))
        kube = await asyncio.to_thread(HttpKube.from_kubeconfig, str(tmp_path / "kubeconfig"), None)
        try:
            await kube.create(NODES, {"metadata": {"name": "n1"}})
            assert await Served(server, kube, tmp_path).kubectl("get", "nodes", "-o", "name") == "node/n1\n"
        finally:
            await kube.close()
            await server.stop()

    asyncio.run(main())

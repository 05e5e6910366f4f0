"""Options of logs, passed-on requests, usage, and upgrades that are refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import pytest

from mews.kube.api.resources import ENDPOINT_SLICES, NODES, PODS, SERVICES
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.ports.kubelets import KubeletApi
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage
from tests.kube.emulated.apiserver.serving import FakeKubelet

Ask = Callable[..., Awaitable[tuple[int, str, Any]]]
POD = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": [{"name": "c"}]}}
PODS_PATH = "/api/v1/namespaces/default/pods"


class _Kubelet(FakeKubelet):
    def addresses(self) -> Sequence[str]:
        return ("127.0.0.1",)

    def usage(self) -> Sequence[PodUsage]:
        return [PodUsage(POD, {"c": ContainerUsage(250_000_000, 64 << 20, 2.5, 90.0)}, 10.0)]


class _Kubelets:
    def kubelet_of(self, node: str) -> KubeletApi | None:
        return _Kubelet() if node == "n1" else None


async def messages(url: str, *protocols: str) -> list[Any]:
    """What a WebSocket brings until its end."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": "Bearer x"}) as session,
        session.ws_connect(url, protocols=protocols) as socket,
    ):
        assert socket.protocol == (protocols[0] if protocols else None)
        return [message.data async for message in socket]


def served(check: Callable[[Ask, int], Awaitable[None]]) -> None:
    """With pod ``a`` at 127.0.0.1, service ``web`` before it, and a server there that tells what it was asked."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, body = head.splitlines()[0], b"secret" if "authorization" in head.lower() else b""
        body = f"{line}|".encode() + body
        writer.write(b"HTTP/1.1 203 Fine\r\nX-Own: yes\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    async def main() -> None:
        store = fresh_store(Clock.wall().now, random.Random(1))
        server = ApiServer(store, kubelets=_Kubelets(), usage=True)
        await server.start()
        behind = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = behind.sockets[0].getsockname()[1]
        kube = InProcessKube(store)
        await kube.create(NODES, {"metadata": {"name": "n1"}})
        container = {"name": "c", "image": "x", "ports": [{"containerPort": port}]}
        await kube.create(PODS, {"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "containers": [container]}})
        status = {"status": {"podIP": "127.0.0.1", "phase": "Running"}}
        await kube.patch(PODS, "a", status, namespace="default", subresource="status")
        spec = {"ports": [{"name": "http", "port": 80, "targetPort": port}], "selector": {"app": "a"}}
        await kube.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec})
        piece = {
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
            "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
        }
        await kube.create(ENDPOINT_SLICES, piece)

        async def ask(path: str, method: str = "GET") -> tuple[int, str, Any]:
            headers = {"Authorization": "Bearer x"}
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.request(method, server.url + path) as got,
            ):
                text = await got.text()
                return got.status, text, got.headers

        ask.url = server.url  # type: ignore[attr-defined]
        ask.kube = kube  # type: ignore[attr-defined]
        try:
            await check(ask, port)
        finally:
            behind.close()
            await server.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "at most one of `sinceTime` or `sinceSeconds`"),
        ("sinceTime=yesterday", 400, "cannot parse"),
        ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
        ("tailLines=1&timestamps=true", 200, "two"),
    ],
)
def test_options_of_logs_are_checked_as_upstream(query: str, code: int, text: str) -> None:
    async def check(ask: Ask, port: int) -> None:
        got, body, _ = await ask(f"{PODS_PATH}/a/log?{query}")
        assert got == code and text in body

    served(check)


def test_requests_are_passed_on_to_pods_and_services_without_the_caller_s_token() -> None:
    async def check(ask: Ask, port: int) -> None:
        code, text, headers = await ask(f"{PODS_PATH}/a/proxy/some/path?x=1%202", "POST")
        assert (code, text, headers["X-Own"]) == (203, "POST /some/path?x=1%202 HTTP/1.1|", "yes")
        assert (await ask(f"{PODS_PATH}/http:a:{port}/proxy/"))[0] == 203
        for name in ("web", "web:http", "web:80", "http:web:http"):
            code, text, _ = await ask(f"/api/v1/namespaces/default/services/{name}/proxy/p/")
            assert (code, text) == (203, "GET /p/ HTTP/1.1|"), name
        code, text, _ = await ask("/api/v1/namespaces/default/services/web:81/proxy/")
        assert code == 503 and "no service port 81 found" in text
        code, text, _ = await ask(f"{PODS_PATH}/a:1/proxy/")
        assert code == 503 and "connect: connection refused" in text
        assert (await ask(f"{PODS_PATH}/b/proxy/", "DELETE"))[0] == 404
        assert (await ask("/api/v1/nodes/n1/proxy/healthz"))[:2] == (200, "ok")
        assert (await ask("/api/v1/nodes/n1/proxy/x", "DELETE"))[0] == 404
        code, text, headers = await ask("/api/v1/nodes/n1/proxy/containerLogs/default/a/c", "PUT")
        assert (code, text, headers["Allow"]) == (405, "405: Method Not Allowed", "GET")
        code, text, _ = await ask("/api/v1/nodes/n1/proxy/containerLogs/default/a/c", "HEAD")
        assert (code, text) == (405, "")  # a body would be read as the next answer
        assert (await ask("/api/v1/nodes/n1"))[0] == 200

    served(check)


def test_requests_are_passed_on_to_addresses_that_a_kubelet_gave_to_a_pod_and_to_no_others() -> None:
    async def check(ask: Ask, port: int) -> None:
        kube: InProcessKube = ask.kube  # type: ignore[attr-defined]
        elsewhere = {"status": {"podIP": "127.0.0.2", "phase": "Running"}}
        await kube.patch(PODS, "a", elsewhere, namespace="default", subresource="status")
        code, text, _ = await ask(f"{PODS_PATH}/a/proxy/")
        assert code == 400 and "address not allowed" in text
        endpoints = [{"addresses": ["127.0.0.2"], "conditions": {"ready": True}}]
        await kube.patch(ENDPOINT_SLICES, "web-1", {"endpoints": endpoints}, namespace="default")
        code, text, _ = await ask("/api/v1/namespaces/default/services/web/proxy/")
        assert code == 400 and "address not allowed" in text

    served(check)


def test_what_is_used_is_asked_of_the_kubelets() -> None:
    async def check(ask: Ask, port: int) -> None:
        _, text, _ = await ask("/apis/metrics.k8s.io/v1beta1/nodes/n1")
        assert '"usage":{"cpu":"250000000n","memory":"65536Ki"}' in text
        _, text, _ = await ask("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")
        assert '"containers":[{"name":"c","usage":{"cpu":"250000000n","memory":"65536Ki"}}]' in text
        assert (await ask("/apis/metrics.k8s.io/v1beta1/nodes/n2"))[0] == 404
        assert '"metrics.k8s.io/v1beta1"' in (await ask("/apis"))[1]

    served(check)


@pytest.mark.parametrize(
    ("query", "protocols", "expected"),
    [
        ("", (), [b"", b"a/c one\n", b"two\n"]),
        ("follow=true&tailLines=1", ("binary.k8s.io",), [b"", b"two\n", b"three\n"]),
        ("tailLines=1", ("base64.binary.k8s.io",), ["", "dHdvCg=="]),
    ],
)
def test_logs_come_as_messages_of_a_plain_websocket(
    query: str, protocols: tuple[str, ...], expected: list[bytes | str]
) -> None:
    async def check(ask: Ask, port: int) -> None:
        assert await messages(f"{ask.url}{PODS_PATH}/a/log?{query}", *protocols) == expected  # type: ignore[attr-defined]

    served(check)


def test_logs_that_are_refused_open_no_websocket() -> None:
    async def check(ask: Ask, port: int) -> None:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await messages(f"{ask.url}{PODS_PATH}/b/log")  # type: ignore[attr-defined]
        assert refused.value.status == 404

    served(check)


@pytest.mark.parametrize("subresource", ["exec?command=x", "attach?", "portforward?"])
def test_streams_want_an_upgrade(subresource: str) -> None:
    async def check(ask: Ask, port: int) -> None:
        code, text, _ = await ask(f"{PODS_PATH}/a/{subresource}&stdout=true", "POST")
        assert code == 400 and "Upgrade request required" in text

    served(check)

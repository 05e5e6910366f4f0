"""Webhooks over HTTPS: by URL and by Service, with the authority that their configuration names."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from mews.certificates import Certificates, make_certificates
from mews.kube.api.errors import ApiError
from mews.kube.api.resources import CONFIGMAPS, ENDPOINTS, SERVICES, Resource
from mews.kube.client.http import HttpKube
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer

pytestmark = pytest.mark.wall

GROUP = "admissionregistration.k8s.io"
MUTATING = Resource(GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False)
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
SERVICE_NAME = "hook.default.svc"


async def in_parts(request: web.Request, body: Any) -> web.StreamResponse:
    """As Go's server answers, whose second chunk may come later than the first."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(body[:100])
    await asyncio.sleep(0.2)
    await answer.write(body[100:])
    return answer


class HttpsWebhook:
    """A mutating webhook that adds a field, hangs for names that begin with ``slow``, and answers in two parts for
    those with ``parts``."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self.port = 0
        self.hosts: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.hosts.append(request.headers["Host"])
        review = await request.json()
        asked = review["request"]
        if asked["name"].startswith("slow"):
            await asyncio.sleep(30)
        patch = [{"op": "add", "path": "/data", "value": {"by": request.path}}]
        response = {
            "uid": asked["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
            "warnings": ["hello"],
        }
        whole = web.json_response({**review, "request": None, "response": response})
        return await in_parts(request, whole.body) if asked["name"].startswith("parts") else whole

    async def run(self, body: Callable[[], Awaitable[None]]) -> None:
        app = web.Application()
        app.router.add_post("/{tail:.*}", self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._certificates.server_context())
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            await body()
        finally:
            await runner.cleanup()


def with_webhook(tmp_path: Path, check: Callable[[HttpKube, HttpsWebhook, str, ApiServer], Awaitable[None]]) -> None:
    async def main() -> None:
        now = Clock.wall().now
        certificates = make_certificates(tmp_path, now(), [SERVICE_NAME])
        authority = base64.b64encode(certificates.authority.read_bytes()).decode()
        hook = HttpsWebhook(certificates)
        server = ApiServer(fresh_store(now, random.Random(1)))
        await server.start()
        kube = HttpKube(server.url)

        async def body() -> None:
            await check(kube, hook, authority, server)

        try:
            await hook.run(body)
        finally:
            await kube.close()
            await server.stop()

    asyncio.run(main())


def configuration(client: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": client, "rules": RULES}
    return {"metadata": {"name": "m"}, "webhooks": [{"name": "adds.mews.test", **given, **more}]}


def test_a_webhook_is_called_by_its_url_and_its_warnings_reach_the_client(tmp_path: Path) -> None:
    async def check(kube: HttpKube, hook: HttpsWebhook, authority: str, server: ApiServer) -> None:
        client = {"url": f"https://127.0.0.1:{hook.port}/mutate", "caBundle": authority}
        await kube.create(MUTATING, configuration(client))
        stored = await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        assert stored["data"] == {"by": "/mutate"}
        async with (
            ClientSession() as session,
            session.post(
                f"{server.url}/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "b"}}
            ) as response,
        ):
            assert response.status == 201
            assert response.headers.getall("Warning") == ['299 - "hello"']

    with_webhook(tmp_path, check)


def test_a_webhook_is_called_by_its_service(tmp_path: Path) -> None:
    async def check(kube: HttpKube, hook: HttpsWebhook, authority: str, _server: ApiServer) -> None:
        client = {"service": {"namespace": "default", "name": "hook", "path": "/x"}, "caBundle": authority}
        await kube.create(MUTATING, configuration(client))
        with pytest.raises(ApiError, match='service "hook" not found'):
            await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        service = {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}}
        await kube.create(SERVICES, service, namespace="default")
        subsets = [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": hook.port}]}]
        await kube.create(ENDPOINTS, {"metadata": {"name": "hook"}, "subsets": subsets}, namespace="default")
        stored = await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        assert stored["data"] == {"by": "/x"}
        assert hook.hosts == [f"{SERVICE_NAME}:443"]

    with_webhook(tmp_path, check)


def test_a_webhooks_answer_may_arrive_in_parts(tmp_path: Path) -> None:
    async def check(kube: HttpKube, hook: HttpsWebhook, authority: str, _server: ApiServer) -> None:
        await kube.create(MUTATING, configuration({"url": f"https://127.0.0.1:{hook.port}/x", "caBundle": authority}))
        stored = await kube.create(CONFIGMAPS, {"metadata": {"name": "parts"}}, namespace="default")
        assert stored["data"] == {"by": "/x"}

    with_webhook(tmp_path, check)


def test_a_certificate_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    async def check(kube: HttpKube, hook: HttpsWebhook, _authority: str, _server: ApiServer) -> None:
        await kube.create(MUTATING, configuration({"url": f"https://127.0.0.1:{hook.port}/"}))
        with pytest.raises(ApiError) as caught:
            await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        assert caught.value.code == 500
        assert "x509: certificate signed by unknown authority" in caught.value.message

    with_webhook(tmp_path, check)


def test_a_webhook_that_hangs_delays_nobody_else_over_http_either(tmp_path: Path) -> None:
    async def check(kube: HttpKube, hook: HttpsWebhook, authority: str, _server: ApiServer) -> None:
        client = {"url": f"https://127.0.0.1:{hook.port}/", "caBundle": authority}
        await kube.create(MUTATING, configuration(client, timeoutSeconds=2))
        slow = asyncio.create_task(kube.create(CONFIGMAPS, {"metadata": {"name": "slow"}}, namespace="default"))
        await kube.create(CONFIGMAPS, {"metadata": {"name": "quick"}}, namespace="default")
        assert not slow.done()
        with pytest.raises(ApiError, match="context deadline exceeded"):
            await slow

    with_webhook(tmp_path, check)

"""For whom a token of a service account is. All texts are those of a kube-apiserver 1.34.2."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import aiohttp
import pytest

from mews.kube.api.resources import SERVICE_ACCOUNTS, Resource
from mews.kube.client.http import HttpKube
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer

pytestmark = pytest.mark.wall
API, VAULT = "https://kubernetes.default.svc", "vault"
TOKENS = Resource("", "v1", "serviceaccounts/one/token", "TokenRequest")
REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)


async def asked(kube: HttpKube, token: str, *audiences: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    return dict((await kube.create(REVIEWS, {"spec": spec}))["status"])


def test_a_token_is_for_its_audiences_alone() -> None:
    async def main() -> None:
        server = ApiServer(fresh_store(Clock.wall().now, random.Random(1)), tokens={"x": "admin"})
        await server.start()
        kube = HttpKube(server.url, token="x")
        try:
            await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "one"}})

            async def issued(*audiences: str) -> str:
                made = await kube.create(TOKENS, {"spec": {"audiences": list(audiences)}}, namespace="default")
                return str(made["status"]["token"])

            vaults, own, both = await issued(VAULT), await issued(), await issued(VAULT, API)
            text = "[invalid bearer token, token audiences [{}] is invalid for the target audiences [{}]]"
            assert (await asked(kube, vaults))["error"] == text.format(f'"{VAULT}"', f'"{API}"')
            assert (await asked(kube, own, VAULT))["error"] == text.format(f'"{API}"', f'"{VAULT}"')
            assert (await asked(kube, vaults, VAULT))["audiences"] == [VAULT]
            assert (await asked(kube, both, VAULT, "x"))["audiences"] == [VAULT]
            assert (await asked(kube, own))["user"]["username"] == "system:serviceaccount:default:one"
            assert await asked(kube, "x", VAULT) == {"user": {}, "error": "invalid bearer token"}
            assert (await asked(kube, "x"))["user"]["username"] == "admin"
            for token, status in ((vaults, 401), (own, 403), (both, 403)):
                headers = {"Authorization": f"Bearer {token}"}
                async with (
                    aiohttp.ClientSession(headers=headers) as session,
                    session.get(f"{server.url}/api/v1/namespaces") as answer,
                ):
                    assert answer.status == status
        finally:
            await kube.close()
            await server.stop()

    asyncio.run(main())

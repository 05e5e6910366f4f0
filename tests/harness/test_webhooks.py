"""Webhooks of a cluster in virtual time are whoever serves the name."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.fence import Fence
from mews.harness.ports.services import LocalServices
from mews.harness.ports.webhooks import InProcessWebhooks
from mews.kube.api.errors import ApiError
from mews.kube.api.resources import CONFIGMAPS, Resource
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.system.services import ServiceReply

VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)


def test_a_webhook_is_a_service_of_the_cluster_that_is_called_in_process() -> None:
    async def deny(_method: str, path: str, body: bytes) -> ServiceReply:
        review = json.loads(body)
        response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": f"no, says {path}"}}
        return ServiceReply(200, json.dumps({**review, "response": response}).encode())

    async def main() -> None:
        services = LocalServices(random.Random(1))
        store = fresh_store(virtual_clock().now, random.Random(1))
        store.webhooks = InProcessWebhooks(services)
        kube = InProcessKube(store)
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        hook = {
            "name": "no.mews.test",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "judge", "path": "/judge"}},
            "rules": rules,
        }
        await kube.create(VALIDATING, {"metadata": {"name": "v"}, "webhooks": [hook]})
        with pytest.raises(ApiError, match="judge: connect: connection refused"):
            await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        serving = asyncio.create_task(services.port("judge", Fence()).serve(deny))
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="denied the request: no, says /judge"):
            await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        serving.cancel()

    run_virtual(main)

"""The webhook's certificate is replaced while an API server asks: no call is lost, and the old authority is trusted no
more in the end. Over TLS on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
import ssl
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from mews.certificates import make_certificates
from mews.harness.clusters.embedded.served_services import ServedServices
from mews.harness.ports.fence import Fence
from mews.kube.api.errors import NotFoundError
from mews.kube.clock import Clock, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.webhook import MUTATING, NAME, KoordWebhook

SERVICE, SECONDS = "koord-webhook", 60.0


async def _asked(kube: InProcessKube) -> str:
    """Ask the webhook as an API server does: by its configuration as it stands. The authorities that it names."""
    client = (await kube.get(MUTATING, NAME))["webhooks"][0]["clientConfig"]
    authorities = base64.b64decode(client["caBundle"]).decode()
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    review["request"] = {"uid": "u", "object": {"spec": {"containers": []}}}
    trust = ssl.create_default_context(cadata=authorities)
    body = json.dumps(review)
    async with aiohttp.ClientSession() as session, session.post(client["url"], data=body, ssl=trust) as answer:
        assert (answer.status, (await answer.json())["response"]["allowed"]) == (200, True)
    return authorities


async def _until(kube: InProcessKube, authorities: list[str]) -> None:
    """Ask on until exactly these are trusted; each call must be answered."""
    while True:
        try:
            if await _asked(kube) == "".join(authorities):
                return
        except NotFoundError:  # not registered yet
            await asyncio.sleep(0.05)


@pytest.mark.wall
def test_a_new_certificate_is_shown_once_it_is_trusted_and_no_call_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "run").mkdir()
        made = make_certificates(tmp_path / "run", time.time())
        services = ServedServices(random.Random(1), made)
        kube = InProcessKube(fresh_store(Clock.wall().now, stream(1, "store")), "system:koord-webhook")
        context = Context(kube, Clock.wall(), random.Random(1), logging.getLogger("x"))
        port = services.port(SERVICE, Fence())
        webhook = asyncio.create_task(KoordWebhook(context, KoordinatorConfig(), port).run())
        try:
            first = made.authority.read_text()
            await _until(kube, [first])
            files = services.files(SERVICE)
            assert files is not None
            make_certificates(files.authority.parent, time.time())
            second = files.authority.read_text()
            assert second != first
            await _until(kube, [first, second])  # both, while the old one is still shown somewhere
            await _until(kube, [second])
            where = ("127.0.0.1", urlsplit(services.place(SERVICE, "")["urlPrefix"]).port)
            shown = await asyncio.to_thread(ssl.get_server_certificate, where)
            assert shown.split() == files.certificate.read_text().split()
        finally:
            webhook.cancel()
            await asyncio.gather(webhook, return_exceptions=True)
            await services.close()

    asyncio.run(asyncio.wait_for(main(), SECONDS))


@pytest.mark.wall
def test_half_of_a_new_certificate_is_not_shown(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "other").mkdir()
        made = make_certificates(tmp_path / "run", time.time())
        other = make_certificates(tmp_path / "other", time.time())
        services = ServedServices(random.Random(1), made)
        files = services.files(SERVICE)
        port = services.port(SERVICE, Fence())
        await port.reached()
        try:
            assert files is not None
            files.certificate.write_bytes(other.certificate.read_bytes())
            await asyncio.wait_for(port.superseded(), SECONDS)
            with pytest.raises(OSError, match=r"(?i)key values mismatch"):
                port.renew()
            where = ("127.0.0.1", urlsplit(services.place(SERVICE, "")["urlPrefix"]).port)
            shown = await asyncio.to_thread(ssl.get_server_certificate, where)
            assert shown.split() == made.certificate.read_text().split()
        finally:
            await services.close()

    asyncio.run(asyncio.wait_for(main(), SECONDS))

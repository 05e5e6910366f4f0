"""Services over sockets: under TLS by the run's authority, and as kube-scheduler is told of them."""

import asyncio
import base64
import random
import ssl
import time

import aiohttp
import pytest

from mews.certificates import make_certificates
from mews.harness.clusters.embedded.served_services import ServedServices
from mews.harness.ports.fence import Fence
from mews.kube.system.services import ServiceReply


async def echo(method, path, body):
    return ServiceReply(200, f"{method} {path}".encode())


async def asked(services, url, context):
    """What POST /x/filter there answers, while a component serves."""
    serving = asyncio.create_task(services.port("extender", Fence()).serve(echo))
    await asyncio.sleep(0)
    await services.listen("extender")
    try:
        async with aiohttp.ClientSession() as session, session.post(f"{url}/filter", ssl=context or False) as answer:
            return await answer.text()
    finally:
        serving.cancel()
        await services.close()


def test_a_service_is_under_tls_by_the_runs_authority_which_its_place_names(tmp_path):
    made = make_certificates(tmp_path, time.time())

    async def main():
        services = ServedServices(random.Random(1), made)
        place = services.place("extender", "/x")
        assert place["enableHTTPS"] is True
        authority = base64.b64decode(place["tlsConfig"]["caData"]).decode()
        assert authority == made.authority.read_text()
        context = ssl.create_default_context(cadata=authority)
        assert await asked(services, place["urlPrefix"], context) == "POST /x/filter"

    asyncio.run(main())


def test_nobody_is_answered_who_does_not_trust_it(tmp_path):
    made = make_certificates(tmp_path, time.time())

    async def main():
        services = ServedServices(random.Random(1), made)
        url = services.place("extender", "/x")["urlPrefix"]
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await asked(services, url, ssl.create_default_context())

    asyncio.run(main())


def test_without_certificates_it_is_plain_http():
    async def main():
        services = ServedServices(random.Random(1))
        place = services.place("extender", "/x")
        assert list(place) == ["urlPrefix"] and place["urlPrefix"].startswith("http://127.0.0.1:")
        assert await asked(services, place["urlPrefix"], None) == "POST /x/filter"

    asyncio.run(main())

"""The proxy between a program and the API, as ``mews proxy`` has one: under TLS, for those who have its token."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager

from mews.certificates import Certificates
from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.proxy import ApiProxy
from mews.harness.journal import Journal
from mews.kube.client.connection import ApiConnection
from mews.kube.client.http import HttpKube
from mews.kube.clock import Pace
from mews.kube.emulated.apiserver.server import ApiServer
from mews.listening.ports import held_port
from tests.fuzz.faces import TOKEN, address_of, api_server, kubernetes, on_a_loop
from tests.fuzz.judge import Face
from tests.fuzz.secure_faces import certificates


@contextmanager
def proxies() -> Iterator[list[Face]]:
    """A proxy, with faults that strike now and then."""
    with certificates() as made, on_a_loop(lambda: _open(made), _close) as (proxy, _, _):
        address, trust = address_of(proxy.url), made.client_context()
        yield [
            Face("proxy under TLS with the token", address, kubernetes(proxy.token), trust),
            Face("proxy under TLS without it", address, kubernetes(None), trust),
        ]


async def _open(made: Certificates) -> tuple[ApiProxy, ApiServer, HttpKube]:
    server = await api_server(TOKEN)
    kube = HttpKube(server.url, token=TOKEN)
    faults = ApiFaults(kube, Journal(asyncio.get_running_loop().time), Pace(), random.Random("fuzz"))
    faults.stand_between("c")
    proxy = ApiProxy("c", faults, ApiConnection(server.url, token=TOKEN), held_port(), made)
    await proxy.open()
    for kind in ("conflict", "too-many-requests", "expired-token", "stale-reads"):
        await faults.add("c", {"kind": kind, "count": None, "probability": 0.1})
    return proxy, server, kube


async def _close(opened: tuple[ApiProxy, ApiServer, HttpKube]) -> None:
    proxy, server, kube = opened
    await proxy.close()
    await kube.close()
    await server.stop()

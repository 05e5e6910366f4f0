"""Another API server behind ours and behind the real one: a client sees the same."""

from __future__ import annotations

import asyncio
import base64
import random
from pathlib import Path
from typing import Any

import pytest

from mews.certificates import Certificates, make_certificates
from mews.harness.clusters.control_plane.backend import servers_of
from mews.harness.clusters.control_plane.kubernetes import KubernetesControlPlane
from mews.harness.clusters.session import ClusterSession
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.ports.kubelets import NoKubelets
from tests.kube.emulated.apiserver.another_server import AnotherServer, Tour

pytestmark = pytest.mark.wall
CLOCK = Clock.wall()


def bundle_of(certificates: Certificates) -> str:
    return base64.b64encode(certificates.authority.read_bytes()).decode()


async def toured(url: str, token: str, folder: Path, *, aggregated: bool) -> list[Any]:
    made = []
    for name in ("own", "foreign"):
        (folder / name).mkdir()
        made.append(make_certificates(folder / name, CLOCK.now(), ["other.default.svc"]))
    own, foreign = made
    other = AnotherServer(own, aggregated=aggregated)
    await other.start()
    try:
        return await Tour(url, token, other, bundle=bundle_of(own), foreign=bundle_of(foreign)).run()
    finally:
        await other.stop()


async def behind_ours(folder: Path, *, aggregated: bool) -> list[Any]:
    server = ApiServer(fresh_store(CLOCK.now, random.Random(1)), tokens={"x": "admin"})
    await server.start()
    try:
        return await toured(server.url, "x", folder, aggregated=aggregated)
    finally:
        await server.stop()


async def behind_the_real(shared: ClusterSession, folder: Path, *, aggregated: bool) -> list[Any]:
    servers = servers_of(shared, attended=False)
    plane = KubernetesControlPlane(folder, servers=servers, speed=1.0)
    await plane.open(NoKubelets(), [])
    try:
        return await toured(plane.url, servers.identity.token, folder, aggregated=aggregated)
    finally:
        await plane.close()


@pytest.mark.parametrize("aggregated", [False, True])
def test_a_client_sees_the_same_behind_the_real_server(
    shared: ClusterSession, tmp_path: Path, *, aggregated: bool
) -> None:
    for name in ("real", "ours"):
        (tmp_path / name).mkdir()
    real = asyncio.run(behind_the_real(shared, tmp_path / "real", aggregated=aggregated))
    ours = asyncio.run(behind_ours(tmp_path / "ours", aggregated=aggregated))
    assert ours == real
    assert len(ours) == 29

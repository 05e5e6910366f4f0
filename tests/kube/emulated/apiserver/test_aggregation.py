"""Groups that other servers answer: whom they see asking, when they count as available, and what is shown of them.

That a client sees what it would behind a real API server: tests/harness/control_plane/test_aggregation.py.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from mews.certificates import Certificates, ClusterCertificates, make_certificates, make_cluster_certificates
from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, ENDPOINT_SLICES, SERVICES, Resource
from mews.kube.client.http import HttpKube
from mews.kube.client.port import Patch
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.packs.aggregation.openapi_parts import joined_swagger, part_of_swagger
from mews.kube.emulated.packs.aggregation.remote_client import MOST_BYTES, UnreachedError, whole
from tests.kube.emulated.apiserver.another_server import BASE, GROUP, NAME, VERSION, AnotherServer

pytestmark = pytest.mark.wall
CLOCK = Clock.wall()
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
THINGS = Resource(GROUP, VERSION, "things", "Thing")
Check = Callable[[HttpKube, AnotherServer], Awaitable[None]]


def served(folder: Path, check: Check, *, shows: bool = True, usage: bool = False) -> None:
    """A server, and another one that wants to see its certificate, which it ``shows``."""

    def made(name: str, make: Callable[..., Any], names: list[str]) -> Any:
        (folder / name).mkdir()
        return make(folder / name, CLOCK.now(), names)

    async def main() -> None:
        own: ClusterCertificates = made("own", make_cluster_certificates, [])
        others: Certificates = made("other", make_certificates, ["other.default.svc"])
        server = ApiServer(
            fresh_store(CLOCK.now, random.Random(1)), usage=usage,
            authority=own.server.authority.read_text("ascii"), front=own.front if shows else None,
        )  # fmt: skip
        other = AnotherServer(others)
        other.require(own.front.authority.read_text("ascii"))
        await other.start()
        await server.start()
        kube = HttpKube(server.url)
        try:
            await check(kube, other)
        finally:
            await kube.close()
            await server.stop()
            await other.stop()

    asyncio.run(main())


def api_service(port: int, *, group: str = GROUP, version: str = VERSION) -> Object:
    spec = {"group": group, "version": version, "groupPriorityMinimum": 50, "versionPriority": 10}
    spec |= {"insecureSkipTLSVerify": True, "service": {"namespace": "default", "name": "other", "port": port}}
    return {"metadata": {"name": f"{version}.{group}"}, "spec": spec}


def external() -> Object:
    return {"metadata": {"name": "other"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}


async def condition(kube: HttpKube, reason: str, name: str = NAME) -> dict[str, str]:
    """The condition, once it has that reason."""
    found: dict[str, str] = {}
    for _ in range(100):
        status = (await kube.get(API_SERVICES, name)).get("status") or {}
        found = (status.get("conditions") or [{}])[0]
        if found.get("reason") == reason:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(found)


def test_another_server_sees_the_api_servers_certificate(tmp_path: Path) -> None:
    async def check(kube: HttpKube, other: AnotherServer) -> None:
        await kube.create(SERVICES, external())
        await kube.create(API_SERVICES, api_service(other.port))
        await condition(kube, "Passed")
        assert await kube.get(THINGS, "one", namespace="n")
        assert {str(each["subject"]) for each in other.seen} == {"((('commonName', 'front-proxy-client'),),)"}

    served(tmp_path, check)


def test_nobody_is_believed_without_a_certificate(tmp_path: Path) -> None:
    async def check(kube: HttpKube, other: AnotherServer) -> None:
        await kube.create(SERVICES, external())
        await kube.create(API_SERVICES, api_service(other.port))
        assert (
            "failing or missing response from https://127.0.0.1:"
            in (await condition(kube, "FailedDiscoveryCheck"))["message"]
        )
        assert not [name for name in (await trusted(kube)) if name.startswith("requestheader")]

    served(tmp_path, check, shows=False)


async def trusted(kube: HttpKube) -> dict[str, str]:
    return dict((await kube.get(CONFIGMAPS, "extension-apiserver-authentication", namespace="kube-system"))["data"])


def test_what_other_servers_trust_is_told_and_kept(tmp_path: Path) -> None:
    async def check(kube: HttpKube, other: AnotherServer) -> None:
        first = await trusted(kube)
        assert first["requestheader-client-ca-file"] == (tmp_path / "own/front-proxy-ca.crt").read_text()
        assert first["client-ca-file"] == (tmp_path / "own/ca.crt").read_text()
        lists = {name: json.loads(value) for name, value in first.items() if "ca-file" not in name}
        assert lists == {
            "requestheader-allowed-names": ["front-proxy-client"],
            "requestheader-extra-headers-prefix": ["X-Remote-Extra-"],
            "requestheader-group-headers": ["X-Remote-Group"],
            "requestheader-username-headers": ["X-Remote-User"],
        }
        name, space = "extension-apiserver-authentication", "kube-system"
        await kube.patch(CONFIGMAPS, name, {"data": {"client-ca-file": "x"}}, kind=Patch.MERGE, namespace=space)
        await asyncio.sleep(0.1)
        assert await trusted(kube) == first
        await kube.delete(CONFIGMAPS, name, namespace=space)
        await asyncio.sleep(0.1)
        assert await trusted(kube) == first

    served(tmp_path, check)


def piece(port: int, *, ready: bool, name: str = "https") -> Object:
    return {
        "metadata": {"name": "other-1", "labels": {"kubernetes.io/service-name": "other"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
        "ports": [{"name": name, "port": port, "protocol": "TCP"}],
    }


def test_a_server_behind_a_service_is_available_with_its_endpoints(tmp_path: Path) -> None:
    """The messages are those of a kube-apiserver 1.34.2."""

    async def check(kube: HttpKube, other: AnotherServer) -> None:
        await kube.create(API_SERVICES, api_service(443))
        assert (await condition(kube, "ServiceNotFound"))["message"] == 'service/other in "default" is not present'
        ports = [{"name": "https", "port": 8443}]
        await kube.create(SERVICES, {"metadata": {"name": "other"}, "spec": {"ports": ports}})
        text = 'service/other in "default" is not listening on port 443'
        assert (await condition(kube, "ServicePortError"))["message"] == text
        await kube.patch(SERVICES, "other", {"spec": {"ports": [{"name": "https", "port": 443}]}}, kind=Patch.MERGE)
        text = 'cannot find endpointslices for service/other in "default"'
        assert (await condition(kube, "EndpointsNotFound"))["message"] == text
        await kube.create(ENDPOINT_SLICES, piece(other.port, ready=False))
        text = 'endpointslices for service/other in "default" have no addresses with port name "https"'
        assert (await condition(kube, "MissingEndpoints"))["message"] == text
        other_port = {"ports": piece(1, ready=False)["ports"]}
        await kube.patch(ENDPOINT_SLICES, "other-1", other_port, kind=Patch.MERGE)
        assert (await condition(kube, "MissingEndpoints"))["message"] == text
        ready = {name: piece(other.port, ready=True)[name] for name in ("endpoints", "ports")}
        await kube.patch(ENDPOINT_SLICES, "other-1", ready, kind=Patch.MERGE)
        assert (await condition(kube, "Passed"))["status"] == "True"
        assert (await kube.get(THINGS, "one", namespace="n"))["line"] == f"GET {BASE}/namespaces/n/things/one"
        headers = dict(tuple(pair) for pair in (await kube.get(THINGS, "one", namespace="n"))["headers"])
        address = (await kube.get(SERVICES, "other"))["spec"]["clusterIP"]
        assert headers["host"] == headers["x-forwarded-host"] == f"{address}:443"

    served(tmp_path, check)


def test_a_server_of_metrics_takes_the_place_of_our_own(tmp_path: Path) -> None:
    pods = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")

    async def check(kube: HttpKube, other: AnotherServer) -> None:
        assert (await kube.list(pods)).items == []
        body = api_service(other.port, group="metrics.k8s.io", version="v1beta1")
        await kube.create(SERVICES, external())
        await kube.create(API_SERVICES, body)
        paths: list[str] = []
        for _ in range(100):
            paths = list(other.asked)
            if any(path.endswith("/pods") for path in paths):
                break
            with suppress(ApiError):
                await kube.list(pods)
            await asyncio.sleep(0.05)
        assert "/apis/metrics.k8s.io/v1beta1/pods" in paths
        await kube.delete(API_SERVICES, "v1beta1.metrics.k8s.io")
        assert (await kube.list(pods)).items == []

    served(tmp_path, check, usage=True)


def test_of_a_document_only_the_part_of_the_group_is_joined() -> None:
    reference = {"$ref": "#/definitions/Thing"}
    document = {
        "paths": {f"{BASE}/things": {"get": {"schema": reference}}, "/apis/else/v1/x": {"get": {}}, f"{BASE}x": {}},
        "definitions": {
            "Thing": {"properties": {"spec": {"$ref": "#/definitions/Spec"}}},
            "Spec": {"type": "object"},
            "Status": {"type": "string"},
        },
    }
    part = part_of_swagger(document, BASE)
    assert list(part["paths"]) == [f"{BASE}/things"]
    assert sorted(part["definitions"]) == ["Spec", "Thing"]
    own = {"swagger": "2.0", "paths": {"/api": {}}, "definitions": {"Spec": {"type": "array"}}}
    joined = joined_swagger(own, [part])
    assert sorted(joined["paths"]) == ["/api", f"{BASE}/things"]
    assert joined["definitions"]["Spec"] == {"type": "array"}
    assert joined["swagger"] == "2.0"


def test_a_document_without_end_is_not_read_to_its_end() -> None:
    """A server sends as fast as it can within the time that it has."""

    class Endless:
        url = URL("https://127.0.0.1/openapi/v2")
        sent = 0

        @property
        def content(self) -> Endless:
            return self

        async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
            while self.sent < 4 * MOST_BYTES:
                self.sent += size
                yield bytes(size)

    async def main() -> None:
        answer: Any = Endless()
        with pytest.raises(UnreachedError, match=r"^/openapi/v2: a document of more than 32 MiB$"):
            await whole(answer)
        assert answer.sent < 2 * MOST_BYTES

    asyncio.run(main())

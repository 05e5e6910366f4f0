"""Answers byte for byte, and what paths answer that are no objects: as kube-apiserver 1.34.2 was seen to do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.ports.kubelets import Kubelets

Ask = Callable[..., Awaitable[aiohttp.ClientResponse]]
NOT_ALLOWED = "the server does not allow this method on the requested resource"
NO_PODS = """\
{
  "kind": "PodList",
  "apiVersion": "v1",
  "metadata": {
    "resourceVersion": "%s"
  },
  "items": []
}"""


def asked(work: Callable[[Ask, ApiServer], Awaitable[None]], kubelets: Kubelets | None = None) -> None:
    """Have a server, and what asks it."""

    async def main() -> None:
        server = ApiServer(fresh_store(lambda: 0.0, random.Random(1)), kubelets=kubelets)
        await server.start()
        try:
            async with aiohttp.ClientSession(server.url, headers={"User-Agent": "test"}) as session:

                async def ask(method: str, path: str, **options: object) -> aiohttp.ClientResponse:
                    response = await session.request(method, path, **options)  # type: ignore[arg-type]
                    await response.read()
                    return response

                await work(ask, server)
        finally:
            await server.stop()

    asyncio.run(main())


PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("query", "agent", "indented"),
    [
        ("", "kubectl/v1.34", False),
        ("?pretty=1", "kubectl/v1.34", True),
        ("?pretty=true", "kubectl/v1.34", True),
        ("?pretty=yes", "curl/8.0", False),
        ("?pretty=false", "curl/8.0", False),
        ("", "curl/8.0", True),
        ("", "Wget/1.21", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("", "Mozilla/4.0", False),
    ],
)
def test_json_is_indented_for_people(query: str, agent: str, *, indented: bool) -> None:
    async def work(ask: Ask, _server: ApiServer) -> None:
        found = await ask("GET", PODS + query, headers={"User-Agent": agent})
        body = await found.json()
        in_lines = NO_PODS % body["metadata"]["resourceVersion"]
        in_one = in_lines.replace(": ", ":").replace("\n", "").replace("  ", "")
        assert await found.text() == (in_lines if indented else in_one + "\n")

    asked(work)


def test_errors_and_versions_are_indented_too_and_yaml_is_not() -> None:
    async def work(ask: Ask, _server: ApiServer) -> None:
        missing = await (await ask("GET", f"{PODS}/x?pretty=1")).text()
        assert missing.startswith('{\n  "kind": "Status",\n  "apiVersion": "v1",\n') and missing.endswith(
            '"code": 404\n}'
        )
        refused = await ask("GET", PODS, headers={"Accept": "text/html"})
        assert refused.status == 406 and (await refused.text()).startswith('{\n  "kind": "Status"')
        yaml = await (await ask("GET", f"{PODS}?pretty=1", headers={"Accept": "application/yaml"})).text()
        assert yaml.startswith("apiVersion: v1\nitems: []\n")

    asked(work)


def test_json_is_safe_within_html() -> None:
    """encoding/json's HTMLEscape, in objects and in events of a watch."""

    async def work(ask: Ask, _server: ApiServer) -> None:
        body = {"metadata": {"name": "c"}, "data": {"text": "<b>&\u2028\u2029é"}}
        made = await ask("POST", "/api/v1/namespaces/default/configmaps", json=body)
        written = '"text":"\\u003cb\\u003e\\u0026\\u2028\\u2029é"'
        assert made.status == 201 and written in await made.text()
        watch = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dc"
        assert written in await (await ask("GET", watch)).text()

    asked(work)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api", 405),
        ("HEAD", "/api", 405),
        ("HEAD", "/api/v1", 405),
        ("HEAD", "/version", 405),
        ("PUT", "/api/v1", 405),
        ("PUT", "/apis/apps/v1", 405),
        ("PUT", "/apis", 200),
        ("PUT", "/apis/apps", 200),
        ("HEAD", "/apis", 200),
        ("POST", "/openapi/v2", 200),
        ("DELETE", "/openapi/v3/api/v1", 200),
        ("POST", "/metrics", 200),
        ("GET", "/api/v1/namespaces//pods", 200),
        ("GET", "/api/v1/watch", 500),
        ("GET", "/api/v1/proxy", 500),
    ],
)
def test_methods_of_paths_that_are_no_object(method: str, path: str, status: int) -> None:
    async def work(ask: Ask, _server: ApiServer) -> None:
        found = await ask(method, path)
        text = await found.text()
        assert found.status == status
        if status == 405 and method != "HEAD":
            assert f'"message":"{NOT_ALLOWED}"' in text
        if status == 500:
            reason = f"failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
            assert text == f'Internal Server Error: "{path}": {reason}\n'

    asked(work)


def test_plain_errors_are_not_to_be_sniffed_and_ok_may_be() -> None:
    async def work(ask: Ask, _server: ApiServer) -> None:
        for path, status, sniffing in (("/nothing", 404, "nosniff"), ("/livez/ping", 200, None)):
            found = await ask("GET", path)
            assert (found.status, found.headers.get("X-Content-Type-Options")) == (status, sniffing)

    asked(work)


def test_a_server_tells_its_own_address_and_openapi_the_release_without_the_patch_level() -> None:
    async def work(ask: Ask, server: ApiServer) -> None:
        told = await (await ask("GET", "/api")).json()
        assert told["serverAddressByClientCIDRs"][0]["serverAddress"] == server.url.partition("//")[2]
        for path in ("/openapi/v2", "/openapi/v3/api/v1"):
            assert (await (await ask("GET", path)).json())["info"] == {"title": "Kubernetes", "version": "1.34"}
        index = await ask("GET", "/openapi/v3")
        assert index.headers["Content-Type"] == "text/plain; charset=utf-8"

    asked(work)


def statuses(body: dict[str, list[dict[str, object]]]) -> dict[str, dict[str, str]]:
    return {item["metadata"]["name"]: item["conditions"][0] for item in body["items"]}  # type: ignore[index]


REFUSED = 'Get "https://127.0.0.1:%d/healthz": dial tcp 127.0.0.1:%d: connect: connection refused'


def test_component_statuses_say_who_runs() -> None:
    kubelets = Kubelets()
    kubelets.find_component = lambda component: component == "scheduler"

    async def work(ask: Ask, _server: ApiServer) -> None:
        path = "/api/v1/componentstatuses"
        assert statuses(await (await ask("GET", path)).json()) == {
            "scheduler": {"type": "Healthy", "status": "True", "message": "ok"},
            "controller-manager": {"type": "Healthy", "status": "False", "message": REFUSED % (10257, 10257)},
            "etcd-0": {"type": "Healthy", "status": "True", "message": "ok"},
        }
        one = await ask("GET", f"{path}?fieldSelector=metadata.name%3Detcd-0")
        assert list(statuses(await one.json())) == ["etcd-0"]
        assert (await (await ask("GET", f"{path}?labelSelector=a%3Db")).json())["items"] == []
        assert (await (await ask("GET", f"{path}/etcd-0")).json())["kind"] == "ComponentStatus"
        missing = await ask("GET", f"{path}/nothing")
        assert (missing.status, (await missing.json())["message"]) == (404, 'componentstatus "nothing" not found')
        watched = await ask("GET", f"{path}?watch=1")
        words = 'watch is not supported on resources of kind "componentstatuses"'
        assert (watched.status, (await watched.json())["message"]) == (405, words)
        assert "Warning" in watched.headers
        deleted = await ask("DELETE", f"{path}/etcd-0")
        assert (deleted.status, "Warning" in deleted.headers) == (405, False)

    asked(work, kubelets)


def test_values_in_errors_are_quoted_as_go_does() -> None:
    async def work(ask: Ask, _server: ApiServer) -> None:
        refused = await ask("POST", f"{PODS}?fieldManager=%00", json={})
        assert 'Invalid value: "\\x00": invalid character U+0000' in (await refused.json())["message"]
        odd = await ask("DELETE", "/api/v1/namespaces/x", json={"kind": "Pod"})
        assert 'no kind "Pod" is registered for version "meta.k8s.io/v1"' in (await odd.json())["message"]

    asked(work)

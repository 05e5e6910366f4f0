"""The kubelets' own servers: who may ask them, and what they show of their pods (pkg/kubelet/server)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mews.certificates import make_cluster_certificates
from mews.harness.clusters.embedded.kubelet_access import subresources
from mews.harness.clusters.embedded.kubelet_server import KubeletServers
from mews.harness.clusters.embedded.node_addresses import node_address
from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.clock import Clock
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage
from tests.kube.emulated.apiserver.serving import FakeKubelet

pytestmark = pytest.mark.wall
POD = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u1"},
    "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]},
}
USED = {"c": ContainerUsage(250_000_000, 3 << 20, 2.5, 90.0), "d": ContainerUsage(0, 1 << 20, 0.5, 95.0)}
Ask = Callable[..., Awaitable[tuple[int, str]]]


class OneKubelet(FakeKubelet):
    def usage(self) -> Sequence[PodUsage]:
        return [PodUsage(POD, USED, 10.0)]

    def kubelet_of(self, node: str) -> OneKubelet:
        return self


class Reviews:
    """Knows two tokens; who has ``metrics`` may read metrics alone."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def create(self, resource: Resource, obj: Object, /) -> Object:
        if resource.kind == "TokenReview":
            token = obj["spec"]["token"]
            self.asked.append((resource.kind, token))
            return {"status": {"authenticated": token in ("metrics", "all"), "user": {"username": token}}}
        attributes = obj["spec"]["resourceAttributes"]
        assert (attributes["resource"], attributes["name"], attributes["verb"]) == ("nodes", "host-1", "get")
        self.asked.append((resource.kind, attributes["subresource"]))
        return {"status": {"allowed": obj["spec"]["user"] == "all" or attributes["subresource"] == "metrics"}}


def served(folder: Path, check: Callable[[Ask, Reviews], Awaitable[None]]) -> None:
    async def main() -> None:
        made = make_cluster_certificates(folder, Clock.wall().now(), nodes=[node_address(0), "host-1"])
        reviews = Reviews()
        servers = KubeletServers(OneKubelet(), made.kubelet.server_context(), reviews)  # type: ignore[arg-type]
        await servers.open(["host-1"])
        address = servers.address("host-1")
        assert address is not None
        trust = made.server.client_context()

        async def ask(path: str, token: str = "", host: str = node_address(0)) -> tuple[int, str]:
            headers = {"Host": f"{host}:10250", **({"Authorization": f"Bearer {token}"} if token else {})}
            url = f"https://127.0.0.1:{address[1]}{path}"
            async with (
                aiohttp.ClientSession() as session,
                session.get(url, headers=headers, ssl=trust, server_hostname=node_address(0)) as answer,
            ):
                return answer.status, await answer.text()

        try:
            await check(ask, reviews)
        finally:
            await servers.close()

    asyncio.run(main())


def test_the_api_says_who_may_ask(tmp_path: Path) -> None:
    async def check(ask: Ask, reviews: Reviews) -> None:
        assert await ask("/metrics/resource") == (401, "Unauthorized")
        assert await ask("/metrics/resource", "strange") == (401, "Unauthorized")
        assert (await ask("/metrics/resource", "metrics"))[0] == 200
        text = "Forbidden (user=metrics, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
        assert await ask("/pods", "metrics") == (403, text)
        assert (await ask("/pods", "all", "host-1"))[0] == 200
        before = len(reviews.asked)
        assert (await ask("/pods", "all"))[0] == 200
        assert len(reviews.asked) == before, "what the API said is remembered for a while"
        assert (await ask("/metrics/resource", "all", "evil.example.com"))[0] == 403

    served(tmp_path, check)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/metrics", ["metrics"]), ("/metrics/cadvisor", ["metrics"]), ("/stats/summary", ["stats"]),
        ("/logs/x", ["log"]), ("/pods", ["pods", "proxy"]), ("/runningpods/", ["pods", "proxy"]),
        ("/healthz", ["healthz", "proxy"]), ("/exec/n/p/c", ["proxy"]), ("/metricsx", ["proxy"]),
        ("/configz", ["configz", "proxy"]), ("/flagz", ["configz"]),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_a_subresource_of_the_node(path: str, parts: list[str]) -> None:
    assert subresources(path) == parts


def test_metrics_of_resources_are_those_of_a_kubelet(tmp_path: Path) -> None:
    async def check(ask: Ask, reviews: Reviews) -> None:
        _, text = await ask("/metrics/resource", "all")
        found = {
            (sample.name, sample.labels.get("container", "")): (sample.value, sample.timestamp is not None)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert found == {
            ("container_cpu_usage_seconds_total", "c"): (2.5, True),
            ("container_cpu_usage_seconds_total", "d"): (0.5, True),
            ("container_memory_working_set_bytes", "c"): (3 << 20, True),
            ("container_memory_working_set_bytes", "d"): (1 << 20, True),
            ("container_start_time_seconds", "c"): (90.0, False),
            ("container_start_time_seconds", "d"): (95.0, False),
            ("node_cpu_usage_seconds_total", ""): (3.5, True),
            ("node_memory_working_set_bytes", ""): (64 << 20, True),
            ("pod_cpu_usage_seconds_total", ""): (3.0, True),
            ("pod_memory_working_set_bytes", ""): (4 << 20, True),
            ("resource_scrape_error", ""): (0.0, False),
            ("scrape_error", ""): (0.0, False),
        }
        assert 'container_cpu_usage_seconds_total{container="c",namespace="n",pod="p"} 2.5 ' in text
        _, text = await ask("/metrics/cadvisor", "all")
        assert 'container_memory_usage_bytes{container="d",id="/kubepods/podu1/d",image="j"' in text
        _, text = await ask("/metrics/probes", "all")
        assert 'pod_uid="u1",probe_type="Liveness",result="successful"} 7.0\n' in text
        _, text = await ask("/metrics", "all")
        assert 'kubelet_running_containers{container_state="running"} 2.0\n' in text
        assert (await ask("/metrics/none", "all"))[0] == 404

    served(tmp_path, check)


def test_a_summary_is_that_of_a_kubelet_and_may_be_short(tmp_path: Path) -> None:
    async def check(ask: Ask, reviews: Reviews) -> None:
        assert (await ask("/stats/summary", "metrics"))[0] == 403
        status, text = await ask("/stats/summary", "all")
        assert (status, json.loads(text)["node"]) == (200, {"nodeName": "n1", "fs": {}})
        for query, has_files in (("true", False), ("false", True), ("yes", True)):
            _, text = await ask(f"/stats/summary?only_cpu_and_memory={query}", "all")
            assert ("fs" in json.loads(text)["node"]) is has_files
        assert (await ask("/stats/container", "all"))[0] == 404

    served(tmp_path, check)

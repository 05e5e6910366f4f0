"""``kubectl top`` on the real API server, and what its proxies cannot reach."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clusters.control_plane.backend import servers_of
from mews.harness.clusters.control_plane.kubernetes import KubernetesControlPlane
from mews.harness.clusters.session import ClusterSession
from mews.kube.api.errors import ApiError, NotFoundError
from mews.kube.api.resources import NAMESPACES, NODES, PODS, Resource
from mews.kube.client.http import HttpKube
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage

pytestmark = pytest.mark.wall
_NODES = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)
_PODS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")


class _OneKubelet:
    """As far as metrics ask kubelets."""

    def __init__(self, pod: Any) -> None:
        self._pod = pod

    def kubelet_of(self, node: str) -> _OneKubelet | None:
        return self if node == "n" else None

    def usage(self) -> list[PodUsage]:
        return [PodUsage(self._pod, {"c": ContainerUsage(250_000_000, 64 << 20)}, 10.0)]


def test_the_aggregator_serves_what_kubelets_measure(shared: ClusterSession, tmp_path: Path) -> None:
    servers = servers_of(shared, attended=False)

    async def main() -> None:
        pod: dict[str, Any] = {"metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}}}
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        plane = KubernetesControlPlane(tmp_path, servers=servers, speed=1.0)
        await plane.open(_OneKubelet(pod), [])  # type: ignore[arg-type]
        try:
            kube = plane.kube("test")
            await kube.create(NODES, {"metadata": {"name": "n"}})
            await kube.create(PODS, {**pod, "spec": spec}, namespace="default")
            found = await _served(kube)
            assert found["usage"] == {"cpu": "250000000n", "memory": "65536Ki"}
            pods = await kube.list(_PODS, namespace="default", label_selector="app=x")
            assert [each["containers"][0]["name"] for each in pods.items] == ["c"]
            assert not (await kube.list(_PODS, namespace="default", label_selector="app=y")).items
            with pytest.raises(NotFoundError, match=r'nodes\.metrics\.k8s\.io "m" not found'):
                await kube.get(_NODES, "m")
            with pytest.raises(ApiError, match="not found"):
                await kube.get(_PODS, "p", namespace="kube-system")
            assert (await kube.list(NAMESPACES)).items
        finally:
            await plane.close()

    asyncio.run(main())


async def _served(kube: HttpKube) -> Any:
    """The node's metrics, once the aggregator has found the server."""
    for _ in range(100):
        try:
            return await kube.get(_NODES, "n")
        except ApiError:
            await asyncio.sleep(0.2)
    return await kube.get(_NODES, "n")

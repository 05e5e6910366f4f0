"""A pod that fills a volume beyond its limit is evicted, as upstream's eviction manager does it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import PODS
from tests.kube.emulated.kubelet.bench import Bench

MOUNT = [{"name": "main", "image": "busybox", "command": ["sleep", "900"], "volumeMounts": [{"name": "e", "mountPath": "/e"}]}]  # fmt: skip  # noqa: E501


class Volumes:
    """How much is used is what the test says."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}
        self.refreshed: list[Mapping[str, str]] = []
        self.removed: list[str] = []

    async def usage(self, pod: Any) -> Mapping[str, int]:
        return dict(self.used)

    async def refresh(self, pod: Any) -> None:
        self.refreshed.append(pod["metadata"].get("labels") or {})

    def remove(self, uid: str) -> None:
        self.removed.append(uid)


def bench_with(volumes: Any) -> Bench:
    bench = Bench()
    bench.containerd.volumes = volumes
    return bench


@pytest.mark.parametrize(
    ("limit", "used", "evicted"), [("1Mi", 2**20, False), ("1Mi", 2**20 + 1, True), ("0", 9, False)]
)
def test_who_uses_more_than_the_limit_is_evicted(limit: str, used: int, evicted: bool) -> None:
    async def main() -> None:
        volumes = Volumes()
        bench = bench_with(volumes)
        async with bench.running():
            await bench.pod("p", containers=MOUNT, volumes=[{"name": "e", "emptyDir": {"sizeLimit": limit}}])
            await bench.phase("p", "Running", 20.0)
            volumes.used["e"] = used
            await asyncio.sleep(20.0)
            status = (await bench.get("p"))["status"]
            assert status["phase"] == ("Failed" if evicted else "Running")
            if evicted:
                text = 'Usage of EmptyDir volume "e" exceeds the limit "1Mi". '
                assert (status["reason"], status["message"]) == ("Evicted", text)
                said = await bench.events("p")
                assert ("Warning", "Evicted", text, 1) in said
                assert not status["containerStatuses"][0].get("started")
        await bench.containerd.close()

    run_virtual(main)


def test_labels_reach_the_volumes_of_a_pod_and_what_is_gone_is_removed() -> None:
    async def main() -> None:
        volumes = Volumes()
        bench = bench_with(volumes)
        async with bench.running():
            made = await bench.pod("p", ["sleep", "900"])
            await bench.phase("p", "Running", 20.0)
            assert volumes.refreshed == []
            patch = {"metadata": {"labels": {"a": "2"}}}
            await bench.kube.patch(PODS, "p", patch, namespace="default")
            await asyncio.sleep(1.0)
            assert volumes.refreshed == [{"a": "2"}]
            await bench.kube.delete(PODS, "p", namespace="default")
            await asyncio.sleep(60.0)
            assert volumes.removed == [made["metadata"]["uid"]]
        await bench.containerd.close()

    run_virtual(main)

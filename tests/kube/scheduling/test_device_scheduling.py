"""Claims from their making to their end, with our scheduler and controllers; in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.objects import Object, condition_of, name_of, node_name_of
from mews.kube.api.resource_claims import DELETE_PROTECTION, results_of
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from mews.kube.client.port import DeleteOptions
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.scheduling.test_devices import ask, device, offer
from tests.kube.scheduling.world import default_profile

REFUSED = (
    "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
    "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


class Cluster:
    """One node, ``east``, without a kubelet."""

    def __init__(self) -> None:
        self.clock = virtual_clock()
        self.kube = InProcessKube(fresh_store(self.clock.now, stream(1, "store"), attended=True))

    def context(self, name: str) -> Context:
        return Context(self.kube, self.clock, stream(1, name), logging.getLogger(name))

    async def pod(self, name: str, **entry: str) -> None:
        claims = [{"name": "e", **(entry or {"resourceClaimTemplateName": "t"})}]
        spec = {"containers": [{"name": "m", "image": "x"}], "resourceClaims": claims}
        await self.kube.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")
        await rest(1)

    async def claim(self, name: str, *requests: dict[str, Any]) -> None:
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": list(requests)}}}
        await self.kube.create(RESOURCE_CLAIMS, body, namespace="default")

    async def node_of(self, name: str) -> str:
        return node_name_of(await self.kube.get(PODS, name, namespace="default"))

    async def words_of(self, name: str) -> str:
        pod = await self.kube.get(PODS, name, namespace="default")
        return str((condition_of(pod, "PodScheduled") or {}).get("message", ""))

    async def held(self) -> list[tuple[str, str]]:
        """(device, pod) of every claim that gives one."""
        claims = (await self.kube.list(RESOURCE_CLAIMS, namespace="default")).items
        return sorted(
            (result["device"], consumer["name"])
            for claim in claims
            for result in results_of(claim)
            for consumer in claim["status"].get("reservedFor", ())
        )

    async def gone(self, name: str) -> None:
        await self.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=0))
        await rest(1)

    async def one_claim(self) -> Object:
        (claim,) = (await self.kube.list(RESOURCE_CLAIMS, namespace="default")).items
        return claim


def play(story: Callable[[Cluster], Awaitable[None]], *, offered: int = 1) -> None:
    async def main() -> None:
        cluster = Cluster()
        kube = cluster.kube
        await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        await raise_stage(kube, cluster.clock, name="east", labels={})
        await kube.create(DEVICE_CLASSES, {"metadata": {"name": "k"}, "spec": {}})
        await kube.create(RESOURCE_SLICES, offer(*(device(f"gpu-{n}") for n in range(offered))))
        template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [ask()]}}}}
        await kube.create(RESOURCE_CLAIM_TEMPLATES, template, namespace="default")
        controllers = ControllerManager(
            cluster.context("controllers"),
            Pace(),
            controllers=["resourceclaim-controller", "garbage-collector-controller"],
        )
        parts = (controllers, Scheduler(cluster.context("scheduler"), SchedulerConfig((default_profile(),))))
        tasks = [asyncio.create_task(part.run()) for part in parts]
        try:
            await story(cluster)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run_virtual(main)


def test_two_pods_take_turns_at_one_device() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.pod("first")
        await cluster.pod("second")
        assert await cluster.held() == [("gpu-0", "first")]
        assert await cluster.node_of("first") == "east"
        assert await cluster.words_of("second") == REFUSED
        await cluster.gone("first")
        await rest(30)
        assert await cluster.held() == [("gpu-0", "second")]
        await cluster.gone("second")
        assert await cluster.held() == []

    play(story)


def test_an_allocation_is_protected_reserved_and_bound_to_its_node() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim("c", ask())
        await cluster.pod("p", resourceClaimName="c")
        claim = await cluster.one_claim()
        assert claim["metadata"]["finalizers"] == [DELETE_PROTECTION]
        named = {"key": "metadata.name", "operator": "In", "values": ["east"]}
        assert claim["status"]["allocation"]["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [named]}]}
        assert [entry["name"] for entry in claim["status"]["reservedFor"]] == ["p"]

    play(story)


def test_a_claim_is_shared_by_all_pods_that_name_it() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim("c", ask())
        for name in ("one", "two", "three"):
            await cluster.pod(name, resourceClaimName="c")
        assert await cluster.held() == [("gpu-0", name) for name in ("one", "three", "two")]
        await cluster.gone("one")
        await cluster.gone("two")
        assert await cluster.held() == [("gpu-0", "three")]
        await cluster.gone("three")
        assert "allocation" not in (await cluster.one_claim()).get("status", {})

    play(story)


def test_pods_that_come_at_once_never_get_one_device_twice() -> None:
    async def story(cluster: Cluster) -> None:
        await asyncio.gather(*(cluster.pod(f"p{n}") for n in range(9)))
        await rest(5)
        held = await cluster.held()
        assert [name for name, _ in held] == [f"gpu-{n}" for n in range(6)]
        assert len({pod for _, pod in held}) == 6

    play(story, offered=6)


def test_a_slice_that_comes_late_wakes_the_pods_that_wait_for_it() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.pod("p")
        assert await cluster.words_of("p") == REFUSED
        await cluster.kube.create(RESOURCE_SLICES, offer(device("late"), name="late", pool="late"))
        await rest(15)
        assert await cluster.held() == [("late", "p")]

    play(story, offered=0)


def test_an_allocation_that_no_node_can_use_is_taken_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim("c", ask())
        claim = await cluster.one_claim()
        claim["metadata"]["finalizers"] = [DELETE_PROTECTION]
        claim = await cluster.kube.replace(RESOURCE_CLAIMS, claim)
        elsewhere = {"key": "metadata.name", "operator": "In", "values": ["west"]}
        result = {"request": "r", "driver": "d.example.com", "pool": "w", "device": "gpu-9"}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [elsewhere]}]},
        }
        await cluster.kube.replace(
            RESOURCE_CLAIMS, {**claim, "status": {"allocation": allocation}}, subresource="status"
        )
        await cluster.pod("p", resourceClaimName="c")
        await rest(15)
        assert await cluster.held() == [("gpu-0", "p")]

    play(story)


def test_a_claim_that_is_to_go_takes_no_new_pod() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim("c", ask())
        await cluster.pod("one", resourceClaimName="c")
        await cluster.kube.delete(RESOURCE_CLAIMS, "c", namespace="default")
        await cluster.pod("two", resourceClaimName="c")
        assert (await cluster.node_of("two"), await cluster.words_of("two")) == ("", "")
        await cluster.gone("one")
        assert (await cluster.kube.list(RESOURCE_CLAIMS, namespace="default")).items == []

    play(story)


def test_a_finished_pod_gives_its_device_to_the_next() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.pod("first")
        await cluster.pod("second")
        pod = await cluster.kube.get(PODS, "first", namespace="default")
        await cluster.kube.replace(
            PODS, {**pod, "status": {**pod["status"], "phase": "Succeeded"}}, subresource="status"
        )
        await rest(15)
        assert await cluster.held() == [("gpu-0", "second")]
        assert name_of(await cluster.one_claim()).startswith("second-e-")

    play(story)

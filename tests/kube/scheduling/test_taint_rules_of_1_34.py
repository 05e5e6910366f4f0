"""DeviceTaintRules that select by class and expression before our scheduler and before kube-scheduler 1.34.2."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clusters.programs.finding import SCHEDULER, of_release
from mews.kube.api.objects import condition_of, node_name_of
from mews.kube.api.resource_claims import results_of
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
    taint_rules_of,
)
from mews.kube.client.port import KubeApi, Patch
from mews.kube.clock import Clock
from mews.kube.component import Runnable
from mews.kube.releases.cluster_release import cluster_release
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.scheduling.device_oracle import before_ours, before_theirs

RELEASE = cluster_release("1.34", {"DRADeviceTaints": True}, {"resource.k8s.io/v1alpha3": True})
RULES = taint_rules_of("v1alpha3")
_PATIENCE_S, _LOOK_S, _STAYS_S = 60.0, 0.2, 4.0


def by(expression: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": f"device.attributes['d'].memory {expression}"}}]}


class _Story:
    def __init__(self, kube: KubeApi) -> None:
        self.kube = kube

    async def begin(self, clock: Clock) -> None:
        """A node, three devices for all, the smallest one first."""
        await self.kube.create(NAMESPACES, {"metadata": {"name": "n"}})
        await self.kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="n")
        await raise_stage(self.kube, clock, name="east", labels={})
        devices = [
            {"name": name, "attributes": {"memory": {"int": memory}}}
            for name, memory in (("small", 16), ("big", 80), ("huge", 90))
        ]
        pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "pool": pool, "allNodes": True, "devices": devices}
        await self.kube.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
        await self.device_class("any", {})

    async def device_class(self, name: str, spec: Any) -> None:
        await self.kube.create(DEVICE_CLASSES, {"metadata": {"name": name}, "spec": spec})

    async def rule(self, name: str, selector: Any) -> None:
        spec = {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoSchedule"}}
        await self.kube.create(RULES, {"metadata": {"name": name}, "spec": spec})

    async def pod(self, name: str) -> None:
        claim = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}}
        await self.kube.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": claim}, namespace="n")
        spec = {
            "containers": [{"name": "m", "image": "x"}],
            "resourceClaims": [{"name": "e", "resourceClaimName": name}],
        }
        await self.kube.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="n")

    async def got(self, name: str) -> str:
        """The device of the pod's claim once the pod is bound."""
        ends_s = asyncio.get_running_loop().time() + _PATIENCE_S
        while not node_name_of(await self.kube.get(PODS, name, namespace="n")):
            assert asyncio.get_running_loop().time() < ends_s, f"{name} is not bound"
            await asyncio.sleep(_LOOK_S)
        [result] = results_of(await self.kube.get(RESOURCE_CLAIMS, name, namespace="n"))
        return str(result["device"])

    async def refused(self, name: str) -> None:
        """The pod is refused, and stays so."""
        ends_s = asyncio.get_running_loop().time() + _PATIENCE_S
        while (condition_of(await self.kube.get(PODS, name, namespace="n"), "PodScheduled") or {}).get(
            "reason"
        ) is None:
            assert asyncio.get_running_loop().time() < ends_s, f"nothing is said of {name}"
            await asyncio.sleep(_LOOK_S)
        await asyncio.sleep(_STAYS_S)
        assert not node_name_of(await self.kube.get(PODS, name, namespace="n"))

    async def play(self) -> None:
        await self.device_class("grade", by("< 40"))
        await self.rule("graded", {"deviceClassName": "grade"})
        await self.rule("largest", by("> 85"))
        await self.rule("of-no-class", {"deviceClassName": "missing"})
        await asyncio.sleep(1.0)
        await self.pod("a")
        assert await self.got("a") == "big"
        await self.pod("b")
        await self.refused("b")
        await self.kube.patch(DEVICE_CLASSES, "grade", {"spec": by("> 40")}, kind=Patch.MERGE)
        assert await self.got("b") == "small"
        await self.kube.delete(RULES, "largest")
        await self.kube.delete(DEVICE_CLASSES, "grade")
        await asyncio.sleep(1.0)
        await self.pod("c")
        await self.refused("c")  # the tracker misses the end of a class
        await self.device_class("grade", by("< 40"))
        assert await self.got("c") == "huge"


async def _played(kube: KubeApi, clock: Clock, scheduler: Runnable) -> None:
    story = _Story(kube)
    await story.begin(clock)
    running = asyncio.create_task(scheduler.run())
    try:
        await story.play()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_rules_of_1_34_follow_classes_and_expressions() -> None:
    before_ours(_played, RELEASE)


@pytest.mark.wall
def test_the_real_scheduler_follows_them_as_ours(tmp_path: Path) -> None:
    if of_release(SCHEDULER, RELEASE.name) is None:
        pytest.skip(f"{SCHEDULER} of Kubernetes {RELEASE.name} is missing in KUBEBUILDER_ASSETS and beside it")
    before_theirs(_played, tmp_path, RELEASE)

"""Extended resources that devices of a class stand for: names, requests, and attempts that fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import ApiError
from mews.kube.api.extended_resources import may_be_a_class
from mews.kube.api.objects import Object, condition_of, node_name_of, uid_of
from mews.kube.api.resources import DEVICE_CLASSES, NEW_EVENTS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, SERVICE_ACCOUNTS
from mews.kube.client.port import KubeApi, Patch
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.releases.cluster_release import cluster_release
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.class_resources import ClassResources
from mews.kube.scheduling.devices.extended_requests import drafted
from mews.kube.scheduling.devices.gated_features import features_of
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.plugins.extended_resources import OF_EXTENDED
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.scheduling.test_devices import DRIVER, device, offer

_LOG = logging.getLogger("test")
GPU, NIC = "example.com/gpu", "example.com/nic"
NEW = features_of(cluster_release("1.37"))
OLD = features_of(cluster_release("1.34", {"DRAExtendedResource": True}))


@pytest.mark.parametrize(
    ("name", "may"),
    [
        (GPU, True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/batch", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_which_resources_a_class_may_stand_behind(name: str, may: bool) -> None:
    assert may_be_a_class(name) is may


# ----------------------------------------------------------------------------------------------------- classes


def device_class(name: str, resource: str = "", *, made: int = 0) -> Object:
    spec = {"extendedResourceName": resource} if resource else {}
    return {"metadata": {"name": name, "creationTimestamp": f"2026-01-01T00:00:{made:02}Z"}, "spec": spec}


def test_the_newer_of_two_classes_with_one_resource_counts_and_of_equals_the_first_by_name() -> None:
    classes = ClassResources(NEW)
    classes.changed(None, device_class("b", GPU, made=1))
    classes.changed(None, device_class("c", GPU, made=0))
    assert classes.class_of(GPU) == "b"
    classes.changed(None, device_class("a", GPU, made=1))
    assert classes.class_of(GPU) == "a"
    classes.changed(None, device_class("z", GPU, made=2))
    assert classes.class_of(GPU) == "z"


def test_a_class_that_goes_or_changes_its_name_takes_its_resource_with_it() -> None:
    classes = ClassResources(NEW)
    before, after = device_class("a", GPU), device_class("a", NIC)
    classes.changed(None, before)
    classes.changed(before, after)
    implicit = "deviceclass.resource.kubernetes.io/a"
    assert [classes.class_of(name) for name in (GPU, NIC, implicit)] == [None, "a", "a"]
    classes.changed(after, None)
    assert [classes.class_of(name) for name in (GPU, NIC, implicit)] == [None, None, None]


def test_on_1_34_a_class_that_names_a_resource_has_none_of_its_own_name() -> None:
    classes = ClassResources(OLD)
    classes.changed(None, device_class("a", GPU))
    classes.changed(None, device_class("b"))
    names = ("deviceclass.resource.kubernetes.io/a", "deviceclass.resource.kubernetes.io/b")
    assert [classes.class_of(name) for name in names] == [None, "b"]


# ---------------------------------------------------------------------------------------------------- requests


def container(name: str, *, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    named = {"gpu": GPU, "nic": NIC}
    amounts = {named.get(key, key): amount for key, amount in requests.items()}
    more = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "resources": {"requests": amounts}, **more}


def shown(
    init: list[dict[str, Any]], main: list[dict[str, Any]], *, reuses: bool = True, resources: tuple[str, ...] = (GPU,)
) -> tuple[dict[str, int], list[str]]:
    """(request -> number of devices, container:request of each mapping)."""
    pod = {"spec": {"initContainers": init, "containers": main}}
    found = drafted(pod, resources, {GPU: "g", NIC: "n"}.get, reuses=reuses)
    counts = {request["name"]: request["exactly"]["count"] for request in found.requests}
    return counts, [f"{entry['containerName']}:{entry['requestName']}" for entry in found.mappings]


def test_each_container_has_a_request_named_by_its_place_and_that_of_the_resource() -> None:
    main = [container("a", cpu="1", gpu="2"), container("b"), container("c", gpu="1")]
    assert shown([], main) == (
        {"container-0-request-1": 2, "container-2-request-0": 1},
        ["a:container-0-request-1", "c:container-2-request-0"],
    )


def test_a_container_that_ends_has_the_devices_of_those_that_start_later() -> None:
    init = [container("i", gpu="2"), container("s", sidecar=True, gpu="1"), container("j", gpu="3")]
    main = [container("m", gpu="1")]
    counts, mapped = shown(init, main)
    assert counts == {"container-1-request-0": 1, "container-2-request-0": 2, "container-3-request-0": 1}
    assert mapped == [
        "s:container-1-request-0",
        "m:container-3-request-0",
        "i:container-1-request-0",
        "i:container-3-request-0",
        "j:container-3-request-0",
        "j:container-2-request-0",
    ]


def test_what_containers_that_end_need_beyond_that_is_asked_for_once() -> None:
    counts, mapped = shown([container("i", gpu="1"), container("j", gpu="3")], [container("m", nic="1")])
    assert counts == {"container-1-request-0": 3}
    assert mapped == ["i:container-1-request-0", "j:container-1-request-0"]


def test_1_34_asks_for_each_container_anew() -> None:
    counts, _ = shown([container("i", gpu="2")], [container("m", gpu="2")], reuses=False)
    assert counts == {"container-0-request-0": 2, "container-1-request-0": 2}


def test_a_resource_without_a_class_and_an_amount_of_zero_are_left_out() -> None:
    main = [container("a", gpu="0", nic="1", **{"example.com/other": "1"})]
    counts, mapped = shown([], main, resources=(GPU, NIC, "example.com/other"))
    assert (counts, mapped) == ({"container-0-request-1": 1}, ["a:container-0-request-1"])


# ------------------------------------------------------------------------------------------- attempts that fail


class Refusing(InProcessKube):
    """An API server that refuses some writes; ``left`` says how many."""

    refused = ""
    left = 0

    async def patch(self, resource: Any, name: str, body: Any, **options: Any) -> Object:
        if self.refused == "status of pod" and resource == PODS and "extendedResourceClaimStatus" in str(body):
            self._refuse()
        return await super().patch(resource, name, body, **options)

    async def create(self, resource: Any, obj: Object, **options: Any) -> Object:
        if self.refused == "claim" and resource == RESOURCE_CLAIMS:
            self._refuse()
        return await super().create(resource, obj, **options)

    def _refuse(self) -> None:
        if self.left:
            self.left -= 1
            raise ApiError("not today", code=500, reason="InternalError")


class Cluster:
    def __init__(self, kube: Refusing) -> None:
        self.kube = kube

    async def pod(self, name: str, number: int = 1) -> None:
        body = {"metadata": {"name": name}, "spec": {"containers": [_asking(number)]}}
        await self.kube.create(PODS, body, namespace="default")
        await rest(2)

    async def said(self, name: str) -> tuple[str, str, str]:
        """Where it is, or the reason and the words."""
        pod = await self.kube.get(PODS, name, namespace="default")
        condition = condition_of(pod, "PodScheduled") or {}
        return node_name_of(pod), str(condition.get("reason", "")), str(condition.get("message", ""))

    async def claims(self) -> list[Object]:
        return list((await self.kube.list(RESOURCE_CLAIMS, namespace="default")).items)


def play(story: Callable[[Cluster], Awaitable[None]], *, offered: int = 1) -> None:
    release = cluster_release("1.37")

    async def main() -> None:
        clock = virtual_clock()
        kube = Refusing(fresh_store(clock.now, stream(1, "store"), attended=True, release=release))
        await furnish(kube, offered)
        await raise_stage(kube, clock, name="east", labels={})
        run = ["resourceclaim-controller", "garbage-collector-controller"]
        context = [Context(kube, clock, stream(1, name), _LOG) for name in ("controllers", "scheduler")]
        profile = SchedulerProfile("default-scheduler", default_plugins(devices=features_of(release)))
        parts = (
            ControllerManager(context[0], Pace(), controllers=run),
            Scheduler(context[1], SchedulerConfig((profile,))),
        )
        tasks = [asyncio.create_task(part.run()) for part in parts]
        try:
            await story(Cluster(kube))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run_virtual(main)


async def furnish(kube: KubeApi, offered: int) -> None:
    await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
    await kube.create(DEVICE_CLASSES, {"metadata": {"name": "k"}, "spec": {"extendedResourceName": GPU}})
    await kube.create(RESOURCE_SLICES, offer(*(device(f"gpu-{n}") for n in range(offered))))


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ("claim", "create claim for extended resources default/: not today"),
        ("status of pod", "update pod default/p ExtendedResourceClaimStatus: not today"),
    ],
)
def test_an_attempt_that_fails_leaves_no_claim_and_no_device_taken(refused: str, words: str) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.kube.refused, cluster.kube.left = refused, 1
        body = {"metadata": {"name": "p"}, "spec": {"containers": [_asking(1)]}}
        await cluster.kube.create(PODS, body, namespace="default")
        await rest(0.5)
        assert await cluster.said("p") == ("", "SchedulerError", f'running PreBind plugin "DynamicResources": {words}')
        assert await cluster.claims() == []
        await rest(5)
        assert (await cluster.said("p"))[0] == "east"
        assert len(await cluster.claims()) == 1

    play(story)


def _asking(number: int) -> dict[str, Any]:
    return {"name": "m", "image": "x", "resources": {"limits": {GPU: str(number)}}}


def test_a_pod_whose_class_comes_later_is_tried_then() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.kube.delete(DEVICE_CLASSES, "k")
        await rest(1)
        await cluster.pod("p")
        assert (await cluster.said("p"))[2].startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")
        await cluster.kube.create(DEVICE_CLASSES, {"metadata": {"name": "l"}, "spec": {"extendedResourceName": GPU}})
        await rest(2)
        assert (await cluster.said("p"))[0] == "east"

    play(story)


def test_the_claim_of_a_pod_that_has_ended_goes_and_the_next_pod_has_its_device() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.pod("first")
        await cluster.pod("second")
        assert (await cluster.said("second"))[2].startswith("0/1 nodes are available: 1 cannot allocate all claims.")
        done = {"status": {"phase": "Succeeded"}}
        await cluster.kube.patch(PODS, "first", done, kind=Patch.MERGE, namespace="default", subresource="status")
        await rest(30)
        assert (await cluster.said("second"))[0] == "east"
        (claim,) = await cluster.claims()
        assert claim["metadata"]["generateName"] == "second-extended-resources-"

    play(story)


def test_a_claim_that_is_left_of_an_attempt_is_deleted_and_the_pod_tried_again() -> None:
    async def story(cluster: Cluster) -> None:
        spec = {"containers": [_asking(1)], "schedulingGates": [{"name": "example.com/g"}]}
        pod = await cluster.kube.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, namespace="default")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(pod), "controller": True}
        metadata = {"name": "left", "annotations": {OF_EXTENDED: "true"}, "ownerReferences": [owner]}
        request = {"name": "r", "exactly": {"deviceClassName": "k"}}
        body = {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}
        made = await cluster.kube.create(RESOURCE_CLAIMS, body, namespace="default")
        result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "gpu-0"}
        status = {"allocation": {"devices": {"results": [result]}}}
        await cluster.kube.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")
        ungated = [{"op": "remove", "path": "/spec/schedulingGates"}]
        await cluster.kube.patch(PODS, "p", ungated, kind=Patch.JSON, namespace="default")
        await rest(5)
        assert (await cluster.said("p"))[0] == "east"
        assert [claim["metadata"].get("generateName") for claim in await cluster.claims()] == ["p-extended-resources-"]
        notes = [event["note"] for event in (await cluster.kube.list(NEW_EVENTS, namespace="default")).items]
        assert any("1 cannot schedule extended resource claim. deletion of ResourceClaim completed" in n for n in notes)

    play(story)

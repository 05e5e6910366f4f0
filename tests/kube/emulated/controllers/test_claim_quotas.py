"""Quotas of devices by class and of extended resources (upstream quota/v1/evaluator/core/resource_claims_test.go)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.claim_quota import devices_by_class, extended_usage, is_used_by_claims, stands_for
from mews.kube.api.errors import ForbiddenError
from mews.kube.api.objects import Object, uid_of
from mews.kube.api.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS, SERVICE_ACCOUNTS
from mews.kube.client.port import DeleteOptions, Patch
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.releases.cluster_release import cluster_release
from tests.kube.emulated.controllers.test_controllers import running

DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
IMPLICIT, EXPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu", "requests.example.com/gpu"
ANNOTATION = {"resource.kubernetes.io/extended-resource-claim": "true"}


def exact(count: int | None = None, *, mode: str = "ExactCount", of: str = "gpu") -> dict[str, Any]:
    """One request, or alternative."""
    counted = {} if count is None else {"count": count}
    return {"deviceClassName": of, "allocationMode": mode, **counted}


def claim_of(*requests: Mapping[str, Any]) -> Object:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests)}}}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([{"exactly": exact(2)}], {"gpu": 2}),
        ([{"exactly": exact(2)}, {"exactly": exact(1)}, {"exactly": exact(1, of="fan")}], {"gpu": 3, "fan": 1}),
        ([{"exactly": exact(mode="All")}], {"gpu": 32}),
        ([{"exactly": exact(5, mode="Later")}], {"gpu": 0}),
        ([{"firstAvailable": [exact(1), exact(3), exact(2)]}], {"gpu": 3}),
        ([{"firstAvailable": [exact(1), exact(2, of="fan")]}, {"firstAvailable": [exact(4)]}], {"gpu": 5, "fan": 2}),
        ([{"firstAvailable": [exact(1), exact(mode="All")]}], {"gpu": 32}),
        ([{}], {}),
    ],
)
def test_a_claim_uses_the_most_devices_that_each_request_may_get(
    requests: list[dict[str, Any]], expected: Mapping[str, int]
) -> None:
    found = devices_by_class(claim_of(*requests))
    assert found == {f"{name}.deviceclass.resource.k8s.io/devices": Decimal(count) for name, count in expected.items()}


@pytest.mark.parametrize(
    ("resources", "pod", "expected"),
    [
        ({"gpu": "example.com/gpu"}, {}, {IMPLICIT: 3, EXPLICIT: 3}),
        ({"gpu": ""}, {}, {IMPLICIT: 3}),
        ({"fan": "example.com/gpu"}, {}, {}),
        ({"gpu": "example.com/gpu"}, {EXPLICIT: Decimal(1)}, {IMPLICIT: 3, EXPLICIT: 2}),
        ({"gpu": "example.com/gpu"}, {EXPLICIT: Decimal(3), IMPLICIT: Decimal(4)}, {}),
    ],
)
def test_a_claim_uses_what_its_classes_stand_for_but_not_what_its_pod_is_counted_for(
    resources: Mapping[str, str], pod: Mapping[str, Decimal], expected: Mapping[str, int]
) -> None:
    assert extended_usage(claim_of({"exactly": exact(3)}), resources, pod) == expected


@pytest.mark.parametrize(
    ("name", "used"),
    [
        (DEVICES, True),
        ("other.deviceclass.resource.k8s.io/devices", True),
        (EXPLICIT, True),
        (IMPLICIT, True),
        ("requests.deviceclass.resource.kubernetes.io/other", False),
        ("requests.example.com/other", False),
        ("example.com/gpu", False),
        ("requests.cpu", False),
        ("requests.gpu", False),
        ("pods", False),
    ],
)
def test_which_names_of_a_quota_claims_use(name: str, used: bool) -> None:
    assert is_used_by_claims(name, {"gpu": "example.com/gpu", "plain": ""}) is used


def owned(name: str, *, created: str = "2026-01-01T00:00:00Z", uid: str = "u", **more: Any) -> Object:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    metadata = {"name": name, "creationTimestamp": created, "annotations": ANNOTATION, "ownerReferences": [owner]}
    return {"metadata": {**metadata, **more}}


EARLIER = "2025-12-31T00:00:00Z"


@pytest.mark.parametrize(
    ("claim", "status", "others", "expected"),
    [
        (owned("b"), {}, [], True),
        (owned("b"), {}, [owned("c"), owned("a", uid="other"), owned("a", annotations={})], True),
        (owned("b"), {}, [owned("a")], False),
        (owned("b"), {}, [owned("c", created=EARLIER)], False),
        (owned("b", uid="other"), {}, [], False),
        (owned("b"), {"resourceClaimName": "b"}, [owned("a")], True),
        (owned("b"), {"resourceClaimName": "a"}, [], False),
    ],
)
def test_a_pod_is_counted_for_one_claim_alone(
    claim: Object, status: dict[str, str], others: list[Object], expected: bool
) -> None:
    pod = {"metadata": {"name": "p", "uid": "u"}, "status": {"extendedResourceClaimStatus": status}}
    assert stands_for(claim, pod, [claim, *others]) is expected
    assert not stands_for(claim, None, [claim])


# In a cluster


class Cluster:
    def __init__(self, release: str) -> None:
        self.limit = 70
        clock = virtual_clock()
        store = fresh_store(clock.now, stream(1, "store"), attended=True, release=cluster_release(release))
        self.kube = InProcessKube(store)
        context = Context(self.kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        self.controllers = ControllerManager(context, Pace(), controllers=["resourcequota-controller"])

    async def quota(self, **hard: str) -> None:
        body = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
        await self.kube.create(RESOURCE_QUOTAS, body, namespace="default")
        await rest(1)

    async def used(self) -> dict[str, str]:
        status = (await self.kube.get(RESOURCE_QUOTAS, "q", namespace="default"))["status"]
        return {name: amount for name, amount in status["used"].items() if name != "pods"}

    async def recounted(self) -> dict[str, str]:
        """What the controller counts: it is asked by another limit."""
        self.limit += 1
        limit = {"spec": {"hard": {"pods": str(self.limit)}}}
        await self.kube.patch(RESOURCE_QUOTAS, "q", limit, kind=Patch.MERGE, namespace="default")
        await rest(1)
        return await self.used()

    async def claim(self, name: str, count: int, **metadata: Any) -> Object:
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]
        body = {"metadata": {"name": name, **metadata}, "spec": {"devices": {"requests": requests}}}
        return await self.kube.create(RESOURCE_CLAIMS, body, namespace="default")

    async def pod(self, gpus: str) -> Object:
        container = {"name": "m", "image": "x", "resources": {"limits": {"example.com/gpu": gpus}}}
        body = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        return await self.kube.create(PODS, body, namespace="default")


def play(story: Callable[[Cluster], Awaitable[None]], release: str = "1.37") -> None:
    async def main() -> None:
        cluster = Cluster(release)
        await cluster.kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        spec = {"extendedResourceName": "example.com/gpu"}
        await cluster.kube.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": spec})
        async with running(cluster.controllers):
            await story(cluster)

    run_virtual(main)


@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_devices_of_a_class_are_counted_as_claims_come_and_go(release: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim("before", 1)
        await cluster.quota(**{DEVICES: "4"})
        assert await cluster.used() == {DEVICES: "1"}
        await cluster.claim("a", 2)
        assert await cluster.used() == {DEVICES: "3"}
        with pytest.raises(
            ForbiddenError, match=f"exceeded quota: q, requested: {DEVICES}=2, used: {DEVICES}=3, limited"
        ):
            await cluster.claim("b", 2)
        await cluster.kube.delete(RESOURCE_CLAIMS, "a", namespace="default", options=DeleteOptions(grace_period_s=0))
        await rest(1)
        assert await cluster.used() == {DEVICES: "1"}
        assert await cluster.recounted() == {DEVICES: "1"}

    play(story, release)


def test_a_claim_counts_as_the_extended_resource_of_its_class() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.quota(**{EXPLICIT: "4", IMPLICIT: "9"})
        await cluster.pod("1")
        await cluster.claim("a", 2)
        assert await cluster.used() == {EXPLICIT: "3", IMPLICIT: "2"}
        assert await cluster.recounted() == {EXPLICIT: "3", IMPLICIT: "2"}
        with pytest.raises(ForbiddenError, match=f"exceeded quota: q, requested: {EXPLICIT}=2, used: {EXPLICIT}=3"):
            await cluster.claim("b", 2)

    play(story)


def test_a_quota_that_comes_later_counts_pods_and_claims() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.pod("1")
        await cluster.claim("a", 2)
        await cluster.quota(**{EXPLICIT: "4"})
        assert await cluster.used() == {EXPLICIT: "3"}

    play(story)


def test_the_claim_of_a_pods_extended_resources_is_counted_once() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.quota(**{EXPLICIT: "4", IMPLICIT: "9"})
        pod = await cluster.pod("2")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(pod), "controller": True}
        await cluster.claim("a", 2, annotations=ANNOTATION, ownerReferences=[owner])
        assert await cluster.used() == {EXPLICIT: "2", IMPLICIT: "2"}
        assert await cluster.recounted() == {EXPLICIT: "2", IMPLICIT: "2"}
        await cluster.claim("b", 2, annotations=ANNOTATION, ownerReferences=[owner])
        assert await cluster.used() == {EXPLICIT: "4", IMPLICIT: "4"}
        assert await cluster.recounted() == {EXPLICIT: "4", IMPLICIT: "4"}

    play(story)


def test_without_the_feature_a_claim_is_no_extended_resource() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.quota(**{EXPLICIT: "4"})
        await cluster.claim("a", 5)
        assert await cluster.used() == await cluster.recounted() == {EXPLICIT: "0"}

    play(story, "1.34")

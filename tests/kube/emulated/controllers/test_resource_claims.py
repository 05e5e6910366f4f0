"""The life of resource claims besides their allocation, in virtual time (upstream resourceclaim/controller_test.go)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, name_of, uid_of
from mews.kube.api.resource_claims import DELETE_PROTECTION
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SERVICE_ACCOUNTS,
    Resource,
)
from mews.kube.client.port import DeleteOptions
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.emulated.controllers.resource_claims import generated_name
from tests.kube.emulated.controllers.test_controllers import running

SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k"}}]}}
ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "gpu-0"}]}}


class Cluster:
    def __init__(self) -> None:
        clock = virtual_clock()
        self.kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True))
        context = Context(self.kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        self.controllers = ControllerManager(context, Pace(), controllers=["resourceclaim-controller"])

    async def pod(self, *entries: dict[str, str], **spec: Any) -> Object:
        claims = [{"name": f"e{n}", **entry} for n, entry in enumerate(entries)]
        body = {"containers": [{"name": "m", "image": "x"}], "resourceClaims": claims, **spec}
        made = await self.kube.create(PODS, {"metadata": {"name": "p"}, "spec": body}, namespace="default")
        await rest(1)
        return made

    async def claim(self, **metadata: Any) -> Object:
        body = {"metadata": {"name": "c", **metadata}, "spec": SPEC}
        return await self.kube.create(RESOURCE_CLAIMS, body, namespace="default")

    async def allocate(self, name: str, *reserved: dict[str, str]) -> None:
        """As the scheduler does: the finalizer first."""
        claim = await self.kube.get(RESOURCE_CLAIMS, name, namespace="default")
        claim["metadata"]["finalizers"] = [DELETE_PROTECTION]
        claim = await self.kube.replace(RESOURCE_CLAIMS, claim)
        status = {"allocation": ALLOCATION, **({"reservedFor": list(reserved)} if reserved else {})}
        await self.kube.replace(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")
        await rest(1)

    async def ends(self, phase: str = "Succeeded") -> None:
        pod = await self.kube.get(PODS, "p", namespace="default")
        status = {**(pod.get("status") or {}), "phase": phase}
        await self.kube.replace(PODS, {**pod, "status": status}, subresource="status")
        await rest(1)

    async def delete(self, resource: Resource, name: str) -> None:
        await self.kube.delete(resource, name, namespace="default", options=DeleteOptions(grace_period_s=0))
        await rest(1)

    async def claims(self) -> list[Object]:
        return list((await self.kube.list(RESOURCE_CLAIMS, namespace="default")).items)

    async def one(self) -> Object:
        (claim,) = await self.claims()
        return claim


def play(story: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        cluster = Cluster()
        await cluster.kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        await cluster.kube.create(DEVICE_CLASSES, {"metadata": {"name": "k"}, "spec": {}})
        marked = {"labels": {"team": "red"}, "annotations": {"note": "kept"}}
        template = {"metadata": {"name": "t"}, "spec": {"metadata": marked, "spec": SPEC}}
        await cluster.kube.create(RESOURCE_CLAIM_TEMPLATES, template, namespace="default")
        async with running(cluster.controllers):
            await story(cluster)

    run_virtual(main)


def holder(pod: Object) -> dict[str, str]:
    return {"resource": "pods", "name": name_of(pod), "uid": uid_of(pod)}


TEMPLATE, CLAIM = {"resourceClaimTemplateName": "t"}, {"resourceClaimName": "c"}


def test_a_claim_of_a_template_is_the_pods_own_and_named_in_its_status() -> None:
    async def story(cluster: Cluster) -> None:
        pod = await cluster.pod(TEMPLATE, TEMPLATE)
        made = await cluster.claims()
        entries = [claim["metadata"]["annotations"].pop("resource.kubernetes.io/pod-claim-name") for claim in made]
        assert sorted(entries) == ["e0", "e1"]
        for entry, claim in zip(entries, made, strict=True):
            metadata = claim["metadata"]
            assert metadata["generateName"] == f"p-{entry}-"
            assert (metadata["labels"], metadata["annotations"]) == ({"team": "red"}, {"note": "kept"})
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(pod)}
            assert metadata["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
        told = (await cluster.kube.get(PODS, "p", namespace="default"))["status"]["resourceClaimStatuses"]
        assert {each["name"]: each["resourceClaimName"] for each in told} == {
            entry: name_of(claim) for entry, claim in zip(entries, made, strict=True)
        }

    play(story)


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "ended"])
def test_a_claim_of_the_users_is_given_up_with_its_last_pod_and_stays(deleted: bool) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim()
        pod = await cluster.pod(CLAIM)
        await cluster.allocate("c", holder(pod))
        assert (await cluster.one())["status"]["allocation"]
        await (cluster.delete(PODS, "p") if deleted else cluster.ends())
        claim = await cluster.one()
        assert claim.get("status") in (None, {})
        assert not claim["metadata"].get("finalizers")

    play(story)


def test_a_generated_claim_goes_with_the_end_of_its_pod() -> None:
    async def story(cluster: Cluster) -> None:
        pod = await cluster.pod(TEMPLATE)
        await cluster.allocate(name_of(await cluster.one()), holder(pod))
        await cluster.ends("Failed")
        assert await cluster.claims() == []
        assert (await cluster.kube.get(PODS, "p", namespace="default"))["status"]["resourceClaimStatuses"]

    play(story)


def test_a_reservation_of_a_pod_that_is_not_there_goes_and_that_of_another_stays() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim()
        pod = await cluster.pod(CLAIM)
        await cluster.allocate("c", {"resource": "pods", "name": "p", "uid": "another"}, holder(pod))
        claim = await cluster.one()
        assert claim["status"]["reservedFor"] == [holder(pod)]
        assert claim["status"]["allocation"]
        assert claim["metadata"]["finalizers"] == [DELETE_PROTECTION]

    play(story)


def test_an_allocation_that_nobody_ever_reserved_stays_until_its_claim_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim()
        await cluster.allocate("c")
        assert (await cluster.one())["status"]["allocation"]
        await cluster.delete(RESOURCE_CLAIMS, "c")
        assert await cluster.claims() == []

    play(story)


def test_a_claim_in_use_outlives_its_deletion_until_its_pod_is_done() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim()
        pod = await cluster.pod(CLAIM)
        await cluster.allocate("c", holder(pod))
        await cluster.delete(RESOURCE_CLAIMS, "c")
        assert (await cluster.one())["metadata"]["deletionTimestamp"]
        await cluster.ends()
        assert await cluster.claims() == []

    play(story)


def test_a_pod_that_was_bound_past_the_scheduler_gets_its_reservation() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.claim()
        pod = await cluster.pod(CLAIM, nodeName="n")
        assert "reservedFor" not in ((await cluster.one()).get("status") or {})
        await cluster.allocate("c")
        assert (await cluster.one())["status"]["reservedFor"] == [holder(pod)]

    play(story)


def test_a_claim_that_was_made_before_a_crash_is_adopted_and_one_that_was_deleted_made_again() -> None:
    async def story(cluster: Cluster) -> None:
        pod = await cluster.pod(TEMPLATE)
        first = await cluster.one()
        status = {key: value for key, value in pod["status"].items() if key != "resourceClaimStatuses"}
        pod = await cluster.kube.get(PODS, "p", namespace="default")
        await cluster.kube.replace(PODS, {**pod, "status": status}, subresource="status")
        await rest(1)
        assert await cluster.claims() == [first]
        await cluster.delete(RESOURCE_CLAIMS, name_of(first))
        again = await cluster.one()
        assert uid_of(again) != uid_of(first)
        told = (await cluster.kube.get(PODS, "p", namespace="default"))["status"]["resourceClaimStatuses"]
        assert told == [{"name": "e0", "resourceClaimName": name_of(again)}]

    play(story)


def test_a_claim_of_a_pod_that_was_deleted_before_it_was_bound_goes() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.pod(TEMPLATE, terminationGracePeriodSeconds=30)
        pod = await cluster.kube.get(PODS, "p", namespace="default")
        pod["metadata"]["finalizers"] = ["example.com/held"]
        await cluster.kube.replace(PODS, pod)
        await cluster.kube.delete(PODS, "p", namespace="default")
        await rest(1)
        assert await cluster.claims() == []

    play(story)


@pytest.mark.parametrize(
    ("pod", "entry", "name"),
    [
        ("p", "e", "p-e-"),
        ("p" * 50, "e" * 5, "p" * 50 + "-" + "e" * 5 + "-"),
        ("p" * 60, "e" * 12, "p" * 46 + "-" + "e" * 9),
        ("p" * 63, "e" * 63, "p" * 28 + "-" + "e" * 28),
    ],
)
def test_both_halves_of_a_name_that_is_too_long_give_way(pod: str, entry: str, name: str) -> None:
    assert generated_name(pod, entry) == name
    assert len(name) <= 57


def test_no_claim_is_left_where_there_is_nothing_to_make_it_of() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.pod({"resourceClaimTemplateName": "missing"})
        assert await cluster.claims() == []
        with pytest.raises(NotFoundError):
            await cluster.kube.get(RESOURCE_CLAIMS, "p-e0", namespace="default")

    play(story)


def test_what_a_driver_reports_of_a_device_goes_with_its_allocation() -> None:
    """upstream dra.go 2297: the status of a device must not keep its claim allocated."""

    async def story(cluster: Cluster) -> None:
        await cluster.claim()
        await cluster.allocate("c", holder(await cluster.pod(CLAIM)))
        claim = await cluster.one()
        device = {"driver": "d.example.com", "pool": "p", "device": "gpu-0", "data": {"a": "b"}}
        reported = {**claim, "status": {**claim["status"], "devices": [device]}}
        await cluster.kube.replace(RESOURCE_CLAIMS, reported, subresource="status")
        assert (await cluster.one())["status"]["devices"] == [{**device, "conditions": None}]
        await cluster.ends()
        freed = await cluster.one()
        assert freed.get("status", {}) == {}
        assert "finalizers" not in freed["metadata"]

    play(story)

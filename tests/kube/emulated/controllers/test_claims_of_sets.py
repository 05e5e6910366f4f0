"""The claims of a StatefulSet's pods, service ranges, and the times in Endpoints; in virtual time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import NotFoundError
from mews.kube.api.resources import (
    IP_ADDRESSES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    SERVICE_CIDRS,
    STATEFUL_SETS,
)
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.endpointslice.trigger_times import ANNOTATION, TriggerTimes, annotated
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.emulated.controllers.service_ranges import FINALIZER
from tests.kube.emulated.controllers.test_controllers import running

_RUN = ("statefulset-controller", "service-cidr-controller", "resourcequota-controller")


def play(story: Callable[[InProcessKube], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True))
        context = Context(kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        async with running(ControllerManager(context, Pace(), controllers=_RUN)):
            await story(kube)

    run_virtual(main)


def _set(**policy: str) -> dict[str, Any]:
    labels = {"app": "db"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    pod = {"containers": [{"name": "c", "image": "x"}], "volumes": [{"name": "data", "emptyDir": {}}]}
    return {
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": 2,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"tier": "one"}}, "spec": spec}],
            "persistentVolumeClaimRetentionPolicy": policy,
        },
    }


def _address(name: str, by: str = "ipallocator.k8s.io") -> dict[str, Any]:
    parent = {"resource": "services", "namespace": "default", "name": "s"}
    labels = {"ipaddress.kubernetes.io/managed-by": by}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"parentRef": parent}}


def test_each_pod_of_a_set_has_a_claim_in_place_of_the_volume_of_that_name_and_the_claim_stays() -> None:
    async def story(kube: InProcessKube) -> None:
        await kube.create(STATEFUL_SETS, _set(), namespace="default")
        await rest(5)
        found = (await kube.list(PERSISTENT_VOLUME_CLAIMS, namespace="default")).items
        assert [claim["metadata"]["name"] for claim in found] == ["data-db-0", "data-db-1"]
        assert found[0]["metadata"]["labels"] == {"app": "db", "tier": "one"}
        assert "ownerReferences" not in found[0]["metadata"]
        pod = await kube.get(PODS, "db-1", namespace="default")
        assert pod["spec"]["volumes"][:-1] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
        await kube.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 0}}, namespace="default")
        await rest(60)
        assert len((await kube.list(PERSISTENT_VOLUME_CLAIMS, namespace="default")).items) == 2

    play(story)


def test_a_set_that_deletes_its_claims_with_it_owns_them() -> None:
    async def story(kube: InProcessKube) -> None:
        made = await kube.create(STATEFUL_SETS, _set(whenDeleted="Delete", whenScaled="Retain"), namespace="default")
        await rest(5)
        claim = await kube.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0", namespace="default")
        assert [owner["uid"] for owner in claim["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]

    play(story)


def test_a_service_range_is_ready_and_stays_while_only_it_holds_an_address() -> None:
    async def story(kube: InProcessKube) -> None:
        await kube.create(SERVICE_CIDRS, {"metadata": {"name": "r"}, "spec": {"cidrs": ["10.7.0.0/24"]}})
        await rest(2)
        found = await kube.get(SERVICE_CIDRS, "r")
        assert found["metadata"]["finalizers"] == [FINALIZER]
        assert [condition["status"] for condition in found["status"]["conditions"]] == ["True"]
        await kube.create(IP_ADDRESSES, _address("10.7.0.9"))
        await kube.create(IP_ADDRESSES, _address("10.7.0.10", by="example.com"))
        await kube.delete(SERVICE_CIDRS, "r")
        await rest(2)
        found = await kube.get(SERVICE_CIDRS, "r")
        assert [condition["reason"] for condition in found["status"]["conditions"]] == ["Terminating"]
        await kube.delete(IP_ADDRESSES, "10.7.0.9")
        await rest(2)
        with pytest.raises(NotFoundError):
            await kube.get(SERVICE_CIDRS, "r")

    play(story)


def test_a_pod_comes_back_to_its_claim_where_a_quota_allows_no_further_one() -> None:
    async def story(kube: InProcessKube) -> None:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"persistentvolumeclaims": "2"}}}
        await kube.create(RESOURCE_QUOTAS, quota, namespace="default")
        await rest(5)
        await kube.create(STATEFUL_SETS, _set(), namespace="default")
        await rest(10)
        first = await kube.get(PODS, "db-1", namespace="default")
        await kube.delete(PODS, "db-1", namespace="default")
        await rest(60)
        again = await kube.get(PODS, "db-1", namespace="default")
        assert again["metadata"]["uid"] != first["metadata"]["uid"]

    play(story)


def test_a_pod_waits_until_its_deleted_claim_is_gone_and_gets_a_new_one() -> None:
    async def story(kube: InProcessKube) -> None:
        await kube.create(STATEFUL_SETS, _set(), namespace="default")
        await rest(5)
        first = await kube.get(PERSISTENT_VOLUME_CLAIMS, "data-db-1", namespace="default")
        await kube.patch(
            PERSISTENT_VOLUME_CLAIMS, "data-db-1", {"metadata": {"finalizers": ["a.b/c"]}}, namespace="default"
        )
        await kube.delete(PERSISTENT_VOLUME_CLAIMS, "data-db-1", namespace="default")
        await kube.delete(PODS, "db-1", namespace="default")
        await rest(60)
        with pytest.raises(NotFoundError):
            await kube.get(PODS, "db-1", namespace="default")
        await kube.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-1", {"metadata": {"finalizers": None}}, namespace="default")
        await rest(300)
        await kube.get(PODS, "db-1", namespace="default")
        again = await kube.get(PERSISTENT_VOLUME_CLAIMS, "data-db-1", namespace="default")
        assert again["metadata"]["uid"] != first["metadata"]["uid"]

    play(story)


def test_a_service_range_that_waits_to_go_goes_once_another_holds_its_addresses() -> None:
    async def story(kube: InProcessKube) -> None:
        await kube.create(SERVICE_CIDRS, {"metadata": {"name": "r"}, "spec": {"cidrs": ["10.7.0.0/24"]}})
        await kube.create(IP_ADDRESSES, _address("10.7.0.9"))
        await rest(2)
        await kube.delete(SERVICE_CIDRS, "r")
        await rest(2)
        await kube.get(SERVICE_CIDRS, "r")
        await kube.create(SERVICE_CIDRS, {"metadata": {"name": "wider"}, "spec": {"cidrs": ["10.7.0.0/16"]}})
        await rest(2)
        with pytest.raises(NotFoundError):
            await kube.get(SERVICE_CIDRS, "r")

    play(story)


def test_endpoints_name_the_first_time_that_is_new_since_the_last_look() -> None:
    service = {"metadata": {"name": "s", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"}}

    def pod(name: str, ready_since: str) -> dict[str, Any]:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": ready_since}
        return {"metadata": {"name": name}, "status": {"conditions": [ready]}}

    times, early, late = TriggerTimes(), "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
    assert times.since(service, []) == "2026-01-01T00:00:00Z"
    assert times.since(service, [pod("a", late), pod("b", early)]) == early
    assert times.since(service, [pod("a", late), pod("b", early)]) == ""
    assert times.since(service, [pod("a", late), pod("b", late)]) == late
    service["metadata"]["creationTimestamp"] = "2026-01-01T00:03:00Z"
    assert times.since(service, [pod("a", late)]) == "2026-01-01T00:03:00Z", "another service of that name"
    assert annotated({"name": "s"}, early) == {"name": "s", "annotations": {ANNOTATION: early}}
    assert annotated({"annotations": {ANNOTATION: early}}, "") == {}

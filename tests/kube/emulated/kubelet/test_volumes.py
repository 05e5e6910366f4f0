"""Pods and their volumes: what a kubelet waits for, and what it says of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object
from mews.kube.api.resources import (
    CONFIGMAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    SECRETS,
    Resource,
)
from mews.kube.client.port import DeleteOptions
from mews.kube.emulated.kubelet.in_cluster import FOLDER
from mews.kube.emulated.kubelet.unseen_volumes import explanation, unseen_volumes
from tests.kube.emulated.kubelet.bench import Bench

MOUNT = [
    {"name": "main", "image": "busybox", "command": ["sleep", "9"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
]


def volume(**source: Any) -> list[dict[str, Any]]:
    return [{"name": "v", **source}]


async def make(bench: Bench, resource: Resource, name: str, **body: Any) -> Object:
    namespace = "default" if resource.namespaced else None
    return await bench.kube.create(resource, {"metadata": {"name": name}, **body}, namespace=namespace)


CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "",
    "volumeName": "pv",
    "resources": {"requests": {"storage": "1Gi"}},
}
SETUP = 'MountVolume.SetUp failed for volume "v" : '
UNCLEAR = (
    "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: "
)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"configMap": {"name": "x"}}, f'{SETUP}configmap "x" not found'),
        ({"secret": {"secretName": "x"}}, f'{SETUP}secret "x" not found'),
        (
            {"configMap": {"name": "there", "items": [{"key": "b", "path": "b"}]}},
            f"{SETUP}configmap references non-existent config key: b",
        ),
        (
            {"secret": {"secretName": "there", "items": [{"key": "b", "path": "b"}]}},
            f"{SETUP}references non-existent secret key: b",
        ),
        ({"projected": {"sources": [{"secret": {"name": "x"}}]}}, f'{SETUP}secret "x" not found'),
        (
            {"persistentVolumeClaim": {"claimName": "x"}},
            f'{UNCLEAR}error processing PVC default/x: failed to fetch PVC from API server: persistentvolumeclaims "x" '
            "not found",
        ),
        ({"persistentVolumeClaim": {"claimName": "c"}}, f"{UNCLEAR}error processing PVC default/c: PVC is not bound"),
        ({"configMap": {"name": "x", "optional": True}}, ""),
        ({"configMap": {"name": "there", "items": [{"key": "b", "path": "b"}], "optional": True}}, ""),
        ({"secret": {"secretName": "there", "items": [{"key": "a", "path": "a"}]}}, ""),
        ({"projected": {"sources": [{"configMap": {"name": "there"}}, {"downwardAPI": {}}]}}, ""),
        ({"emptyDir": {}}, ""),
    ],
)
def test_a_pod_starts_once_its_volumes_can_be_had(source: dict[str, Any], words: str) -> None:
    async def main() -> None:
        bench = Bench()
        await make(bench, CONFIGMAPS, "there", data={"a": "1"})
        await make(bench, SECRETS, "there", data={"a": "MQ=="})
        await make(bench, PERSISTENT_VOLUME_CLAIMS, "c", spec=CLAIM)
        async with bench.running():
            await bench.pod("p", containers=MOUNT, volumes=volume(**source))
            if not words:
                await bench.phase("p", "Running", 5.0)
                return
            await asyncio.sleep(10.0)
            pod = await bench.get("p")
            assert pod["status"]["phase"] == "Pending"
            assert pod["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
            assert {event[:3] for event in await bench.events("p")} == {("Warning", "FailedMount", words)}
        await bench.containerd.close()

    run_virtual(main)


def test_a_volume_that_comes_is_found_at_the_next_attempt_each_twice_as_late() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("p", containers=MOUNT, volumes=volume(configMap={"name": "x"}))
            await asyncio.sleep(9.0)  # at 0, 0.5, 1.5, 3.5 and 7.5 s, after it was seen
            assert [event[3] for event in await bench.events("p")] == [5]
            await make(bench, CONFIGMAPS, "x")
            await bench.phase("p", "Running", 12.0)
        await bench.containerd.close()

    run_virtual(main)


def test_a_wait_is_given_up_and_begun_anew_after_two_minutes() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("p", containers=MOUNT, volumes=volume(secret={"secretName": "x"}))
            await asyncio.sleep(122.0)
            given_up = (
                "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process "
                "volumes=[]: context deadline exceeded"
            )
            assert given_up not in [event[2] for event in await bench.events("p")]
            await asyncio.sleep(4.0)
            assert given_up in [event[2] for event in await bench.events("p")]
            await make(bench, SECRETS, "x")
            await bench.phase("p", "Running", 20.0)
        await bench.containerd.close()

    run_virtual(main)


def test_a_bound_claim_must_be_bound_to_a_volume_that_is_the_claims() -> None:
    async def main() -> None:
        bench = Bench()
        claim = await make(bench, PERSISTENT_VOLUME_CLAIMS, "c", spec=CLAIM)
        bound = {**claim, "status": {"phase": "Bound"}}
        await bench.kube.replace(PERSISTENT_VOLUME_CLAIMS, bound, namespace="default", subresource="status")
        spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
        async with bench.running():
            await bench.pod("p", containers=MOUNT, volumes=volume(persistentVolumeClaim={"claimName": "c"}))
            await asyncio.sleep(1.0)
            said = [event[2] for event in await bench.events("p")]
            start = f"{UNCLEAR}error processing PVC default/c: "
            assert said == [f'{start}failed to fetch PV pv from API server: persistentvolumes "pv" not found']
            given = {"name": "c", "namespace": "default", "uid": claim["metadata"]["uid"]}
            await make(bench, PERSISTENT_VOLUMES, "pv", spec={**spec, "claimRef": given})
            await bench.phase("p", "Running", 20.0)
        await bench.containerd.close()

    run_virtual(main)


def test_a_pod_that_waits_for_its_volumes_can_be_deleted() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("p", containers=MOUNT, volumes=volume(configMap={"name": "x"}))
            await asyncio.sleep(40.0)
            await bench.kube.delete(PODS, "p", namespace="default", options=DeleteOptions(grace_period_s=5))
            await asyncio.sleep(5.0)
            assert (await bench.kube.list(PODS, namespace="default")).items == []
        await bench.containerd.close()

    run_virtual(main)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"resourceClaimName": "x"}, 'fetch ResourceClaim x: resourceclaims.resource.k8s.io "x" not found'),
        ({"resourceClaimTemplateName": "x"}, 'pod "default/p": ResourceClaim not created yet'),
        ({"resourceClaimName": "there"}, "pod p (POD) is not allowed to use ResourceClaim there (CLAIM)"),
    ],
)
def test_a_pod_with_resource_claims_does_not_run_even_where_it_names_its_node(entry: Any, words: str) -> None:
    async def main() -> None:
        bench = Bench()
        claim = await make(bench, RESOURCE_CLAIMS, "there", spec={})
        async with bench.running():
            made = await bench.pod("p", ["sleep", "9"], resourceClaims=[{"name": "r", **entry}])
            await asyncio.sleep(40.0)
            assert (await bench.get("p"))["status"]["phase"] == "Pending"
            text = words.replace("POD", made["metadata"]["uid"]).replace("CLAIM", claim["metadata"]["uid"])
            ((kind, reason, message, count),) = await bench.events("p")
            assert (kind, reason) == ("Warning", "FailedPrepareDynamicResources")
            assert message == f"Failed to prepare dynamic resources: prepare dynamic resources: {text}"
            assert count in (3, 4)  # again every 10 to 15 s
            await bench.kube.delete(PODS, "p", namespace="default", options=DeleteOptions(grace_period_s=1))
            await asyncio.sleep(5.0)
            assert (await bench.kube.list(PODS, namespace="default")).items == []
        await bench.containerd.close()

    run_virtual(main)


def _pod(*volumes: dict[str, Any], **mounts: str) -> Object:
    mounted = [{"name": name, "mountPath": path} for name, path in mounts.items()]
    return {"spec": {"containers": [{"name": "a", "image": "x", "volumeMounts": mounted}], "volumes": list(volumes)}}


@pytest.mark.parametrize(
    ("pod", "unseen"),
    [
        (_pod({"name": "a", "emptyDir": {}}, a="/data"), ("a",)),
        (_pod({"name": "a", "emptyDir": {}}), ()),
        (_pod({"name": "a", "projected": {}}, a=FOLDER), ()),
        (_pod({"name": "a", "hostPath": {"path": "/dev/shm"}}, a="/dev/shm/"), ()),
        (_pod({"name": "a", "hostPath": {"path": "/dev/shm"}}, a="/shm"), ("a",)),
        (_pod({"name": "b", "secret": {}}, {"name": "a", "configMap": {}}, a="/a", b="/b"), ("b", "a")),
    ],
)
def test_programs_that_run_as_processes_see_no_volume_but_what_lies_there(pod: Object, unseen: tuple[str, ...]) -> None:
    assert unseen_volumes(pod, lambda image: True) == unseen
    assert unseen_volumes(pod, lambda image: False) == ()


def test_one_volume_is_named_as_one() -> None:
    assert explanation(("a",)).startswith("Volume a is not mounted: ")
    assert explanation(("a", "b")).startswith("Volumes a, b are not mounted: ")


def test_why_nothing_can_be_mounted_is_said() -> None:
    assert explanation(("a",), "unshare: forbidden").endswith("of this machine (no namespaces: unshare: forbidden)")

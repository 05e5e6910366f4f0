"""What becomes of pods with claims. Classes and volumes belong to no namespace: each story's have its name in front.

There are two nodes, ``east`` and ``west``, each with its name as its zone, without kubelets: a pod that would run is
one that is bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mews.kube.api.objects import Object, annotations_of, condition_of, node_name_of
from mews.kube.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NEW_EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    Resource,
)
from mews.kube.api.volumes import SELECTED_NODE
from mews.kube.client.port import DeleteOptions, Patch
from tests.kube.emulated.controllers.staging import Stage

CLAIMS, VOLUMES = PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
ZONE = "topology.kubernetes.io/zone"
NOBODY = "kubernetes.io/no-provisioner"
WAITS = "WaitForFirstConsumer"
REFUSED = "refused: "
"""Before the name of a pod among what was seen: what its condition said then."""


# What there is


async def storage_class(stage: Stage, *, mode: str = WAITS, provisioner: str = NOBODY, **more: Any) -> None:
    body = {"metadata": {"name": stage.namespace}, "provisioner": provisioner, "volumeBindingMode": mode, **more}
    await stage.kube.create(STORAGE_CLASSES, body)


def in_zone(*zones: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


async def volume(stage: Stage, name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> None:
    base: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": stage.namespace,
        "persistentVolumeReclaimPolicy": "Retain",
    }
    source = {} if "csi" in spec else {"hostPath": {"path": "/tmp/x"}}
    metadata = {"name": f"{stage.namespace}-{name}", "labels": labels or {}}
    await stage.kube.create(VOLUMES, {"metadata": metadata, "spec": {**base, **source, **spec}})

    async def seen() -> bool:
        return (await stage.kube.get(VOLUMES, metadata["name"])).get("status", {}).get("phase") in (
            "Available",
            "Bound",
        )

    await stage.until(f"{name} is seen", seen)


async def claim(stage: Stage, name: str = "c", size: str = "1Gi", notes: Any = None, **spec: Any) -> None:
    base = {"accessModes": ["ReadWriteOnce"], "storageClassName": stage.namespace}
    requests = {"resources": {"requests": {"storage": size}}}
    await stage.make(CLAIMS, name, metadata={"annotations": notes or {}}, spec={**base, **requests, **spec})
    await asyncio.sleep(1.0)  # the controller has seen it before there is a pod


async def pod(stage: Stage, name: str, *claims: str, zone: str = "", **spec: Any) -> None:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    volumes += spec.pop("volumes", [])
    selector = {"nodeSelector": {ZONE: zone}} if zone else {}
    containers = [{"name": "m", "image": "x"}]
    await stage.make(PODS, name, spec={"containers": containers, "volumes": volumes, **selector, **spec})


async def phase(stage: Stage, name: str, wanted: str, resource: Resource = CLAIMS) -> None:
    async def there() -> bool:
        return bool((await stage.get(resource, name)).get("status", {}).get("phase") == wanted)

    await stage.until(f"{name} is {wanted}", there)


async def bound(stage: Stage, *names: str) -> None:
    async def there() -> bool:
        return all([node_name_of(await stage.get(PODS, name)) for name in names])

    await stage.until(f"{' '.join(names)} bound", there)


async def refused(stage: Stage, name: str, words: str = "") -> None:
    async def there() -> bool:
        found = condition_of(await stage.get(PODS, name), "PodScheduled")
        return found is not None and found["status"] == "False" and words in str(found.get("message"))

    await stage.until(f"{name} refused", there)
    condition = condition_of(await stage.get(PODS, name), "PodScheduled") or {}
    stage.seen.append((f"{REFUSED}{name}", [str(condition.get("message"))]))


async def reported(stage: Stage, reason: str) -> None:
    async def there() -> bool:
        return any(each.get("reason") == reason for each in await events_of(stage))

    await stage.until(f"reported {reason}", there)


async def events_of(stage: Stage) -> Sequence[Object]:
    return await stage.all(NEW_EVENTS)


# Claims that are missing, going or gone


async def missing_claim(stage: Stage) -> None:
    await pod(stage, "p", "c")
    await refused(stage, "p")


async def one_of_two_missing(stage: Stage) -> None:
    await storage_class(stage)
    await volume(stage, "v")
    await claim(stage)
    await pod(stage, "p", "c", "d")
    await refused(stage, "p")


async def claim_comes_late(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate")
    await volume(stage, "v")
    await pod(stage, "p", "c")
    await refused(stage, "p")
    await claim(stage)
    await bound(stage, "p")


async def claim_is_going(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate")
    await volume(stage, "v")
    await claim(stage)
    await phase(stage, "c", "Bound")
    await pod(stage, "first", "c")
    await bound(stage, "first")
    await stage.kube.delete(CLAIMS, "c", namespace=stage.namespace)
    await pod(stage, "second", "c")
    await refused(stage, "second")


async def claim_lost_its_volume(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate")
    await volume(stage, "v")
    await claim(stage)
    await phase(stage, "c", "Bound")
    name = f"{stage.namespace}-v"
    await stage.kube.delete(VOLUMES, name)
    await stage.kube.patch(VOLUMES, name, {"metadata": {"finalizers": None}}, kind=Patch.MERGE)
    await phase(stage, "c", "Lost")
    await pod(stage, "p", "c")
    await refused(stage, "p")


# Claims that are bound at once


async def unbound_without_a_class(stage: Stage) -> None:
    await claim(stage, storageClassName="")
    await pod(stage, "p", "c")
    await refused(stage, "p")
    await reported(stage, "FailedBinding")


async def unbound_of_a_class_that_is_missing(stage: Stage) -> None:
    await claim(stage)
    await pod(stage, "p", "c")
    await refused(stage, "p")
    await reported(stage, "ProvisioningFailed")


async def unbound_with_a_provisioner(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate", provisioner="example.com/x")
    await claim(stage)
    await pod(stage, "p", "c")
    await refused(stage, "p")
    await reported(stage, "ExternalProvisioning")


async def asks_for_a_volume_that_is_missing(stage: Stage) -> None:
    await storage_class(stage)
    await claim(stage, volumeName=f"{stage.namespace}-nowhere")
    await pod(stage, "p", "c")
    await refused(stage, "p")


async def class_comes_late(stage: Stage) -> None:
    await volume(stage, "v")
    # bound at once where no class says otherwise; one that is too large has to wait for the class
    await claim(stage, size="9Gi")
    await pod(stage, "p", "c")
    await refused(stage, "p", "unbound immediate")
    await storage_class(stage)
    await refused(stage, "p", "available persistent volumes")


# Claims that wait for a pod


async def nothing_to_bind(stage: Stage) -> None:
    await storage_class(stage)
    await claim(stage)
    await pod(stage, "p", "c")
    await refused(stage, "p")
    await reported(stage, "WaitForPodScheduled")


async def waits_for_its_first_pod(stage: Stage) -> None:
    await storage_class(stage)
    await volume(stage, "v", **in_zone("east"))
    await claim(stage)
    await reported(stage, "WaitForFirstConsumer")
    await pod(stage, "p", "c")
    await bound(stage, "p")
    await phase(stage, "c", "Bound")


async def takes_the_smallest_volume(stage: Stage) -> None:
    await storage_class(stage)
    for name, size in (("large", "5Gi"), ("fits", "2Gi"), ("small", "1Mi")):
        await volume(stage, name, capacity={"storage": size}, **in_zone("west"))
    await claim(stage)
    await pod(stage, "p", "c")
    await bound(stage, "p")
    await phase(stage, "c", "Bound")


async def two_claims_two_volumes(stage: Stage) -> None:
    await storage_class(stage)
    for name, zone in (("a", "east"), ("b", "west"), ("d", "west")):
        await volume(stage, name, **in_zone(zone))
    await claim(stage, "c")
    await claim(stage, "d")
    await pod(stage, "p", "c", "d")
    await bound(stage, "p")
    await phase(stage, "d", "Bound")


async def volume_comes_late(stage: Stage) -> None:
    await storage_class(stage)
    await volume(stage, "small", capacity={"storage": "1Mi"})
    await claim(stage)
    await pod(stage, "p", "c")
    await refused(stage, "p")
    await volume(stage, "v", **in_zone("west"))
    await bound(stage, "p")


async def volume_elsewhere(stage: Stage) -> None:
    await storage_class(stage)
    await volume(stage, "v", **in_zone("east"))
    await claim(stage)
    await pod(stage, "p", "c", zone="west")
    await refused(stage, "p")


async def asks_its_provisioner(stage: Stage) -> None:
    """The pod waits in PreBind; the provisioner makes a volume on the node that was chosen."""
    await storage_class(stage, provisioner="example.com/x")
    await claim(stage)
    await pod(stage, "p", "c", zone="east")
    await reported(stage, "ExternalProvisioning")

    async def chosen() -> bool:
        return annotations_of(await stage.get(CLAIMS, "c")).get(SELECTED_NODE) == "east"

    await stage.until("a node is chosen", chosen)
    given = {"name": "c", "namespace": stage.namespace, "kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    await volume(stage, "v", claimRef=given, **in_zone("east"))
    await bound(stage, "p")
    await phase(stage, "c", "Bound")


async def provisioner_gives_up(stage: Stage) -> None:
    """It takes the annotation back: the pod is tried anew."""
    await storage_class(stage, provisioner="example.com/x")
    await claim(stage)
    await pod(stage, "p", "c", zone="east")
    await reported(stage, "ExternalProvisioning")
    await stage.change(CLAIMS, "c", {"metadata": {"annotations": {SELECTED_NODE: None}}})
    await refused(stage, "p")


async def chosen_elsewhere(stage: Stage) -> None:
    await storage_class(stage, provisioner="example.com/x")
    await claim(stage, notes={SELECTED_NODE: "west"})
    await pod(stage, "p", "c", zone="east")
    await refused(stage, "p")


async def provisioned_nowhere_near(stage: Stage) -> None:
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["south"]}]}]
    await storage_class(stage, provisioner="example.com/x", allowedTopologies=topology)
    await claim(stage)
    await pod(stage, "p", "c")
    await refused(stage, "p")


async def no_free_storage(stage: Stage) -> None:
    name = stage.namespace
    await stage.kube.create(
        CSI_DRIVERS, {"metadata": {"name": f"{name}.example.com"}, "spec": {"storageCapacity": True}}
    )
    await storage_class(stage, provisioner=f"{name}.example.com")
    await stage.make(
        CSI_STORAGE_CAPACITIES,
        "few",
        storageClassName=name,
        capacity="1Gi",
        nodeTopology={"matchLabels": {ZONE: "east"}},
    )
    await claim(stage, size="5Gi")
    await pod(stage, "p", "c")
    await refused(stage, "p")


# Volumes that are bound


async def reachable_from_nowhere(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate")
    await volume(stage, "v", **in_zone("south"))
    await claim(stage)
    await phase(stage, "c", "Bound")
    await pod(stage, "p", "c")
    await refused(stage, "p")


async def reachable_from_the_other_node(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate")
    await volume(stage, "v", **in_zone("east"))
    await claim(stage)
    await phase(stage, "c", "Bound")
    await pod(stage, "p", "c", zone="west")
    await pod(stage, "q", "c")
    await refused(stage, "p")
    await bound(stage, "q")


async def in_another_zone(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate")
    await volume(stage, "v", labels={ZONE: "south"})
    await claim(stage)
    await phase(stage, "c", "Bound")
    await pod(stage, "p", "c")
    await refused(stage, "p")


async def for_one_pod_alone(stage: Stage) -> None:
    await storage_class(stage, mode="Immediate")
    await volume(stage, "v", accessModes=["ReadWriteOncePod"])
    await claim(stage, accessModes=["ReadWriteOncePod"])
    await phase(stage, "c", "Bound")
    await pod(stage, "first", "c")
    await bound(stage, "first")
    await pod(stage, "second", "c")
    await refused(stage, "second")
    await stage.kube.delete(PODS, "first", namespace=stage.namespace, options=DeleteOptions(grace_period_s=0))
    await bound(stage, "second")


async def one_disk_two_pods(stage: Stage) -> None:
    disk = [{"name": "d", "gcePersistentDisk": {"pdName": stage.namespace}}]
    await pod(stage, "first", zone="east", volumes=disk)
    await bound(stage, "first")
    await pod(stage, "second", zone="east", volumes=disk)
    await refused(stage, "second")


async def too_many_volumes(stage: Stage) -> None:
    driver = f"{stage.namespace}.example.com"
    drivers = [{"name": driver, "nodeID": "west", "allocatable": {"count": 1}}]
    await stage.kube.create(CSI_NODES, {"metadata": {"name": "west"}, "spec": {"drivers": drivers}})
    await storage_class(stage, mode="Immediate")
    for name in ("a", "b"):
        await volume(stage, name, csi={"driver": driver, "volumeHandle": name})
        await claim(stage, name, volumeName=f"{stage.namespace}-{name}")
        await phase(stage, name, "Bound")
    await pod(stage, "first", "a", zone="west")
    await bound(stage, "first")
    await pod(stage, "second", "b", zone="west")
    await refused(stage, "second")


# Claims that are made for a pod


def ephemeral(stage: Stage) -> list[dict[str, Any]]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": stage.namespace,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return [{"name": "e", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}}]


async def ephemeral_volume(stage: Stage) -> None:
    await storage_class(stage)
    await volume(stage, "v", **in_zone("west"))
    await pod(stage, "p", volumes=ephemeral(stage))
    await bound(stage, "p")
    await phase(stage, "p-e", "Bound")


async def ephemeral_volume_of_another(stage: Stage) -> None:
    await storage_class(stage)
    await claim(stage, "p-e")
    await pod(stage, "p", volumes=ephemeral(stage))
    await refused(stage, "p")


# Resource claims


def one_device(device_class: str) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": device_class}}]}}


async def _unheard_of(stage: Stage) -> None:
    """Nothing is said of the pod for a while."""

    async def silent() -> bool:
        return condition_of(await stage.get(PODS, "p"), "PodScheduled") is None

    await stage.until("nothing is said", silent)


async def no_resource_claim(stage: Stage) -> None:
    await pod(stage, "p", resourceClaims=[{"name": "r", "resourceClaimName": "nowhere"}])
    await _unheard_of(stage)


async def no_template(stage: Stage) -> None:
    await pod(stage, "p", resourceClaims=[{"name": "r", "resourceClaimTemplateName": "nowhere"}])
    await reported(stage, "FailedResourceClaimCreation")
    await _unheard_of(stage)


async def no_device_class(stage: Stage) -> None:
    await stage.make(RESOURCE_CLAIMS, "d", spec=one_device(stage.namespace))
    await pod(stage, "p", resourceClaims=[{"name": "r", "resourceClaimName": "d"}])
    await refused(stage, "p")


async def no_device(stage: Stage) -> None:
    await stage.kube.create(DEVICE_CLASSES, {"metadata": {"name": stage.namespace}, "spec": {}})
    await stage.make(RESOURCE_CLAIMS, "d", spec=one_device(stage.namespace))
    await pod(stage, "p", resourceClaims=[{"name": "r", "resourceClaimName": "d"}])
    await refused(stage, "p")


async def template_without_devices(stage: Stage) -> None:
    await stage.kube.create(DEVICE_CLASSES, {"metadata": {"name": stage.namespace}, "spec": {}})
    await stage.make(RESOURCE_CLAIM_TEMPLATES, "t", spec={"spec": one_device(stage.namespace)})
    await pod(stage, "p", resourceClaims=[{"name": "r", "resourceClaimTemplateName": "t"}])
    await refused(stage, "p")


async def resource_claim_comes_late(stage: Stage) -> None:
    await stage.kube.create(DEVICE_CLASSES, {"metadata": {"name": stage.namespace}, "spec": {}})
    await pod(stage, "p", resourceClaims=[{"name": "r", "resourceClaimName": "d"}])
    await _unheard_of(stage)
    await stage.make(RESOURCE_CLAIMS, "d", spec=one_device(stage.namespace))
    await refused(stage, "p")


async def template_comes_late(stage: Stage) -> None:
    await stage.kube.create(DEVICE_CLASSES, {"metadata": {"name": stage.namespace}, "spec": {}})
    await pod(stage, "p", resourceClaims=[{"name": "r", "resourceClaimTemplateName": "t"}])
    await reported(stage, "FailedResourceClaimCreation")
    await stage.make(RESOURCE_CLAIM_TEMPLATES, "t", spec={"spec": one_device(stage.namespace)})
    await refused(stage, "p")


STORIES = (
    missing_claim,
    one_of_two_missing,
    claim_comes_late,
    claim_is_going,
    claim_lost_its_volume,
    unbound_without_a_class,
    unbound_of_a_class_that_is_missing,
    unbound_with_a_provisioner,
    asks_for_a_volume_that_is_missing,
    class_comes_late,
    nothing_to_bind,
    waits_for_its_first_pod,
    takes_the_smallest_volume,
    two_claims_two_volumes,
    volume_comes_late,
    volume_elsewhere,
    asks_its_provisioner,
    provisioner_gives_up,
    chosen_elsewhere,
    provisioned_nowhere_near,
    no_free_storage,
    reachable_from_nowhere,
    reachable_from_the_other_node,
    in_another_zone,
    for_one_pod_alone,
    one_disk_two_pods,
    too_many_volumes,
    ephemeral_volume,
    ephemeral_volume_of_another,
    no_resource_claim,
    no_template,
    no_device_class,
    no_device,
    template_without_devices,
    resource_claim_comes_late,
    template_comes_late,
)

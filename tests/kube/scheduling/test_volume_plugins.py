"""The plugins for volumes and claims, asked directly: situations of upstream's tables (volumebinding, volumezone,
volumerestrictions, nodevolumelimits, dynamicresources), as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from mews.kube.api.objects import Object, key_of
from mews.kube.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from mews.kube.api.volumes import BIND_COMPLETED, SELECTED_NODE
from mews.kube.scheduling.framework import Code, CycleState, Status
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.claim_binder import NO_ROOM, NO_SUCH_VOLUME, NO_VOLUME, OTHER_NODE
from mews.kube.scheduling.plugins.claims import DynamicResources
from mews.kube.scheduling.plugins.volume_binding import VolumeBinding
from mews.kube.scheduling.plugins.volume_limits import NodeVolumeLimits
from mews.kube.scheduling.plugins.volume_restrictions import VolumeRestrictions, same_disk
from mews.kube.scheduling.plugins.volume_zone import VolumeZone, demands_of
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.wake import Wake
from tests.kube.scheduling.world import node as make_node
from tests.kube.scheduling.world import pod as make_pod

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
NOBODY = "kubernetes.io/no-provisioner"


class Shelf:
    """An informer that has what it was given."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._objects = {key_of(obj): obj for obj in objects}

    def get(self, name: str, namespace: str | None = None) -> Object | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def at(self, key: str) -> Object | None:
        return self._objects.get(key)

    def items(self) -> list[Object]:
        return [self._objects[key] for key in sorted(self._objects)]

    def on_change(self, handler: object) -> None:
        pass


class Bench:
    """The handle of a scheduler that knows these objects, and one node ``n`` with these pods."""

    def __init__(self, objects: dict[Resource, list[Object]], *pods: Object, labels: dict[str, str] | None = None):
        self._objects = objects
        self.context = self
        self.kube = self.clock = None
        self.node = NodeInfo("n", make_node("n", labels=labels or {}))
        for each in pods:
            self.node.add(pod_info(each))
        self.nodes = {"n": self.node}

    def informer(self, resource: Resource, namespace: str | None = None) -> Shelf:
        return Shelf(self._objects.get(resource, []))

    def late_informer(self, resource: Resource, needed_by: object) -> Shelf:
        return self.informer(resource)

    def verdict(self, make: Any, pod: Object) -> Status:
        """What PreFilter says, or Filter where that has nothing against it."""
        plugin, state, info = make(self), CycleState(), pod_info(pod)
        status = plugin.pre_filter(state, info)
        return status if not status.ok else plugin.filter(state, info, self.node)


def pod(*claims: str, name: str = "p", namespace: str = "default", **spec: Any) -> Object:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    made = make_pod(name, volumes=[*volumes, *spec.pop("volumes", [])], **spec)
    made["metadata"] |= {"uid": name, "namespace": namespace}
    return made


def claim(name: str = "c", *, phase: str = "", notes: Any = None, going: bool = False, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": dict(notes or {})}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if "owner" in spec:
        metadata["ownerReferences"] = [{"controller": True, "uid": spec.pop("owner")}]
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "storageClassName": "late"}
    return {"metadata": metadata, "spec": {**base, **spec}, "status": {"phase": phase or "Pending"}}


def bound(name: str = "c", volume: str = "v", **spec: Any) -> Object:
    return claim(name, phase="Bound", notes={BIND_COMPLETED: "yes"}, volumeName=volume, **spec)


def volume(name: str = "v", size: str = "2Gi", *, labels: Any = None, phase: str = "Available", **spec: Any) -> Object:
    base = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": "late"}
    metadata = {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})}
    return {"metadata": metadata, "spec": {**base, **spec}, "status": {"phase": phase}}


def reach(*zones: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


def storage_class(
    name: str = "late", provisioner: str = NOBODY, mode: str = "WaitForFirstConsumer", **more: Any
) -> Object:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}


CLASSES = [storage_class(), storage_class("made", "example.com/x"), storage_class("now", "example.com/x", "Immediate")]
TOPOLOGY = [{"matchLabelExpressions": [{"key": ZONE, "values": ["south"]}]}]

BINDING: dict[str, tuple[list[Object], list[Object], str]] = {
    "all bound": ([bound()], [volume(**reach("east"))], ""),
    "claim missing": ([], [], 'persistentvolumeclaim "c" not found'),
    "claim of another namespace": (
        [{**claim(), "metadata": {"name": "c", "namespace": "other"}}],
        [],
        'persistentvolumeclaim "c" not found',
    ),
    "claim lost": (
        [claim(phase="Lost", volumeName="gone")],
        [],
        'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
    ),
    "claim going": ([claim(going=True)], [], 'persistentvolumeclaim "c" is being deleted'),
    "lost and going": (
        [claim(phase="Lost", going=True, volumeName="gone")],
        [],
        'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
    ),
    "bound at once, unbound": (
        [claim(storageClassName="now")],
        [],
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "without a class, unbound": ([claim(storageClassName="")], [], "pod has unbound immediate PersistentVolumeClaims"),
    "of a class that is missing": (
        [claim(storageClassName="nowhere")],
        [],
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "asks for a volume of its own": (
        [claim(volumeName="v")],
        [volume()],
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "half bound": (
        [claim(phase="Bound", volumeName="v")],
        [volume()],
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "bound elsewhere": ([bound()], [volume(**reach("west"))], OTHER_NODE),
    "bound to nothing": ([bound()], [], NO_SUCH_VOLUME),
    "nothing to bind": ([claim()], [], NO_VOLUME),
    "a volume to bind": ([claim()], [volume()], ""),
    "a volume that is too small": ([claim()], [volume(size="1Gi")], NO_VOLUME),
    "a volume of another class": ([claim()], [volume(storageClassName="other")], NO_VOLUME),
    "a volume of another mode": ([claim()], [volume(volumeMode="Block")], NO_VOLUME),
    "a volume with other access": ([claim()], [volume(accessModes=["ReadOnlyMany"])], NO_VOLUME),
    "a volume not seen yet": ([claim()], [volume(phase="Pending")], NO_VOLUME),
    "a volume of another claim": (
        [claim()],
        [volume(claimRef={"name": "d", "namespace": "default", "uid": "x"})],
        NO_VOLUME,
    ),
    "a volume elsewhere": ([claim()], [volume(**reach("west"))], NO_VOLUME),
    "a promised volume": ([claim()], [volume(claimRef={"name": "c", "namespace": "default"}, phase="Bound")], ""),
    "a promised volume elsewhere": (
        [claim()],
        [volume(claimRef={"name": "c", "namespace": "default"}, **reach("west")), volume("free")],
        NO_VOLUME,
    ),
    "chosen by labels": ([claim(selector={"matchLabels": {"a": "b"}})], [volume(labels={"a": "b"})], ""),
    "no volume of those labels": ([claim(selector={"matchLabels": {"a": "b"}})], [volume()], NO_VOLUME),
    "to be made": ([claim(storageClassName="made")], [], ""),
    "to be made on this node": ([claim(storageClassName="made", notes={SELECTED_NODE: "n"})], [], ""),
    "to be made on another": ([claim(storageClassName="made", notes={SELECTED_NODE: "m"})], [], NO_VOLUME),
    "one bound elsewhere, one without a volume": (
        [bound(), claim("d")],
        [volume(**reach("west"))],
        f"{OTHER_NODE}, {NO_VOLUME}",
    ),
    "one bound to nothing, one without a volume": ([bound(), claim("d")], [], f"{NO_VOLUME}, {NO_SUCH_VOLUME}"),
    "two claims, one volume": ([claim(), claim("d")], [volume()], NO_VOLUME),
    "two claims, two volumes": ([claim(), claim("d")], [volume(), volume("w")], ""),
    "two of two sizes": (
        [claim(resources={"requests": {"storage": "5Gi"}}), claim("d")],
        [volume(size="5Gi"), volume("w", "3Gi")],
        "",
    ),
}


@pytest.mark.parametrize("row", BINDING)
def test_a_node_is_taken_where_all_claims_are_or_can_be_bound(row: str) -> None:
    claims, volumes, words = BINDING[row]
    bench = Bench(
        {PERSISTENT_VOLUME_CLAIMS: claims, PERSISTENT_VOLUMES: volumes, STORAGE_CLASSES: CLASSES}, labels={ZONE: "east"}
    )
    status = bench.verdict(VolumeBinding, pod(*([each["metadata"]["name"] for each in claims] or ["c"])))
    assert (status.code, status.message) == (Code.UNRESOLVABLE if words else Code.SUCCESS, words)


def test_a_pod_without_claims_is_no_business_of_theirs() -> None:
    for make in (VolumeBinding, VolumeRestrictions, VolumeZone, NodeVolumeLimits, DynamicResources):
        assert make(Bench({})).pre_filter(CycleState(), pod_info(pod())).code is Code.SKIP  # type: ignore[arg-type]


def test_a_node_outside_the_places_of_a_class_is_refused() -> None:
    objects = {
        PERSISTENT_VOLUME_CLAIMS: [claim()],
        STORAGE_CLASSES: [storage_class("late", "x", allowedTopologies=TOPOLOGY)],
    }
    assert Bench(objects, labels={ZONE: "east"}).verdict(VolumeBinding, pod("c")).message == NO_VOLUME
    assert Bench(objects, labels={ZONE: "south"}).verdict(VolumeBinding, pod("c")).ok


@pytest.mark.parametrize(
    ("counts", "capacity", "words"),
    [
        (True, {"capacity": "1Gi"}, NO_ROOM),
        (True, {"capacity": "2Gi"}, ""),
        (True, {"capacity": "9Gi", "maximumVolumeSize": "1Gi"}, NO_ROOM),
        (True, {"capacity": "9Gi", "nodeTopology": {"matchLabels": {ZONE: "west"}}}, NO_ROOM),
        (True, {"capacity": "9Gi", "nodeTopology": None}, NO_ROOM),
        (True, {"capacity": "9Gi", "storageClassName": "other"}, NO_ROOM),
        (False, {"capacity": "1Gi"}, ""),
    ],
)
def test_a_driver_that_counts_its_storage_must_have_enough(counts: bool, capacity: Any, words: str) -> None:
    known = {"storageClassName": "late", "nodeTopology": {"matchLabels": {ZONE: "east"}}, **capacity}
    objects = {
        PERSISTENT_VOLUME_CLAIMS: [claim()],
        STORAGE_CLASSES: [storage_class("late", "d.example.com")],
        CSI_DRIVERS: [{"metadata": {"name": "d.example.com"}, "spec": {"storageCapacity": counts}}],
        CSI_STORAGE_CAPACITIES: [{"metadata": {"name": "x", "namespace": "default"}, **known}],
    }
    assert Bench(objects, labels={ZONE: "east"}).verdict(VolumeBinding, pod("c")).message == words


def test_a_class_that_vanishes_while_a_pod_is_decided_is_an_error() -> None:
    objects = {PERSISTENT_VOLUME_CLAIMS: [claim()], STORAGE_CLASSES: [storage_class("late", "example.com/x")]}
    plugin, state = VolumeBinding(Bench(objects)), CycleState()  # type: ignore[arg-type]
    assert plugin.pre_filter(state, pod_info(pod("c"))).ok
    plugin._binder._classes = Shelf([])  # type: ignore[assignment]
    status = plugin.filter(state, pod_info(pod("c")), Bench({}).node)
    assert (status.code, status.message) == (Code.ERROR, 'failed to find storage class "late"')


def test_what_is_assumed_for_a_pod_is_not_there_for_the_next_until_it_is_given_back() -> None:
    objects = {
        PERSISTENT_VOLUME_CLAIMS: [claim(), claim("d")],
        PERSISTENT_VOLUMES: [volume()],
        STORAGE_CLASSES: CLASSES,
    }
    bench = Bench(objects)
    plugin, state, info = VolumeBinding(bench), CycleState(), pod_info(pod("c"))  # type: ignore[arg-type]

    def next_one() -> str:
        later, other = CycleState(), pod_info(pod("d", name="q"))
        assert plugin.pre_filter(later, other).ok
        return plugin.filter(later, other, bench.node).message

    assert plugin.pre_filter(state, info).ok and plugin.filter(state, info, bench.node).ok
    assert next_one() == ""
    assert plugin.reserve(state, info, "n").ok
    assert next_one() == NO_VOLUME
    reserved = state.data["VolumeBinding"].reserved
    assert reserved.bindings[0][0]["spec"]["claimRef"]["uid"] == "uid-c"
    plugin._binder.revert(reserved)
    assert next_one() == ""


def test_a_pod_that_shares_a_claim_goes_where_its_volume_is_going_to_be_made() -> None:
    bench = Bench({PERSISTENT_VOLUME_CLAIMS: [claim(storageClassName="made")], STORAGE_CLASSES: CLASSES})
    plugin, state, info = VolumeBinding(bench), CycleState(), pod_info(pod("c"))  # type: ignore[arg-type]
    other, elsewhere = pod_info(pod("c", name="q")), NodeInfo("m", make_node("m"))
    assert plugin.pre_filter(state, info).ok and plugin.filter(state, info, bench.node).ok
    assert plugin.reserve(state, info, "n").ok
    later = CycleState()
    assert plugin.pre_filter(later, other).ok
    assert plugin.filter(later, other, elsewhere).message == NO_VOLUME
    assert plugin.filter(later, other, bench.node).ok


EPHEMERAL = [{"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([], 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-e"'),
        ([claim("p-e")], "PVC default/p-e was not created for pod default/p (pod is not owner)"),
        ([claim("p-e", owner="q")], "PVC default/p-e was not created for pod default/p (pod is not owner)"),
        ([claim("p-e", owner="p")], ""),
    ],
)
def test_the_claim_of_an_ephemeral_volume_is_the_pods(claims: list[Object], words: str) -> None:
    objects = {PERSISTENT_VOLUME_CLAIMS: claims, PERSISTENT_VOLUMES: [volume()], STORAGE_CLASSES: CLASSES}
    assert Bench(objects).verdict(VolumeBinding, pod(volumes=EPHEMERAL)).message == words


# VolumeRestrictions


def disk(kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": "d", kind: fields}


RBD = {"monitors": ["a", "b"], "pool": "rbd", "image": "i"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (disk("gcePersistentDisk", pdName="x"), disk("gcePersistentDisk", pdName="x"), True),
        (disk("gcePersistentDisk", pdName="x"), disk("gcePersistentDisk", pdName="y"), False),
        (disk("gcePersistentDisk", pdName="x", readOnly=True), disk("gcePersistentDisk", pdName="x"), True),
        (
            disk("gcePersistentDisk", pdName="x", readOnly=True),
            disk("gcePersistentDisk", pdName="x", readOnly=True),
            False,
        ),
        (disk("awsElasticBlockStore", volumeID="x"), disk("awsElasticBlockStore", volumeID="x"), True),
        (
            disk("awsElasticBlockStore", volumeID="x", readOnly=True),
            disk("awsElasticBlockStore", volumeID="x", readOnly=True),
            True,
        ),
        (disk("awsElasticBlockStore", volumeID="x"), disk("awsElasticBlockStore", volumeID="y"), False),
        (disk("iscsi", iqn="x", targetPortal="1"), disk("iscsi", iqn="x", targetPortal="2"), True),
        (disk("iscsi", iqn="x", readOnly=True), disk("iscsi", iqn="x", readOnly=True), False),
        (disk("iscsi", iqn="x"), disk("iscsi", iqn="y"), False),
        (disk("rbd", **RBD), disk("rbd", **{**RBD, "monitors": ["b", "c"]}), True),
        (disk("rbd", **RBD), disk("rbd", **{**RBD, "monitors": ["c"]}), False),
        (disk("rbd", **RBD), disk("rbd", **{**RBD, "pool": "other"}), False),
        (disk("rbd", **RBD), disk("rbd", **{**RBD, "image": "other"}), False),
        (disk("rbd", **RBD, readOnly=True), disk("rbd", **RBD, readOnly=True), False),
        (disk("gcePersistentDisk", pdName="x"), disk("awsElasticBlockStore", volumeID="x"), False),
    ],
)
def test_one_disk_is_for_one_pod_unless_all_read(one: Object, other: Object, same: bool) -> None:
    assert same_disk(one, other) is same
    status = Bench({}, pod(name="q", volumes=[other])).verdict(VolumeRestrictions, pod(volumes=[one]))
    assert status.message == ("node(s) had no available disk" if same else "")
    assert status.code is (Code.UNSCHEDULABLE if same else Code.SUCCESS)


ALONE = {"accessModes": ["ReadWriteOncePod"]}


@pytest.mark.parametrize(
    ("claims", "others", "code"),
    [
        ([bound(**ALONE)], [], Code.SKIP),
        ([bound(**ALONE)], [pod("c", name="q")], Code.UNSCHEDULABLE),
        ([bound(**ALONE)], [pod("d", name="q")], Code.SKIP),
        ([bound(**ALONE)], [pod("c", name="q", namespace="other")], Code.SKIP),
        ([bound()], [pod("c", name="q")], Code.SKIP),
        ([], [], Code.UNRESOLVABLE),
    ],
)
def test_a_claim_for_one_pod_is_for_one_pod_of_its_namespace(
    claims: list[Object], others: list[Object], code: Code
) -> None:
    assert Bench({PERSISTENT_VOLUME_CLAIMS: claims}, *others).verdict(VolumeRestrictions, pod("c")).code is code


def test_preemption_frees_a_claim_for_one_pod() -> None:
    other = pod("c", name="q")
    bench = Bench({PERSISTENT_VOLUME_CLAIMS: [bound(**ALONE)]}, other)
    plugin, state, info = VolumeRestrictions(bench), CycleState(), pod_info(pod("c"))  # type: ignore[arg-type]
    assert plugin.pre_filter(state, info).ok
    imagined = state.clone()
    plugin.remove_pod(imagined, info, pod_info(other), bench.node)
    assert plugin.filter(imagined, info, bench.node).ok
    assert not plugin.filter(state, info, bench.node).ok
    plugin.add_pod(imagined, info, pod_info(other), bench.node)
    assert not plugin.filter(imagined, info, bench.node).ok


# VolumeZone


@pytest.mark.parametrize(
    ("labels", "node", "fits"),
    [
        ({}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a__b"}, {ZONE: "b"}, True),
        ({ZONE: "a__"}, {ZONE: "b"}, True),
        ({ZONE: "a"}, {}, True),
        ({ZONE: "a"}, {"topology.kubernetes.io/region": "r"}, False),
        ({OLD_ZONE: "a"}, {ZONE: "a"}, True),
        ({OLD_ZONE: "a"}, {ZONE: "b"}, False),
        ({ZONE: "a"}, {OLD_ZONE: "a"}, False),
        ({ZONE: "a", "topology.kubernetes.io/region": "r"}, {ZONE: "a"}, False),
    ],
)
def test_a_volume_stays_in_its_zone(labels: dict[str, str], node: dict[str, str], fits: bool) -> None:
    objects = {PERSISTENT_VOLUME_CLAIMS: [bound()], PERSISTENT_VOLUMES: [volume(labels=labels)]}
    status = Bench(objects, labels=node).verdict(VolumeZone, pod("c"))
    assert status.message == ("" if fits else "node(s) had no available volume zone")


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([bound()], 'persistentvolume "v" not found'),
        ([claim(storageClassName="")], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim(storageClassName="nowhere")], 'storageclass.storage.k8s.io "nowhere" not found'),
        ([claim(storageClassName="now")], "PersistentVolume had no name"),
        ([claim()], ""),
    ],
)
def test_zones_are_asked_of_volumes_that_are_there(claims: list[Object], words: str) -> None:
    objects = {PERSISTENT_VOLUME_CLAIMS: claims, STORAGE_CLASSES: CLASSES}
    assert Bench(objects).verdict(VolumeZone, pod("c")).message == words


def test_a_label_without_a_zone_demands_nothing() -> None:
    assert [each.values for each in demands_of(volume(labels={ZONE: "a__b"}))] == [frozenset("ab")]
    assert demands_of(volume(labels={ZONE: ""})) == []


# NodeVolumeLimits


def csi(name: str, driver: str = "d") -> Object:
    return volume(name, csi={"driver": driver, "volumeHandle": name})


def attached(name: str) -> Object:
    spec = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": name}}
    return {"metadata": {"name": f"on-{name}"}, "spec": spec}


@pytest.mark.parametrize(
    ("limit", "others", "attachments", "words"),
    [
        (1, [], [], ""),
        (1, ["b"], [], "node(s) exceed max volume count"),
        (2, ["b"], [], ""),
        (1, ["a"], [], ""),
        (1, [], ["b"], "node(s) exceed max volume count"),
        (1, ["a"], ["a"], ""),
        (0, [], [], "node(s) exceed max volume count"),
        (None, ["b"], [], ""),
        (1, ["other"], [], ""),
    ],
)
def test_a_node_takes_as_many_volumes_of_a_driver_as_it_says(
    limit: int | None, others: list[str], attachments: list[str], words: str
) -> None:
    names = ("a", "b", "other")
    driver: dict[str, Any] = {"name": "d", "nodeID": "n"}
    if limit is not None:
        driver["allocatable"] = {"count": limit}
    objects = {
        PERSISTENT_VOLUME_CLAIMS: [bound(name, name) for name in names],
        PERSISTENT_VOLUMES: [csi("a"), csi("b"), csi("other", "e")],
        CSI_NODES: [{"metadata": {"name": "n"}, "spec": {"drivers": [driver]}}],
        VOLUME_ATTACHMENTS: [attached(name) for name in attachments],
    }
    bench = Bench(objects, *(pod(name, name=f"with-{name}") for name in others))
    assert bench.verdict(NodeVolumeLimits, pod("a")).message == words


# DynamicResources


def resource_claim(name: str = "r", *, going: bool = False, owner: str = "", device_class: str = "gpu") -> Object:
    made = claim(name, going=going, **({"owner": owner} if owner else {}))
    requests = [{"name": "one", "exactly": {"deviceClassName": device_class}}]
    return {"metadata": made["metadata"], "spec": {"devices": {"requests": requests}}}


def of_template(name: str | None = None) -> Object:
    made = pod(resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}])
    if name is not None:
        made["status"] = {
            "resourceClaimStatuses": [{"name": "x", "resourceClaimName": name} if name else {"name": "x"}]
        }
    return made


NAMED = pod(resourceClaims=[{"name": "x", "resourceClaimName": "r"}])
EITHER = {
    "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}, {"name": "b", "deviceClassName": "none"}],
    "name": "one",
}


@pytest.mark.parametrize(
    ("asking", "claims", "held", "words"),
    [
        (NAMED, [], 'could not find ResourceClaim "default/r"', ""),
        (NAMED, [resource_claim(going=True)], 'resourceclaim "r" is being deleted', ""),
        (NAMED, [resource_claim()], "", "cannot allocate all claims"),
        (NAMED, [resource_claim(device_class="none")], "", "request one: device class none does not exist"),
        (
            NAMED,
            [{**resource_claim(), "spec": {"devices": {"requests": [EITHER]}}}],
            "",
            "request one/b: device class none does not exist",
        ),
        (of_template(), [], 'pod "default/p": ResourceClaim not created yet', ""),
        (of_template("r"), [], 'could not find ResourceClaim "default/r"', ""),
        (
            of_template("r"),
            [resource_claim()],
            "ResourceClaim default/r was not created for pod default/p (pod is not owner)",
            "",
        ),
        (of_template("r"), [resource_claim(owner="p")], "", "cannot allocate all claims"),
    ],
)
def test_a_pod_with_resource_claims_waits_for_them_and_then_for_devices(
    asking: Object, claims: list[Object], held: str, words: str
) -> None:
    bench = Bench({RESOURCE_CLAIMS: claims, DEVICE_CLASSES: [{"metadata": {"name": "gpu"}}]})
    plugin = DynamicResources(bench)  # type: ignore[arg-type]
    assert plugin.pre_enqueue(pod_info(asking)).message == held
    assert not words or bench.verdict(DynamicResources, asking).message == words


def test_a_claim_that_need_not_be_made_is_none() -> None:
    plugin = DynamicResources(Bench({}))  # type: ignore[arg-type]
    assert plugin.pre_enqueue(pod_info(of_template(""))).ok
    assert plugin.pre_filter(CycleState(), pod_info(of_template(""))).code is Code.SKIP


def test_post_filter_says_how_far_it_got() -> None:
    plugin = DynamicResources(Bench({RESOURCE_CLAIMS: [resource_claim(device_class="none")]}))  # type: ignore[arg-type]
    state = CycleState()
    assert plugin.post_filter(state, pod_info(NAMED), {}).status.message == "not found"
    plugin.pre_filter(state, pod_info(NAMED))
    assert plugin.post_filter(state, pod_info(NAMED), {}).status.message == "no new claims to deallocate"
    known = {RESOURCE_CLAIMS: [resource_claim()], DEVICE_CLASSES: [{"metadata": {"name": "gpu"}}]}
    plugin = DynamicResources(Bench(known))  # type: ignore[arg-type]
    plugin.pre_filter(state, pod_info(NAMED))
    assert plugin.post_filter(state, pod_info(NAMED), {}).status.message == "still not schedulable"


# What wakes whom


def labelled(**labels: str) -> Object:
    return {"metadata": {"name": "n", "labels": labels}}


def driver(counts: bool) -> Object:
    return {"metadata": {"name": "d"}, "spec": {"storageCapacity": counts}}


def limited(count: int) -> Object:
    return {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": count}}]}}


INLINE = pod(volumes=[{"name": "x", "csi": {"driver": "d"}}])
PLACED = {"nodeName": "n"}
HINTS: list[tuple[Any, Resource, Object, Object | None, Object | None, bool]] = [
    (VolumeBinding, PERSISTENT_VOLUME_CLAIMS, pod("c"), None, claim(), True),
    (VolumeBinding, PERSISTENT_VOLUME_CLAIMS, pod("c"), None, claim("d"), False),
    (VolumeBinding, PERSISTENT_VOLUME_CLAIMS, pod("c", namespace="o"), None, claim(), False),
    (VolumeBinding, PERSISTENT_VOLUME_CLAIMS, pod(volumes=EPHEMERAL), None, claim("p-e"), True),
    (VolumeBinding, STORAGE_CLASSES, pod("c"), None, storage_class(), True),
    (VolumeBinding, STORAGE_CLASSES, pod("c"), storage_class(), storage_class(), False),
    (VolumeBinding, STORAGE_CLASSES, pod("c"), storage_class(), storage_class(allowedTopologies=TOPOLOGY), True),
    (VolumeBinding, NODES, pod("c"), labelled(), labelled(a="b"), True),
    (VolumeBinding, NODES, pod("c"), labelled(a="b"), labelled(a="b"), False),
    (VolumeBinding, CSI_DRIVERS, INLINE, driver(True), driver(False), True),
    (VolumeBinding, CSI_DRIVERS, INLINE, driver(False), driver(True), False),
    (VolumeBinding, CSI_DRIVERS, pod("c"), driver(True), driver(False), False),
    (VolumeBinding, CSI_STORAGE_CAPACITIES, pod("c"), {"capacity": "1Gi"}, {"capacity": "2Gi"}, True),
    (VolumeBinding, CSI_STORAGE_CAPACITIES, pod("c"), {"capacity": "2Gi"}, {"capacity": "1Gi"}, False),
    (VolumeBinding, CSI_STORAGE_CAPACITIES, pod("c"), {}, {"capacity": "1Gi"}, True),
    (VolumeRestrictions, PODS, pod("c"), pod("c", name="q", **PLACED), None, True),
    (VolumeRestrictions, PODS, pod("c"), pod("d", name="q", **PLACED), None, False),
    (VolumeRestrictions, PODS, pod("c"), pod("c", name="q", namespace="o", **PLACED), None, False),
    (VolumeRestrictions, PERSISTENT_VOLUME_CLAIMS, pod("c"), None, claim(), True),
    (VolumeRestrictions, PERSISTENT_VOLUME_CLAIMS, pod(volumes=EPHEMERAL), None, claim("p-e"), False),
    (VolumeZone, STORAGE_CLASSES, pod("c"), None, storage_class(), True),
    (VolumeZone, STORAGE_CLASSES, pod("c"), None, storage_class(mode="Immediate"), False),
    (VolumeZone, PERSISTENT_VOLUMES, pod("c"), volume(), volume(labels={ZONE: "a"}), True),
    (VolumeZone, PERSISTENT_VOLUMES, pod("c"), volume(), volume(labels={"a": "b"}), False),
    (NodeVolumeLimits, CSI_NODES, pod("c"), limited(1), limited(2), True),
    (NodeVolumeLimits, CSI_NODES, pod("c"), limited(2), limited(1), False),
    (NodeVolumeLimits, PODS, pod("c"), pod("d", name="q", **PLACED), None, True),
    (NodeVolumeLimits, PODS, pod("c"), pod(name="q", **PLACED), None, False),
    (DynamicResources, RESOURCE_CLAIMS, NAMED, None, resource_claim(), True),
    (DynamicResources, RESOURCE_CLAIMS, NAMED, None, resource_claim("other"), False),
    (DynamicResources, RESOURCE_CLAIMS, NAMED, resource_claim(), resource_claim(), False),
]


@pytest.mark.parametrize(("make", "resource", "waiting", "old", "new", "wakes"), HINTS)
def test_a_change_wakes_those_whom_it_may_help(
    make: Callable[[Any], Any], resource: Resource, waiting: Object, old: Object | None, new: Object | None, wakes: bool
) -> None:
    known = {RESOURCE_CLAIMS: [resource_claim()]}
    wake = _wake(make(Bench(known)).wakes_on(), resource)
    assert _hinted(wake, pod_info(waiting), old, new) is wakes


def _wake(wakes: Iterable[Wake], resource: Resource) -> Wake:
    return next(wake for wake in wakes if wake.resource == resource)


def _hinted(wake: Wake, info: PodInfo, old: Object | None, new: Object | None) -> bool:
    assert wake.hint is not None
    return bool(wake.hint(info, old, new))

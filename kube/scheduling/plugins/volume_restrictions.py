"""Volumes that only one pod may use, in the cluster or on a node (upstream volumerestrictions)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from mews.kube.api.volumes import access_modes
from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    Status,
    Wake,
    unresolvable,
    unschedulable,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.pod_volumes import names_claim, needs_volumes
from mews.kube.scheduling.podinfo import PodInfo

SAME_DISK = unschedulable("node(s) had no available disk")
IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi")
Volume = Mapping[str, Any]


class _UsedAlone(Struct):
    """The pod's claims that one pod may use, and how many uses of them by others there are."""

    claims: frozenset[str]
    uses: int

    def clone(self) -> _UsedAlone:
        """Return it for preemption, which counts without some pods."""
        return _UsedAlone(self.claims, self.uses)

    def uses_by(self, pod: PodInfo) -> int:
        """Return how many of these claims another pod names, of whatever namespace: upstream does not compare those."""
        return sum(name in self.claims for name in _named_claims(pod.pod))


class VolumeRestrictions:
    """Refuses pods whose ReadWriteOncePod claim another pod uses, and nodes where another pod has the same disk."""

    name = "VolumeRestrictions"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._claims = handle.late_informer(PERSISTENT_VOLUME_CLAIMS, needs_volumes)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Refuse a pod with a claim that is missing; SKIP without anything to compare."""
        volumes = pod.pod["spec"].get("volumes")
        if not volumes:
            return SKIP
        alone: set[str] = set()
        for name in _named_claims(pod.pod):
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                return unresolvable(messages.not_found("persistentvolumeclaim", name))
            if "ReadWriteOncePod" in access_modes(claim):
                alone.add(name)
        uses = sum(self._is_used(name, pod.namespace) for name in alone)
        if not uses and not any(_is_disk(volume) for volume in volumes):
            return SKIP
        state.data[self.name] = _UsedAlone(frozenset(alone), uses)
        return SUCCESS

    def _is_used(self, claim: str, namespace: str) -> bool:
        return any(
            pod.namespace == namespace and claim in _named_claims(pod.pod)
            for node in self._handle.nodes.values()
            for pod in node.pods.values()
        )

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Count the other pod's uses."""
        self._count(state, other, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Count them no longer."""
        self._count(state, other, -1)

    def _count(self, state: CycleState, other: PodInfo, sign: int) -> None:
        alone: _UsedAlone | None = state.data.get(self.name)
        if alone is not None:
            alone.uses += sign * alone.uses_by(other)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Compare the pod's disks with those of the node's pods, then its claims with those of all pods."""
        if conflicting(pod, node.pods.values()):
            return SAME_DISK
        return IN_USE if state.data[self.name].uses > 0 else SUCCESS

    def wakes_on(self) -> Sequence[Wake]:
        """Return a pod that had the disk or the claim is gone, a node or the claim is new."""
        return (
            Wake(PODS, Action.DELETE, _frees),
            Wake(NODES, Action.ADD),
            Wake(PERSISTENT_VOLUME_CLAIMS, Action.ADD, _names_new),
        )


def _frees(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if old is None or namespace_of(old) != pod.namespace:
        return False
    if any(same_disk(one, other) for one in _disks(pod.pod) for other in _disks(old)):
        return True
    return not _named_claims(pod.pod).isdisjoint(_named_claims(old))


def _names_new(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    return new is not None and names_claim(pod, new) and name_of(new) in _named_claims(pod.pod)


def _named_claims(pod: Object) -> frozenset[str]:
    """Return them without those of ephemeral volumes, which are the pod's alone."""
    volumes = pod["spec"].get("volumes") or ()
    return frozenset(
        str(volume["persistentVolumeClaim"]["claimName"]) for volume in volumes if "persistentVolumeClaim" in volume
    )


def _is_disk(volume: Volume) -> bool:
    return any(kind in volume for kind in _DISKS)


def _disks(pod: Object) -> list[Volume]:
    return [volume for volume in pod["spec"].get("volumes") or () if _is_disk(volume)]


def conflicting(pod: PodInfo, others: Any) -> bool:
    """Return whether one of the others has a disk of the pod's."""
    own = _disks(pod.pod)
    return bool(own) and any(same_disk(one, disk) for one in own for other in others for disk in _disks(other.pod))


def same_disk(one: Volume, other: Volume) -> bool:
    """Return whether two volumes are one disk that both pods cannot have: one that all of them only read is shared,
    except for AWS'."""
    return any(kind in one and kind in other and _clash(kind, one[kind], other[kind]) for kind in _DISKS)


def _clash(kind: str, one: Volume, other: Volume) -> bool:
    if kind == "awsElasticBlockStore":
        return bool(one.get("volumeID") == other.get("volumeID"))
    if _identity(kind, one) != _identity(kind, other) or (one.get("readOnly") and other.get("readOnly")):
        return False
    return kind != "rbd" or not set(one.get("monitors") or ()).isdisjoint(other.get("monitors") or ())


def _identity(kind: str, disk: Volume) -> tuple[Any, ...]:
    if kind == "rbd":
        return (disk.get("pool"), disk.get("image"))
    return (disk.get("pdName" if kind == "gcePersistentDisk" else "iqn"),)

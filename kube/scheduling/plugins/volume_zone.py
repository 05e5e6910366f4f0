"""Keeps pods in the zone of their volumes (upstream volumezone)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from mews.kube.api.volumes import claims_of, class_of, waits_for_consumer
from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import SKIP, SUCCESS, Action, CycleState, Handle, Status, Wake, unresolvable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.pod_volumes import names_claim, needs_volumes, relabelled
from mews.kube.scheduling.podinfo import PodInfo

OTHER_ZONE = unresolvable("node(s) had no available volume zone")
_NOWADAYS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS = (*_NOWADAYS, *_NOWADAYS.values())


class ZoneDemand(Struct, frozen=True):
    """A label of a volume, and the values that a node may have there."""

    key: str
    values: frozenset[str]


class _RefusedError(Exception):
    """The pod's volumes say that it fits nowhere."""


class VolumeZone:
    """Refuses nodes in other zones or regions than those that the labels of a pod's bound volumes name."""

    name = "VolumeZone"

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.late_informer(PERSISTENT_VOLUME_CLAIMS, needs_volumes)
        self._volumes = handle.late_informer(PERSISTENT_VOLUMES, needs_volumes)
        self._classes = handle.late_informer(STORAGE_CLASSES, needs_volumes)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Collect what the volumes demand; SKIP where that is nothing."""
        try:
            demands = tuple(each for name in _named(pod) for each in self._demands(name, pod.namespace))
        except _RefusedError as refused:
            return unresolvable(str(refused))
        if not demands:
            return SKIP
        state.data[self.name] = demands
        return SUCCESS

    def _demands(self, name: str, namespace: str) -> Sequence[ZoneDemand]:
        claim = self._claims.get(name, namespace)
        if claim is None:
            raise _RefusedError(messages.not_found("persistentvolumeclaim", name))
        volume_name = claim["spec"].get("volumeName")
        if volume_name:
            volume = self._volumes.get(volume_name)
            if volume is None:
                raise _RefusedError(messages.not_found("persistentvolume", volume_name))
            return demands_of(volume)
        if not class_of(claim):
            raise _RefusedError("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._classes.get(class_of(claim))
        if storage_class is None:
            raise _RefusedError(messages.not_found("storageclass.storage.k8s.io", class_of(claim)))
        if not waits_for_consumer(storage_class):
            raise _RefusedError("PersistentVolume had no name")
        return ()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Refuse a node with zones, but not these."""
        if not any(label in node.labels for label in _LABELS):
            return SUCCESS
        demands: Sequence[ZoneDemand] = state.data[self.name]
        return SUCCESS if all(_is_met(demand, node) for demand in demands) else OTHER_ZONE

    def wakes_on(self) -> Sequence[Wake]:
        """Return a class that waits for consumers, a node or its labels, the pod's claim, a volume or its zones."""
        added = Action.ADD | Action.UPDATE
        return (
            Wake(STORAGE_CLASSES, Action.ADD, lambda pod, old, new: waits_for_consumer(new)),
            Wake(NODES, added, relabelled),
            Wake(PERSISTENT_VOLUME_CLAIMS, added, _is_own),
            Wake(PERSISTENT_VOLUMES, added, _moves),
        )


def demands_of(volume: Object) -> list[ZoneDemand]:
    """Return what the labels of a volume demand; several zones are joined by ``__``. A label that names none is
    ignored."""
    found = []
    for key in _LABELS:
        text = labels_of(volume).get(key)
        zones = [zone.strip() for zone in text.split("__")] if text is not None else []
        if zones and all(zones):
            found.append(ZoneDemand(key, frozenset(zones)))
    return found


def _is_met(demand: ZoneDemand, node: NodeInfo) -> bool:
    value = node.labels.get(demand.key, node.labels.get(_NOWADAYS.get(demand.key, demand.key)))
    return value is not None and value in demand.values


def _named(pod: PodInfo) -> Iterator[str]:
    return (name for name, own in claims_of(pod.pod) if not own)


def _is_own(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    return new is not None and names_claim(pod, new)


def _moves(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    return new is not None and (old is None or demands_of(old) != demands_of(new))

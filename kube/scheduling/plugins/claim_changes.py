"""Which changes may help a pod that waits for devices. Pure."""

from __future__ import annotations

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resource_claims import allocation_of
from mews.kube.scheduling.podinfo import PodInfo


def had_devices(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    """Return whether a claim that goes was allocated."""
    return old is not None and allocation_of(old) is not None


def node_differs(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    """Return whether a node came, or has other labels or amounts."""
    if old is None or new is None:
        return new is not None
    before, after = (each.get("status") or {} for each in (old, new))
    return labels_of(old) != labels_of(new) or before.get("allocatable") != after.get("allocatable")

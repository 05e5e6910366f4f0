"""Which changes may help a pod that waits for devices, and which classes its claims name. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resource_claims import allocation_of
from mews.kube.scheduling.podinfo import PodInfo


def requested_classes(claim: Object) -> Iterator[tuple[str, str]]:
    """(request, device class) of a claim."""
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        if "exactly" in request:
            yield str(request["name"]), str(request["exactly"]["deviceClassName"])
        for part in request.get("firstAvailable") or ():
            yield f"{request['name']}/{part['name']}", str(part["deviceClassName"])


def had_devices(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    """Whether a claim that goes was allocated."""
    return old is not None and allocation_of(old) is not None


def node_differs(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    """Whether a node came, or has other labels or amounts."""
    if old is None or new is None:
        return new is not None
    before, after = (each.get("status") or {} for each in (old, new))
    return labels_of(old) != labels_of(new) or before.get("allocatable") != after.get("allocatable")

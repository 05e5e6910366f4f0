"""The kubelet's own look at the node's numbers, after Allocate (contract kubelet.md section 4, ``OutOf…``).

Upstream: pkg/kubelet/lifecycle/predicate.go and devicemanager's sanitizeNodeAllocatable. Pure. Device resources only;
a resource that the node does not have is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mews.kube.api.extended_resources import is_extended_resource
from mews.kube.api.objects import containers_of, init_containers_of, requests_of, uid_of
from mews.kube.api.pod_requests import request_of
from mews.kube.api.quantities import whole
from mews.kube.api.resource_claims import extended_mappings
from mews.kube.emulated.kubelet.devices.errors import AdmissionRejectedError

Pod = Mapping[str, Any]


def check_fit(
    pod: Pod, others: Iterable[Pod], allocatable: Mapping[str, Any], allocated: Mapping[str, tuple[str, ...]]
) -> None:
    """Compare the pod's extended resources with what the Node object shows.

    ``allocatable``: ``status.allocatable`` of the Node as last seen; ``allocated``: devices given out, which raise it.

    Raises AdmissionRejectedError.
    """
    beside = [other for other in others if uid_of(other) != uid_of(pod)]
    for resource in extended_resources(pod):
        if resource not in allocatable and resource not in allocated:
            continue
        capacity = max(whole(allocatable.get(resource, 0)), len(allocated.get(resource, ())))
        requested = request_of(pod, resource)
        used = sum(request_of(other, resource) for other in beside)
        if requested > capacity - used:
            raise AdmissionRejectedError(
                f"OutOf{resource}",
                f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
                f"capacity: {capacity}",
            )


def extended_resources(pod: Pod) -> list[str]:
    """Return the extended resources that a pod asks device plugins for: not those that a claim stands for
    (KEP-5004)."""
    named = [name for c in (*init_containers_of(pod), *containers_of(pod)) for name in requests_of(c)]
    of_claim = {mapping["resourceName"] for mapping in extended_mappings(pod)}
    return [name for name in dict.fromkeys(named) if is_extended_resource(name) and name not in of_claim]

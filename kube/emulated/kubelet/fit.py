"""The kubelet's own look at cpu, memory and the number of pods (contract kubelet.md section 4, ``OutOf…``).

Device resources are the device manager's (``devices.fit``). Upstream: pkg/kubelet/lifecycle/predicate.go. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mews.kube.api.objects import uid_of
from mews.kube.api.pod_requests import pod_amount
from mews.kube.api.quantities import milli, whole
from mews.kube.emulated.kubelet.devices import AdmissionRejected

Pod = Mapping[str, Any]
_COUNTED: dict[str, Callable[[str | int | float], int]] = {"cpu": milli, "memory": whole, "ephemeral-storage": whole}


def check_machine(pod: Pod, others: Iterable[Pod], allocatable: Mapping[str, Any]) -> None:
    """Compare what the pod and the ``others`` on the node ask for with what the Node object shows.

    Raises AdmissionRejected; amounts in its text are millicores and bytes.
    """
    beside = [other for other in others if uid_of(other) != uid_of(pod)]
    if "pods" in allocatable and len(beside) + 1 > whole(allocatable["pods"]):
        raise _out_of("pods", 1, len(beside), whole(allocatable["pods"]))
    for resource, count in _COUNTED.items():
        if resource not in allocatable:
            continue
        requested, capacity = pod_amount(pod, resource, count), count(allocatable[resource])
        used = sum(pod_amount(other, resource, count) for other in beside) if requested else 0
        if requested and requested > capacity - used:
            raise _out_of(resource, requested, used, capacity)


def _out_of(resource: str, requested: int, used: int, capacity: int) -> AdmissionRejected:
    text = f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    return AdmissionRejected(f"OutOf{resource}", text)

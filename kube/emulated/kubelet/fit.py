"""The kubelet's own look at a pod that was bound to it: its operating system, cpu, memory and the number of pods, node
selector, host ports, taints (contract kubelet.md section 4, ``OutOf…``).

Device resources are the device manager's (``devices.fit``). Upstream: pkg/kubelet/lifecycle/predicate.go. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mews.kube.api.objects import Object, labels_of, name_of, uid_of
from mews.kube.api.pod_requests import pod_amount
from mews.kube.api.quantities import milli, whole
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError
from mews.kube.emulated.kubelet.podstate import ResizeVerdict
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import node_affinity, node_ports, taints
from mews.kube.scheduling.podinfo import pod_info

Pod = Mapping[str, Any]
OS = "linux"
_OS_LABEL = "kubernetes.io/os"
_COUNTED: dict[str, Callable[[str | int | float], int]] = {"cpu": milli, "memory": whole, "ephemeral-storage": whole}


def check_machine(pod: Object, others: Iterable[Object], node: Object) -> None:
    """Hold the pod, beside the ``others`` on the node, against the Node object.

    Raises AdmissionRejectedError; amounts in its text are millicores and bytes.
    """
    _check_system(pod, node)
    beside = [other for other in others if uid_of(other) != uid_of(pod)]
    _check_amounts(pod, beside, (node.get("status") or {}).get("allocatable") or {})
    wanted = pod_info(pod)
    if not node_affinity.matches(wanted, labels_of(node), name_of(node)):
        raise _predicate(node_affinity.NodeAffinity.name, node_affinity.NO_MATCH.message)
    if wanted.ports and _is_taken(pod, beside):
        raise _predicate(node_ports.NodePorts.name, node_ports.TAKEN.message)
    driving = [taint for taint in (node.get("spec") or {}).get("taints") or () if taint.get("effect") == "NoExecute"]
    if taints.untolerated(driving, wanted.tolerations):
        raise _predicate(taints.TaintToleration.name, taints.UNTOLERATED.message)


def resize_refused(pod: Object, others: Iterable[Object], node: Object) -> ResizeVerdict | None:
    """Return why the node cannot give a pod that runs what it asks for: never, or not now; None where it can."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for resource in ("memory", "cpu"):
        count = _COUNTED[resource]
        requested, capacity = pod_amount(pod, resource, count), count(allocatable.get(resource, 0))
        if resource in allocatable and requested > capacity:
            text = f"Node didn't have enough capacity: {resource}, requested: {requested}, capacity: {capacity}"
            return ResizeVerdict("PodResizePending", "Infeasible", text)
    try:
        check_machine(pod, others, node)
    except AdmissionRejectedError as refusal:
        return ResizeVerdict("PodResizePending", "Deferred", refusal.event_message)
    return None


def _check_system(pod: Object, node: Object) -> None:
    label = labels_of(pod).get(_OS_LABEL)
    if label is not None and label != OS:
        text = f"Failed to admit pod as the `{_OS_LABEL}` label doesn't match node label"
        raise AdmissionRejectedError("PodOSSelectorNodeLabelDoesNotMatch", text)
    if (pod["spec"].get("os") or {"name": OS})["name"] != OS:
        raise AdmissionRejectedError("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")


def _is_taken(pod: Object, beside: Iterable[Object]) -> bool:
    """Return whether another pod holds a host port of this one."""
    held = NodeInfo("")
    for other in beside:
        held.add(pod_info(other))
    return any(held.port_taken(port) for port in pod_info(pod).ports)


def _check_amounts(pod: Pod, beside: list[Object], allocatable: Mapping[str, Any]) -> None:
    if "pods" in allocatable and len(beside) + 1 > whole(allocatable["pods"]):
        raise _out_of("pods", 1, len(beside), whole(allocatable["pods"]))
    for resource, count in _COUNTED.items():
        if resource not in allocatable:
            continue
        requested, capacity = pod_amount(pod, resource, count), count(allocatable[resource])
        used = sum(pod_amount(other, resource, count) for other in beside) if requested else 0
        if requested and requested > capacity - used:
            raise _out_of(resource, requested, used, capacity)


def _out_of(resource: str, requested: int, used: int, capacity: int) -> AdmissionRejectedError:
    text = f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    return AdmissionRejectedError(f"OutOf{resource}", text)


def _predicate(name: str, text: str) -> AdmissionRejectedError:
    return AdmissionRejectedError(name, f"Predicate {name} failed: {text}")

"""A node with the pods on it, kept current in place: bound pods and those assumed there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, labels_of
from mews.kube.scheduling.podinfo import PodInfo, Port, amounts

ANY_ADDRESS = "0.0.0.0"


class NodeInfo:
    """One node's books. Plugins read it; only the cache (and a preemption's own copy) writes.

    ``allocatable`` and ``requested`` are in the scheduler's units (cpu in thousandths, all else whole);
    ``generation`` changes with every change.
    """

    __slots__ = (
        "allocatable",
        "generation",
        "labels",
        "name",
        "node",
        "pod_limit",
        "pods",
        "ports",
        "requested",
        "scoring_cpu",
        "scoring_memory",
        "taints",
        "unschedulable",
        "with_affinity",
        "with_anti_affinity",
    )

    def __init__(self, name: str, node: Object | None = None) -> None:
        self.name = name
        self.pods: dict[str, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.scoring_cpu = 0
        self.scoring_memory = 0
        self.ports: dict[Port, int] = {}
        self.with_affinity: dict[str, PodInfo] = {}
        self.with_anti_affinity: dict[str, PodInfo] = {}
        self.generation = 0
        self.set_node(node)

    def set_node(self, node: Object | None) -> None:
        """Take over the API object; None while only pods name this node."""
        self.node = node
        spec: Mapping[str, Any] = (node or {}).get("spec") or {}
        status: Mapping[str, Any] = (node or {}).get("status") or {}
        self.labels: Mapping[str, str] = labels_of(node or {})
        self.taints: tuple[Mapping[str, Any], ...] = tuple(spec.get("taints") or ())
        self.unschedulable = bool(spec.get("unschedulable"))
        self.allocatable = amounts(status.get("allocatable") or {})
        self.pod_limit = self.allocatable.get("pods", 0)
        self.generation += 1

    def add(self, pod: PodInfo) -> None:
        """Put a pod's requests, ports and terms on the books."""
        self.pods[pod.uid] = pod
        self._count(pod, 1)
        if pod.affinity or pod.preferred or pod.preferred_against:
            self.with_affinity[pod.uid] = pod
        if pod.anti_affinity:
            self.with_anti_affinity[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Take a pod off; an unknown uid changes nothing."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        self._count(pod, -1)
        self.with_affinity.pop(uid, None)
        self.with_anti_affinity.pop(uid, None)

    def _count(self, pod: PodInfo, sign: int) -> None:
        requested = self.requested
        for resource, value in pod.requests.items():
            requested[resource] = requested.get(resource, 0) + sign * value
        self.scoring_cpu += sign * pod.scoring_cpu
        self.scoring_memory += sign * pod.scoring_memory
        for port in pod.ports:
            count = self.ports.get(port, 0) + sign
            if count:
                self.ports[port] = count
            else:
                self.ports.pop(port, None)
        self.generation += 1

    def available(self, resource: str, *, besides: str = "") -> int:
        """Allocatable less what all pods here ask, except the pod with the uid ``besides``; may be negative."""
        other = self.pods.get(besides)
        held = self.requested.get(resource, 0) - (other.request(resource) if other else 0)
        return self.allocatable.get(resource, 0) - held

    def port_taken(self, port: Port) -> bool:
        """Return whether a host port clashes with one in use; 0.0.0.0 clashes with every address."""
        if not self.ports:
            return False
        return port in self.ports or any(
            held[1:] == port[1:] and ANY_ADDRESS in (held[0], port[0]) for held in self.ports
        )

    def copy(self) -> NodeInfo:
        """Return a copy that may be changed to ask "what if", without touching the original."""
        other = NodeInfo.__new__(NodeInfo)
        for slot in NodeInfo.__slots__:
            value = getattr(self, slot)
            setattr(other, slot, dict(value) if type(value) is dict else value)
        return other


def matters(old: Object, new: Object) -> bool:
    """Return whether a node's change is more than a heartbeat."""
    for part in ("labels", "annotations"):
        if old["metadata"].get(part) != new["metadata"].get(part):
            return True
    if old.get("spec") != new.get("spec"):
        return True
    before, after = old.get("status") or {}, new.get("status") or {}
    if before.get("allocatable") != after.get("allocatable") or before.get("capacity") != after.get("capacity"):
        return True
    return _states(before) != _states(after)


def _states(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(condition["type"], condition["status"]) for condition in status.get("conditions") or ()]

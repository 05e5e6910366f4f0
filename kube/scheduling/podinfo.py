"""A pod, read once: what the scheduler asks of it in every cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import (
    Object,
    containers_of,
    init_containers_of,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    node_name_of,
    uid_of,
)
from mews.kube.api.pod_requests import pod_amounts
from mews.kube.api.quantities import milli, whole
from mews.kube.api.resource_claims import named_claims, names_claims

Amounts = Mapping[str, int]
"""Resource -> amount: ``cpu`` in thousandths, all others whole (bytes, devices)."""

Port = tuple[str, str, int]
"""(host IP, protocol, host port)."""

DEFAULT_MILLI_CPU = 100
"""What scoring takes a container without a cpu request to ask (upstream pkg/scheduler/util/pod_resources.go)."""
DEFAULT_MEMORY = 200 * 1024 * 1024
"""The same for memory, bytes."""


@lru_cache(maxsize=4096)
def amount(resource: str, quantity: str | int | float) -> int:
    """Return a quantity in the scheduler's units.

    Raises ValueError when the text is not a quantity.
    """
    return milli(quantity) if resource == "cpu" else whole(quantity)


def amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    """Quantities in the scheduler's units."""
    return {resource: amount(resource, quantity) for resource, quantity in quantities.items()}


class PodTerm(Struct, frozen=True):
    """One term of pod affinity or anti-affinity; ``weight`` 0 means required.

    ``namespaces`` are the named ones (the pod's own where none is named and no selector given).
    """

    topology_key: str
    selector: Mapping[str, Any] | None
    namespaces: frozenset[str]
    namespace_selector: Mapping[str, Any] | None
    weight: int = 0


class PodInfo(Struct, frozen=True, eq=False):
    """One pod as scheduling sees it. ``pod`` is the API object, read-only."""

    pod: Object
    uid: str
    key: str
    namespace: str
    name: str
    node_name: str
    nominated_node: str
    scheduler_name: str
    priority: int
    preempts: bool
    deleting: bool
    labels: Mapping[str, str]
    requests: Amounts
    scoring_cpu: int
    scoring_memory: int
    ports: tuple[Port, ...]
    gates: tuple[str, ...]
    tolerations: tuple[Mapping[str, Any], ...]
    node_selector: Mapping[str, str]
    node_affinity: Mapping[str, Any]
    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred: tuple[PodTerm, ...]
    preferred_against: tuple[PodTerm, ...]
    spread: tuple[Mapping[str, Any], ...]
    claims: frozenset[str]
    """Keys of the resource claims that it names, in its spec or as made for it."""

    def request(self, resource: str) -> int:
        """Return the pod's request of one resource; 0 when it asks for none."""
        return self.requests.get(resource, 0)

    @property
    def resource_version(self) -> str:
        """The pod's ``metadata.resourceVersion``."""
        return str(self.pod["metadata"].get("resourceVersion", ""))

    @property
    def start_time(self) -> str:
        """When it started: RFC 3339 text, which sorts by time. Pods not started count as started last, in order of
        creation."""
        started = (self.pod.get("status") or {}).get("startTime")
        return str(started or f"not started {self.pod['metadata'].get('creationTimestamp', '')}")


def pod_info(pod: Object, before: PodInfo | None = None) -> PodInfo:
    """Read from a pod what scheduling needs, once, so that plugins do not parse it again for every node. ``before``: as
    it was read last; what its containers ask for is taken from there where nothing of that was written since."""
    spec: Mapping[str, Any] = pod.get("spec") or {}
    status: Mapping[str, Any] = pod.get("status") or {}
    affinity: Mapping[str, Any] = spec.get("affinity") or {}
    namespace, name = namespace_of(pod), name_of(pod)
    toward, against = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if before is not None and _asks_as_before(before.pod.get("spec") or {}, spec):
        requests, ports = before.requests, before.ports
        scoring = {"cpu": before.scoring_cpu, "memory": before.scoring_memory}
    else:
        (requests, scoring), ports = _requests(pod), tuple(_ports(pod))
    return PodInfo(
        pod=pod,
        uid=uid_of(pod),
        key=f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        node_name=node_name_of(pod),
        nominated_node=str(status.get("nominatedNodeName") or ""),
        scheduler_name=str(spec.get("schedulerName") or "default-scheduler"),
        priority=int(spec.get("priority") or 0),
        preempts=spec.get("preemptionPolicy") != "Never",
        deleting=is_deleting(pod),
        labels=labels_of(pod),
        requests=requests,
        scoring_cpu=scoring["cpu"],
        scoring_memory=scoring["memory"],
        ports=ports,
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        tolerations=tuple(spec.get("tolerations") or ()),
        node_selector=spec.get("nodeSelector") or {},
        node_affinity=affinity.get("nodeAffinity") or {},
        affinity=_required(toward, namespace),
        anti_affinity=_required(against, namespace),
        preferred=_preferred(toward, namespace),
        preferred_against=_preferred(against, namespace),
        spread=tuple(spec.get("topologySpreadConstraints") or ()),
        claims=frozenset(f"{namespace}/{claim}" for claim in named_claims(pod)) if names_claims(pod) else _NO_CLAIMS,
    )


_NO_CLAIMS: frozenset[str] = frozenset()


def _asks_as_before(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether these are the very same parts: a write keeps those that it does not touch."""
    return all(old.get(part) is new.get(part) for part in ("containers", "initContainers", "overhead", "resources"))


def _requests(pod: Object) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the pod asks, and what scoring takes it to ask (cpu and memory, with defaults)."""
    named, containers = pod_amounts(pod, amounts), list(containers_of(pod))
    asked = {resource: number for resource, number in named.items() if number}
    if not containers:
        return asked, {"cpu": 0, "memory": 0}
    default = {"cpu": DEFAULT_MILLI_CPU, "memory": DEFAULT_MEMORY}
    spec = pod["spec"]
    if len(containers) == 1 and not (spec.get("initContainers") or spec.get("overhead") or spec.get("resources")):
        return asked, default | named  # what its only container names is all there is: the usual pod is read once
    return asked, default | pod_amounts(pod, amounts, default)


def _ports(pod: Object) -> Iterable[Port]:
    sidecars = [container for container in init_containers_of(pod) if container.get("restartPolicy") == "Always"]
    for container in (*sidecars, *containers_of(pod)):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(port["hostPort"])


def _required(affinity: Mapping[str, Any], namespace: str) -> tuple[PodTerm, ...]:
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term, namespace, 0) for term in terms)


def _preferred(affinity: Mapping[str, Any], namespace: str) -> tuple[PodTerm, ...]:
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term["podAffinityTerm"], namespace, int(term["weight"])) for term in terms)


def _term(term: Mapping[str, Any], namespace: str, weight: int) -> PodTerm:
    named = frozenset(term.get("namespaces") or ())
    selector = term.get("namespaceSelector")
    if not named and selector is None:
        named = frozenset((namespace,))
    return PodTerm(
        topology_key=term["topologyKey"],
        selector=term.get("labelSelector"),
        namespaces=named,
        namespace_selector=selector,
        weight=weight,
    )

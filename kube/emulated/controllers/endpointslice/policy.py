"""Where a service's pods are (k8s.io/endpointslice; k8s.io/kubernetes pkg/controller/endpoint)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import (
    Object,
    is_deleting,
    is_terminal,
    labels_of,
    name_of,
    namespace_of,
    node_name_of,
    uid_of,
)
from mews.kube.api.resources import SERVICES
from mews.kube.emulated.controllers.owners import controller_reference
from mews.kube.emulated.controllers.pods import is_ready

MOST_PER_SLICE = 100
SERVICE, MANAGED, HEADLESS = (
    "kubernetes.io/service-name",
    "endpointslice.kubernetes.io/managed-by",
    "service.kubernetes.io/headless",
)
US = "endpointslice-controller.k8s.io"


def selector_of(service: Object) -> Mapping[str, str] | None:
    """Return the labels of its pods; None: somebody else knows where it is."""
    spec = service.get("spec") or {}
    return None if spec.get("type") == "ExternalName" else spec.get("selector") or None


def serves(service: Object, pod: Object) -> bool:
    """Return whether a pod is one of a service's, and can be found."""
    selector = selector_of(service)
    if selector is None or namespace_of(pod) != namespace_of(service) or is_terminal(pod):
        return False
    return bool((pod.get("status") or {}).get("podIP")) and selector.items() <= labels_of(pod).items()


def ports_of(service: Object, pod: Object) -> list[dict[str, Any]]:
    """Return the service's ports at that pod; a port by name only if the pod has it."""
    found: list[dict[str, Any]] = []
    for port in (service["spec"].get("ports")) or ():
        number = _number(port.get("targetPort", port.get("port")), str(port.get("protocol", "TCP")), pod)
        if number is not None:
            made = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            found.append(made | ({"appProtocol": port["appProtocol"]} if "appProtocol" in port else {}))
    return found


def _number(target: Any, protocol: str, pod: Object) -> int | None:
    if not isinstance(target, str):
        return int(target)
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == target and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return None


def endpoint(service: Object, pod: Object, node: Object | None) -> dict[str, Any]:
    """Return a pod as an endpoint."""
    ready, going = is_ready(pod), is_deleting(pod)
    shown = bool(service["spec"].get("publishNotReadyAddresses")) or (ready and not going)
    made: dict[str, Any] = {"addresses": [pod["status"]["podIP"]]}
    made["conditions"] = {"ready": shown, "serving": ready, "terminating": going}
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == name_of(service):
        made["hostname"] = pod["spec"]["hostname"]
    made["nodeName"] = node_name_of(pod)
    zone = labels_of(node or {}).get("topology.kubernetes.io/zone")
    made["targetRef"] = {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}
    return made | ({"zone": zone} if zone else {})


def labels_for(service: Object) -> dict[str, str]:
    """Return the labels of a service's slices."""
    made = {key: value for key, value in labels_of(service).items() if key not in (SERVICE, MANAGED, HEADLESS)}
    headless = {HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {}
    return {**made, SERVICE: name_of(service), MANAGED: US, **headless}


def contents(service: Object, pods: Sequence[Object], nodes: Mapping[str, Object]) -> list[dict[str, Any]]:
    """Return the slices that a service ought to have, without names: pods with the same ports together."""
    groups: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    for pod in pods:
        ports = ports_of(service, pod)
        _, members = groups.setdefault(json.dumps(ports, sort_keys=True), (ports, []))
        members.append(endpoint(service, pod, nodes.get(node_name_of(pod))))
    made: list[dict[str, Any]] = []
    for ports, members in groups.values():
        for start in range(0, len(members), MOST_PER_SLICE):
            made.append({"endpoints": members[start : start + MOST_PER_SLICE], "ports": ports})
    return made or [{}]


def slice_of(service: Object, content: Mapping[str, Any]) -> dict[str, Any]:
    """Make a new EndpointSlice for a service."""
    metadata = {"generateName": f"{name_of(service)}-", "namespace": namespace_of(service)}
    owned = {"labels": labels_for(service), "ownerReferences": [controller_reference(service, SERVICES)]}
    return {"metadata": {**metadata, **owned}, "addressType": "IPv4", **content}


def subsets(service: Object, pods: Sequence[Object]) -> list[dict[str, Any]]:
    """Return what the Endpoints object of a service says; pods with the same ports together."""
    groups: dict[str, dict[str, Any]] = {}
    early = bool(service["spec"].get("publishNotReadyAddresses"))
    for pod in (pod for pod in pods if not is_deleting(pod)):
        ports = [_without_empty_name(port) for port in ports_of(service, pod)]
        group = groups.setdefault(json.dumps(ports, sort_keys=True), {"ports": ports})
        target = {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}
        address = {"ip": pod["status"]["podIP"], "nodeName": node_name_of(pod), "targetRef": target}
        group.setdefault("addresses" if early or is_ready(pod) else "notReadyAddresses", []).append(address)
    for group in groups.values():
        for name in ("addresses", "notReadyAddresses"):
            if name in group:
                group[name].sort(key=lambda address: address["ip"])
    return [{name: group[name] for name in ("addresses", "notReadyAddresses", "ports") if group.get(name)}
            for group in groups.values()]  # fmt: skip


def _without_empty_name(port: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in port.items() if key != "name" or value}

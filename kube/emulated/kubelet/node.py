"""The Node object as a kubelet writes it (data/kubelet-1.34/node-worker.json, contract kubelet.md section 11). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object, timestamp
from mews.kube.api.quantities import parse
from mews.kube.releases.release_data import DEFAULT, git_version

VERSION = git_version(DEFAULT)
KUBELET_PORT = 10250
_AMOUNTS = ("capacity", "allocatable")
_NOT_READY = "[container runtime status check may not have completed yet, CSINode is not yet initialized]"


class NodeSpec(Struct, frozen=True):
    """One node: what its kubelet reports of the machine."""

    name: str
    cpus: int = 2
    memory_mib: int = 24_105
    address: str = "172.18.0.2"
    port: int = KUBELET_PORT
    pods: int = 110
    ephemeral_storage_kib: int = 264_212_084
    labels: Mapping[str, str] = field(default_factory=dict)
    version: str = VERSION
    boots: int = 0
    """How often it was started anew: each time it has another boot ID."""
    provider_id: str = ""
    """What the cloud or the fabric calls the machine; "": ``mews://NAME``."""


def new_node(spec: NodeSpec, *, now: float) -> Object:
    """Return the object that registers the node: not ready yet."""
    labels = {"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    labels |= {"kubernetes.io/hostname": spec.name, "kubernetes.io/os": "linux", **spec.labels}
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": spec.name, "labels": labels, "annotations": annotations},
        "spec": {"providerID": spec.provider_id or f"mews://{spec.name}"},
        "status": status_of(spec, {}, now=now, ready=False, before={}),
    }


def status_of(
    spec: NodeSpec, devices: Mapping[str, tuple[int, int]], *, now: float, ready: bool, before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the node's status: ``devices`` are merged over what the node showed ``before``; forgotten keys stay."""
    machine = _machine(spec)
    capacity = {**(before.get("capacity") or {}), **machine}
    allocatable = {**(before.get("allocatable") or {}), **machine}
    for resource in sorted(devices):
        capacity[resource], allocatable[resource] = (str(number) for number in devices[resource])
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": _conditions(now=now, ready=ready, before=before),
        "addresses": [
            {"type": "InternalIP", "address": spec.address},
            {"type": "Hostname", "address": spec.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": spec.port}},
        "nodeInfo": _info(spec),
    }


def differs(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether anything but heartbeats changed. Amounts are compared by value: the API server rewrites
    ``2048Ki``."""
    if any(_amounts(status[key]) != _amounts(before.get(key) or {}) for key in _AMOUNTS):
        return True
    if any(status[key] != before.get(key) for key in ("addresses", "daemonEndpoints", "nodeInfo")):
        return True
    old = {entry["type"]: entry for entry in before.get("conditions") or ()}
    return any(
        (entry["status"], entry["reason"]) != (old.get(entry["type"], {}).get("status"), old[entry["type"]]["reason"])
        for entry in status["conditions"]
    )


def _amounts(quantities: Mapping[str, str]) -> dict[str, Decimal]:
    return {name: parse(quantity) for name, quantity in quantities.items()}


def _machine(spec: NodeSpec) -> dict[str, str]:
    return {
        "cpu": str(spec.cpus),
        "ephemeral-storage": f"{spec.ephemeral_storage_kib}Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{spec.memory_mib * 1024}Ki",
        "pods": str(spec.pods),
    }


def _conditions(*, now: float, ready: bool, before: Mapping[str, Any]) -> list[dict[str, Any]]:
    verdict = ("True", "KubeletReady", "kubelet is posting ready status")
    wanted = {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        "Ready": verdict if ready else ("False", "KubeletNotReady", _NOT_READY),
    }
    stamp, old = timestamp(now), {entry["type"]: entry for entry in before.get("conditions") or ()}
    conditions = []
    for kind, (status, reason, message) in wanted.items():
        known = old.get(kind, {})
        since = known["lastTransitionTime"] if known.get("status") == status else stamp
        entry = {"type": kind, "status": status, "lastHeartbeatTime": stamp, "lastTransitionTime": since}
        conditions.append({**entry, "reason": reason, "message": message})
    return conditions + [entry for kind, entry in old.items() if kind not in wanted]


def _info(spec: NodeSpec) -> dict[str, str]:
    name = spec.name
    return {
        "machineID": _uuid(f"machine/{name}"),
        "systemUUID": _uuid(f"system/{name}"),
        "bootID": _uuid(f"boot/{name}/{spec.boots}" if spec.boots else f"boot/{name}"),
        "kernelVersion": "6.1.0-mews",
        "osImage": "Mews emulated node",
        "containerRuntimeVersion": "mews://1",
        "kubeletVersion": spec.version,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _uuid(text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()[:32]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

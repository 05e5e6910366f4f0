"""Nodes: born not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mews.harness.clusters.embedded.rules.base import Rules
from mews.harness.clusters.embedded.rules.pods import canonical_amounts
from mews.kube.api.objects import Object, clone

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.kinds import Kind
    from mews.harness.clusters.embedded.store import Store

NOT_READY = "node.kubernetes.io/not-ready"

_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def _default(node: Object) -> None:
    node.setdefault("spec", {})
    status: dict[str, Any] = node.setdefault("status", {})
    for amounts in ("capacity", "allocatable"):
        if amounts in status:
            status[amounts] = canonical_amounts("Node", status[amounts])
    status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
    info = status.setdefault("nodeInfo", {})
    for name in _INFO:
        info.setdefault(name, "")
    for condition in status.get("conditions") or ():
        condition.setdefault("lastHeartbeatTime", None)
        condition.setdefault("lastTransitionTime", None)


def _birth(node: Object) -> None:
    status = node["status"]
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = clone(status["capacity"])


def _admit(_store: Store, _kind: Kind, node: Object) -> None:
    taints = node["spec"].setdefault("taints", [])
    if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})


RULES = Rules(default=_default, birth=_birth, admit=_admit, keeps_status=True)

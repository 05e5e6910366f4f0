"""What a kubelet's ``/stats/summary`` says of its node and pods (k8s.io/kubelet/pkg/apis/stats/v1alpha1, Summary).

What an emulated node does not measure is left out, as a kubelet does: network, swap, file systems of containers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import name_of, namespace_of, timestamp, uid_of
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage

Body = dict[str, Any]
Files = Mapping[str, Mapping[str, int]]
"""A pod's uid -> the names of its emptyDir volumes -> bytes in them."""


def summary(spec: NodeSpec, node: ContainerUsage, usages: Sequence[PodUsage], files: Files, *, now: float) -> Body:
    """Return it whole; ``node`` is what the machine uses with all its ``usages``. Pure."""
    at, whole = timestamp(now), spec.memory_mib * 1024 * 1024
    found = _measured(node, at)
    found["memory"]["availableBytes"] = max(whole - node.memory, 0)
    used, capacity = sum(sum(volumes.values()) for volumes in files.values()), spec.ephemeral_storage_kib * 1024
    disk = {"time": at, "availableBytes": max(capacity - used, 0), "capacityBytes": capacity}
    pods = [_pod(usage, files.get(uid_of(usage.pod), {}), disk, at) for usage in usages]
    return {"node": {"nodeName": spec.name, **found, "fs": {**disk, "usedBytes": used}}, "pods": pods}


def only_cpu_and_memory(whole: Body) -> Body:
    """Return the part for ``?only_cpu_and_memory=true`` (pkg/kubelet/server/stats, GetCPUAndMemoryStats)."""
    node = {key: value for key, value in whole["node"].items() if key != "fs"}
    left_out = ("volume", "ephemeral-storage")
    pods = [{key: value for key, value in pod.items() if key not in left_out} for pod in whole["pods"]]
    return {"node": node, "pods": pods}


def _pod(usage: PodUsage, volumes: Mapping[str, int], disk: Body, at: str) -> Body:
    each = usage.containers.values()
    total = ContainerUsage(
        sum(used.cpu_nano for used in each), sum(used.memory for used in each), sum(used.cpu_s for used in each),
        min((used.started_at for used in each), default=0.0),
    )  # fmt: skip
    pod = usage.pod
    found: Body = {
        "podRef": {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)},
        **_measured(total, at),
        "containers": [{"name": name, **_measured(used, at)} for name, used in usage.containers.items()],
    }
    if volumes:
        found["volume"] = [{"name": name, **disk, "usedBytes": volumes[name]} for name in sorted(volumes)]
        found["ephemeral-storage"] = {**disk, "usedBytes": sum(volumes.values())}
    return found


def _measured(used: ContainerUsage, at: str) -> Body:
    cpu = {"time": at, "usageNanoCores": used.cpu_nano, "usageCoreNanoSeconds": round(used.cpu_s * 1e9)}
    memory = {"time": at, "usageBytes": used.memory, "workingSetBytes": used.memory}
    return {"startTime": timestamp(used.started_at), "cpu": cpu, "memory": memory}

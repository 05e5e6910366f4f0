"""metrics.k8s.io/v1beta1: what nodes and pods use, as the kubelets say it, in metrics-server's form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from mews.kube.api.objects import Object, labels_of, name_of, namespace_of, node_name_of, timestamp
from mews.kube.emulated.streaming.usage import PodUsage

GROUP, VERSION = "metrics.k8s.io", "v1beta1"


class UsageSource(Protocol):
    """A kubelet, as far as it is asked here."""

    def usage(self) -> Sequence[PodUsage]:
        """Return what its pods use."""
        ...


SourceOf = Callable[[str], UsageSource | None]
"""The kubelet of a node; None while it does not answer."""


def node_metrics(nodes: Iterable[Object], kubelet_of: SourceOf, now: float) -> list[Object]:
    """Return those of each node whose kubelet answers."""
    found = []
    for node in nodes:
        kubelet = kubelet_of(name_of(node))
        if kubelet is not None:
            usages = kubelet.usage()
            found.append({**_head(node, usages, now), "usage": _summed(usages)})
    return found


def pod_metrics(pods: Iterable[Object], kubelet_of: SourceOf, now: float) -> list[Object]:
    """Return those of each pod that a kubelet knows containers of."""
    wanted = {(namespace_of(pod), name_of(pod)): pod for pod in pods}
    used: dict[tuple[str, str], PodUsage] = {}
    for node in sorted({node_name_of(pod) for pod in wanted.values()} - {""}):
        kubelet = kubelet_of(node)
        for usage in kubelet.usage() if kubelet is not None else ():
            used[namespace_of(usage.pod), name_of(usage.pod)] = usage
    return [
        {**_head(pod, [used[key]], now), "containers": _containers(used[key])}
        for key, pod in wanted.items()
        if key in used and used[key].containers
    ]


def listed(kind: str, items: Sequence[Object]) -> Object:
    """Return the list of them."""
    return {"kind": f"{kind}List", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}


def one(kind: str, items: Iterable[Object], name: str) -> Object | None:
    """Return the one of that name."""
    found = next((each for each in items if name_of(each) == name), None)
    return None if found is None else {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", **found}


def _head(obj: Object, usages: Sequence[PodUsage], now: float) -> Object:
    metadata: Object = {"name": name_of(obj), "creationTimestamp": timestamp(now), "labels": dict(labels_of(obj))}
    if namespace_of(obj):
        metadata["namespace"] = namespace_of(obj)
    window_s = max((usage.window_s for usage in usages), default=10.0)
    return {"metadata": metadata, "timestamp": timestamp(now), "window": f"{window_s:.3f}s"}


def _summed(usages: Sequence[PodUsage]) -> Mapping[str, str]:
    each = [used for usage in usages for used in usage.containers.values()]
    return _shown(sum(used.cpu_nano for used in each), sum(used.memory for used in each))


def _containers(usage: PodUsage) -> list[dict[str, Any]]:
    return [
        {"name": name, "usage": _shown(used.cpu_nano, used.memory)} for name, used in sorted(usage.containers.items())
    ]


def _shown(cpu_nano: int, memory: int) -> Mapping[str, str]:
    return {"cpu": f"{cpu_nano}n" if cpu_nano else "0", "memory": f"{memory // 1024}Ki"}

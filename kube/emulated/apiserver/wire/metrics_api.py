"""metrics.k8s.io/v1beta1 (what metrics-server serves): asked of the kubelets when it is asked for; ``kubectl top``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from mews.kube.api.objects import Object, labels_of, name_of, namespace_of, timestamp
from mews.kube.api.resources import NODES, PODS, Resource
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.kinds import Kind
from mews.kube.emulated.apiserver.store.selection import select
from mews.kube.emulated.apiserver.store.store import Store
from mews.kube.emulated.apiserver.wire.call import Call
from mews.kube.streaming.usage import PodUsage

GROUP = "metrics.k8s.io"
_VERSION = "v1beta1"
_READ = ("get", "list")


def serve_kinds(store: Store) -> None:
    """Let discovery show them; nothing of them is stored."""
    for plural, kind, namespaced in (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True)):
        resource = Resource(GROUP, _VERSION, plural, kind, namespaced)
        store.kinds.add(Kind(resource, "", verbs=_READ, storage=(GROUP, plural)))


async def serve(call: Call) -> web.StreamResponse:
    """One object or a list of them."""
    nodes = call.kind.plural == "nodes"
    found = list(_nodes(call) if nodes else _pods(call))
    if call.route.name:
        named = next((each for each in found if each["metadata"]["name"] == call.route.name), None)
        if named is None:
            raise refusals.missing(call.kind, call.route.name)
        return call.answer({"kind": call.kind.resource.kind, "apiVersion": f"{GROUP}/{_VERSION}", **named})
    kind = f"{call.kind.resource.kind}List"
    return call.answer({"kind": kind, "apiVersion": f"{GROUP}/{_VERSION}", "metadata": {}, "items": found})


def _nodes(call: Call) -> Iterator[Object]:
    store = call.world.store
    kind = store.kinds.of(NODES)
    selection = select(kind, labels=call.query.get("labelSelector", ""), fields=call.query.get("fieldSelector", ""))
    for node in store.shelf(kind).select(selection):
        usages = _asked(call, name_of(node))
        if usages is not None:
            yield {**_head(call, node, usages), "usage": _summed(usages)}


def _pods(call: Call) -> Iterator[Object]:
    store = call.world.store
    kind = store.kinds.of(PODS)
    selection = select(
        kind,
        namespace=call.route.namespace,
        labels=call.query.get("labelSelector", ""),
        fields=call.query.get("fieldSelector", ""),
    )
    wanted = {(namespace_of(pod), name_of(pod)): pod for pod in store.shelf(kind).select(selection)}
    nodes = {pod["spec"].get("nodeName") for pod in wanted.values()} - {None}
    used = {
        (namespace_of(usage.pod), name_of(usage.pod)): usage
        for node in sorted(nodes)
        for usage in _asked(call, node) or ()
    }
    for key, pod in wanted.items():
        if key in used and used[key].containers:
            yield {**_head(call, pod, [used[key]]), "containers": _containers(used[key])}


def _asked(call: Call, node: str) -> Sequence[PodUsage] | None:
    kubelet = call.world.kubelets.kubelet_of(node)
    return None if kubelet is None else kubelet.usage()


def _head(call: Call, obj: Object, usages: Sequence[PodUsage]) -> Object:
    now = timestamp(call.world.store.now())
    metadata: Object = {"name": name_of(obj), "creationTimestamp": now, "labels": dict(labels_of(obj))}
    if namespace_of(obj):
        metadata["namespace"] = namespace_of(obj)
    window_s = max((usage.window_s for usage in usages), default=10.0)
    return {"metadata": metadata, "timestamp": now, "window": f"{window_s:.3f}s"}


def _summed(usages: Sequence[PodUsage]) -> Mapping[str, str]:
    each = [used for usage in usages for used in usage.containers.values()]
    return _shown(sum(used.cpu_nano for used in each), sum(used.memory for used in each))


def _containers(usage: PodUsage) -> list[dict[str, Any]]:
    return [
        {"name": name, "usage": _shown(used.cpu_nano, used.memory)} for name, used in sorted(usage.containers.items())
    ]


def _shown(cpu_nano: int, memory: int) -> Mapping[str, str]:
    return {"cpu": f"{cpu_nano}n" if cpu_nano else "0", "memory": f"{memory // 1024}Ki"}

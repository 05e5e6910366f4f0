"""metrics.k8s.io/v1beta1 (what metrics-server serves): asked of the kubelets when it is asked for; ``kubectl top``."""

from __future__ import annotations

from aiohttp import web

from mews.kube.api.resources import NODES, PODS, Resource
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.kinds import Kind
from mews.kube.emulated.apiserver.store.selection import select
from mews.kube.emulated.apiserver.store.store import Store
from mews.kube.emulated.apiserver.wire.call import Call
from mews.kube.streaming.metrics import GROUP, VERSION, listed, node_metrics, one, pod_metrics

_READ = ("get", "list")


def serve_kinds(store: Store) -> None:
    """Let discovery show them; nothing of them is stored."""
    for plural, kind, namespaced in (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True)):
        resource = Resource(GROUP, VERSION, plural, kind, namespaced)
        store.kinds.add(Kind(resource, "", verbs=_READ, storage=(GROUP, plural)))


async def serve(call: Call) -> web.StreamResponse:
    """One object or a list of them."""
    store, kubelets = call.world.store, call.world.kubelets
    nodes = call.kind.plural == "nodes"
    kind = store.kinds.of(NODES if nodes else PODS)
    selection = select(
        kind,
        namespace=call.route.namespace,
        labels=call.query.get("labelSelector", ""),
        fields=call.query.get("fieldSelector", ""),
    )
    measure = node_metrics if nodes else pod_metrics
    found = measure(store.shelf(kind).select(selection), kubelets.kubelet_of, store.now())
    if call.route.name:
        named = one(call.kind.resource.kind, found, call.route.name)
        if named is None:
            raise refusals.missing(call.kind, call.route.name)
        return call.answer(named)
    return call.answer(listed(call.kind.resource.kind, found))

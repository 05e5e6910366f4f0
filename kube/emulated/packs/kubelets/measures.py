"""What metrics.k8s.io/v1beta1 shows: asked of the kubelets when it is asked for, and never stored. Without a wire."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES, PODS, Resource
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import select
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.ports.kubelets import KubeletDirectory
from mews.kube.emulated.streaming.metrics import GROUP, VERSION, node_metrics, one, pod_metrics

_READ = ("get", "list")


def serve_kinds(store: Store) -> None:
    """Let discovery show them; nothing of them is stored."""
    for plural, kind, namespaced in (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True)):
        resource = Resource(GROUP, VERSION, plural, kind, namespaced)
        store.kinds.add(Kind(resource, "", verbs=_READ, storage=(GROUP, plural)))


def is_measured(kind: Kind) -> bool:
    """Return whether objects of the kind are measured, not stored."""
    return kind.resource.group == GROUP


def measured(
    store: Store, kubelets: KubeletDirectory, kind: Kind, *, namespace: str | None, labels: str = "", fields: str = ""
) -> list[Object]:
    """Return the metrics of the selected nodes or pods, in all namespaces where ``namespace`` is None."""
    nodes = kind.plural == "nodes"
    of = store.kinds.of(NODES if nodes else PODS)
    selection = select(of, namespace=namespace, labels=labels, fields=fields)
    measure = node_metrics if nodes else pod_metrics
    return measure(store.shelf(of).select(selection), kubelets.kubelet_of, store.now())


def one_measured(store: Store, kubelets: KubeletDirectory, kind: Kind, *, namespace: str | None, name: str) -> Object:
    """Return the metrics of one node or pod.

    Raises NotFoundError.
    """
    found = one(kind.resource.kind, measured(store, kubelets, kind, namespace=namespace), name)
    if found is None:
        raise refusals.missing(kind, name)
    return found

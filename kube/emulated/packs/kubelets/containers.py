"""From a pod and perhaps a container's name to the kubelet that runs it (contract apiserver.md section 7)."""

from __future__ import annotations

from msgspec import Struct

from mews.kube.api.errors import BadRequestError, ServerError
from mews.kube.api.objects import Object, all_containers_of, containers_of, init_containers_of, name_of, node_name_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.ports.kubelets import KubeletApi, KubeletDirectory

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


class ContainerTarget(Struct, frozen=True):
    """A container and its kubelet; no kubelet while the pod is unassigned."""

    container: str
    kubelet: KubeletApi | None


def find(
    store: Store, kubelets: KubeletDirectory, namespace: str, pod_name: str, container: str | None
) -> ContainerTarget:
    """Raises ``NotFoundError`` for the pod, ``BadRequestError`` for the container, ``ServerError`` when the node's
    kubelet does not answer."""
    pod = store.get(store.kinds.of(PODS), namespace, pod_name)
    chosen = _container(pod, container)
    node = node_name_of(pod)
    if not node:
        return ContainerTarget(chosen, None)
    return ContainerTarget(chosen, kubelet_of_pod(store, kubelets, pod))


def kubelet_of_pod(store: Store, kubelets: KubeletDirectory, pod: Object) -> KubeletApi:
    """Return the kubelet of a bound pod's node.

    Raises NotFoundError where there is no such node, ServerError where no kubelet answers.
    """
    node = node_name_of(pod)
    if kubelets.kubelet_of(node) is None and store.find(store.kinds.of(NODES), "", node) is None:
        raise refusals.missing(store.kinds.of(PODS), node)  # as upstream: it looks for a node, and says pods
    return kubelet_of(kubelets, node)


def kubelet_of(kubelets: KubeletDirectory, node: str) -> KubeletApi:
    """Return the kubelet of a node.

    Raises ServerError where none answers.
    """
    kubelet = kubelets.kubelet_of(node)
    if kubelet is None:
        raise ServerError(f'Get "https://{node}:10250/": dial tcp: connect: connection refused', reason="")
    return kubelet


def _container(pod: Object, asked: str | None) -> str:
    mains = [str(container["name"]) for container in containers_of(pod)]
    inits = [str(container["name"]) for container in init_containers_of(pod)]
    name = name_of(pod)
    if asked:
        if all(container["name"] != asked for container in all_containers_of(pod)):
            raise BadRequestError(f"container {asked} is not valid for pod {name}")
        return asked
    if len(mains) == 1 and not inits:
        return mains[0]
    default = (pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER)
    if default in mains:
        return str(default)
    choices = f"choose one of: [{' '.join([*inits, *mains])}]"
    raise BadRequestError(f"a container name must be specified for pod {name}, {choices}")

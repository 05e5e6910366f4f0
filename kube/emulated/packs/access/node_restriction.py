"""NodeRestriction: a kubelet touches its own node and pods only (plugin/pkg/admission/noderestriction)."""

from __future__ import annotations

from mews.kube.api.objects import node_name_of
from mews.kube.api.resources import PODS
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store

NODES_GROUP = "system:nodes"
_USER = "system:node:"
_MIRROR = "kubernetes.io/config.mirror"
_LEASES = "kube-node-lease"
_HANDLED = ("pods", "nodes", "leases", "csinodes")
_OWN_LABELS = (
    *(f"kubernetes.io/{name}" for name in ("hostname", "os", "arch")),
    *(f"beta.kubernetes.io/{name}" for name in ("os", "arch", "instance-type")),
    *(
        f"{domain}.kubernetes.io/{name}"
        for domain in ("topology", "failure-domain.beta")
        for name in ("region", "zone")
    ),
    "node.kubernetes.io/instance-type",
)


def _handles(kind: Kind, operation: AdmissionOperation, _subresource: str) -> bool:
    return kind.plural in _HANDLED and operation is not AdmissionOperation.CONNECT


def _admit(store: Store, attributes: AdmissionAttributes) -> None:
    user = attributes.user
    if NODES_GROUP not in user.groups or not user.name.startswith(_USER):
        return
    node = user.name.removeprefix(_USER)
    match attributes.kind.plural:
        case "pods":
            _admit_pod(store, attributes, node)
        case "nodes":
            _admit_node(attributes, node)
        case "leases":
            _admit_lease(attributes, node)
        case "csinodes":
            if _name(attributes) != node:
                raise refused(attributes, "can only access CSINode with the same name as the requesting node")


def _name(attributes: AdmissionAttributes) -> str:
    return attributes.name or str(((attributes.obj or {}).get("metadata") or {}).get("name", ""))


# Complex: one case for each subresource, as upstream's admitPod.
def _admit_pod(store: Store, attributes: AdmissionAttributes, node: str) -> None:  # noqa: C901
    match attributes.subresource, attributes.operation:
        case "", AdmissionOperation.CREATE:
            _admit_new_pod(attributes, node)
        case "", AdmissionOperation.DELETE:
            if node_name_of(attributes.old or {}) != node:
                raise refused(attributes, f'node "{node}" can only delete pods with spec.nodeName set to itself')
        case "status", AdmissionOperation.UPDATE:
            if node_name_of(attributes.old or {}) != node:
                text = f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
                raise refused(attributes, text)
            if _labels(attributes.old) != _labels(attributes.obj):
                raise refused(attributes, f'node "{node}" cannot update labels through pod status')
        case "eviction", AdmissionOperation.CREATE:
            pod = store.find(store.kinds.of(PODS), attributes.namespace, attributes.name)
            if pod is not None and node_name_of(pod) != node:
                raise refused(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")
        case "", operation:
            text = f'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods'
            raise refused(attributes, text)
        case other, _:
            text = f"unexpected pod subresource \"{other}\", only 'status' and 'eviction' are allowed"
            raise refused(attributes, text)


def _labels(obj: dict[str, object] | None) -> object:
    metadata = (obj or {}).get("metadata") or {}
    return (metadata.get("labels") or {}) if isinstance(metadata, dict) else {}


def _admit_new_pod(attributes: AdmissionAttributes, node: str) -> None:
    pod = attributes.obj
    assert pod is not None
    if _MIRROR not in (pod["metadata"].get("annotations") or {}):
        text = f'pod does not have "{_MIRROR}" annotation, node "{node}" can only create mirror pods'
        raise refused(attributes, text)
    if pod["spec"].get("nodeName") != node:
        raise refused(attributes, f'node "{node}" can only create pods with spec.nodeName set to itself')
    owners = pod["metadata"].get("ownerReferences") or []
    own = len(owners) == 1 and (owners[0].get("kind"), owners[0].get("name")) == ("Node", node)
    if not own:
        text = f'node "{node}" can only create pods with a single owner reference set to itself'
        raise refused(attributes, text)


def _admit_node(attributes: AdmissionAttributes, node: str) -> None:
    if _name(attributes) != node:
        raise refused(attributes, f'node "{node}" is not allowed to modify node "{_name(attributes)}"')
    new, old = attributes.obj, attributes.old
    if new is None:
        return
    before = (old or {}).get("metadata", {}).get("labels") or {}
    after = new["metadata"].get("labels") or {}
    touched = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    foreign = sorted(key for key in touched if _is_reserved(key))
    if foreign:
        text = "set the following labels" if old is None else "modify labels"
        raise refused(attributes, f'node "{node}" is not allowed to {text}: {", ".join(foreign)}')
    if old is None:
        return
    if (new["spec"].get("taints") or []) != (old["spec"].get("taints") or []):
        raise refused(attributes, f'node "{node}" is not allowed to modify taints')
    if (new["metadata"].get("ownerReferences") or []) != (old["metadata"].get("ownerReferences") or []):
        raise refused(attributes, f'node "{node}" is not allowed to modify ownerReferences')


def _is_reserved(label: str) -> bool:
    """Return whether a label of Kubernetes' own is none of those that kubelets set."""
    domain = label.partition("/")[0] if "/" in label else ""
    if domain == "node-restriction.kubernetes.io" or domain.endswith(".node-restriction.kubernetes.io"):
        return True
    if not any(domain == known or domain.endswith(f".{known}") for known in ("kubernetes.io", "k8s.io")):
        return False
    kubelets = ("kubelet.kubernetes.io", "node.kubernetes.io")
    own = any(domain == known or domain.endswith(f".{known}") for known in kubelets)
    return label not in _OWN_LABELS and not own


def _admit_lease(attributes: AdmissionAttributes, node: str) -> None:
    if attributes.namespace != _LEASES:
        raise refused(attributes, f'can only access leases in the "{_LEASES}" system namespace')
    if _name(attributes) != node:
        raise refused(attributes, "can only access node lease with the same name as the requesting node")


PLUGIN = AdmissionPlugin("NodeRestriction", _handles, mutate=_admit)

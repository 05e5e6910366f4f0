"""Plugins about storage and classes: DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize,
DefaultIngressClass, TaintNodesByCondition (k8s.io/kubernetes plugin/pkg/admission)."""

from __future__ import annotations

from mews.kube.api.finalizers import IN_USE
from mews.kube.api.objects import Object
from mews.kube.api.quantities import parse
from mews.kube.api.resources import STORAGE_CLASSES, Resource
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, handles, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.core.store.store import Store

INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False)
NOT_READY = "node.kubernetes.io/not-ready"

_STORAGE_MARKS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_MARK = "ingressclass.kubernetes.io/is-default-class"


def _default_of(store: Store, resource: Resource, marks: tuple[str, ...]) -> list[Object]:
    """Classes that are marked as the default: the newest first, of the same age by name."""
    found = [
        each
        for each in store.shelf(store.kinds.of(resource)).select(EVERYTHING)
        if any((each["metadata"].get("annotations") or {}).get(mark) == "true" for mark in marks)
    ]
    found.sort(key=lambda each: str(each["metadata"]["name"]))
    return sorted(found, key=lambda each: str(each["metadata"]["creationTimestamp"]), reverse=True)


def _default_storage(store: Store, attributes: AdmissionAttributes) -> None:
    assert attributes.obj is not None
    annotations = attributes.obj["metadata"].get("annotations") or {}
    if "storageClassName" in attributes.obj["spec"] or "volume.beta.kubernetes.io/storage-class" in annotations:
        return
    found = _default_of(store, STORAGE_CLASSES, _STORAGE_MARKS)
    if found:
        attributes.obj["spec"]["storageClassName"] = found[0]["metadata"]["name"]


DEFAULT_STORAGE_CLASS = AdmissionPlugin(
    "DefaultStorageClass", handles("persistentvolumeclaims", AdmissionOperation.CREATE), mutate=_default_storage
)


_IN_USE = {(resource.group, resource.plural): finalizer for resource, finalizer in IN_USE.items()}


def _protect(_store: Store, attributes: AdmissionAttributes) -> None:
    assert attributes.obj is not None
    resource = attributes.kind.resource
    finalizer = _IN_USE[resource.group, resource.plural]
    finalizers = attributes.obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def _is_protected(kind: Kind, operation: AdmissionOperation, subresource: str) -> bool:
    known = (kind.resource.group, kind.resource.plural) in _IN_USE
    return known and operation is AdmissionOperation.CREATE and not subresource


IN_USE_PROTECTION = AdmissionPlugin("StorageObjectInUseProtection", _is_protected, mutate=_protect)


def _check_resize(store: Store, attributes: AdmissionAttributes) -> None:
    new, old = attributes.obj, attributes.old
    assert new is not None
    assert old is not None
    sizes = [((each["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0) for each in (new, old)]
    if parse(sizes[0]) <= parse(sizes[1]):
        return
    if (old.get("status") or {}).get("phase") != "Bound":
        raise refused(attributes, "Only bound persistent volume claims can be expanded")
    name = new["spec"].get("storageClassName", "")
    found = store.find(store.kinds.of(STORAGE_CLASSES), "", name) if name else None
    if found is None or not found.get("allowVolumeExpansion"):
        text = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
        raise refused(attributes, f"{text}support resize")


CLAIM_RESIZE = AdmissionPlugin(
    "PersistentVolumeClaimResize", handles("persistentvolumeclaims", AdmissionOperation.UPDATE), validate=_check_resize
)


def _default_ingress(store: Store, attributes: AdmissionAttributes) -> None:
    assert attributes.obj is not None
    annotations = attributes.obj["metadata"].get("annotations") or {}
    spec = attributes.obj["spec"]
    if "ingressClassName" in spec or "kubernetes.io/ingress.class" in annotations:
        return
    found = _default_of(store, INGRESS_CLASSES, (_INGRESS_MARK,))
    if found:
        spec["ingressClassName"] = found[0]["metadata"]["name"]


DEFAULT_INGRESS_CLASS = AdmissionPlugin(
    "DefaultIngressClass",
    handles("ingresses", AdmissionOperation.CREATE, group="networking.k8s.io"),
    mutate=_default_ingress,
)


def _taint(_store: Store, attributes: AdmissionAttributes) -> None:
    assert attributes.obj is not None
    taints = attributes.obj["spec"].setdefault("taints", [])
    if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})


TAINT_NODES = AdmissionPlugin("TaintNodesByCondition", handles("nodes", AdmissionOperation.CREATE), mutate=_taint)

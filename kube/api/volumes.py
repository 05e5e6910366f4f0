"""What claims and volumes say of each other, as scheduler and controllers read it: pure.

Source: k8s.io/component-helpers/storage/volume (helpers.go, pv_helpers.go) and storage/ephemeral of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from mews.kube.api.objects import Object, annotations_of, is_deleting, labels_of, name_of, namespace_of, uid_of
from mews.kube.api.quantities import parse
from mews.kube.api.selectors import match_expressions

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONERS = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAITS = "WaitForFirstConsumer"
_CLASS = "volume.beta.kubernetes.io/storage-class"


def claims_of(pod: Object) -> Iterator[tuple[str, bool]]:
    """Yield the claims that a pod names, and whether each was made for it alone (a generic ephemeral volume)."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield str(volume["persistentVolumeClaim"]["claimName"]), False
        elif "ephemeral" in volume:
            yield f"{name_of(pod)}-{volume['name']}", True


def has_claims(pod: Object) -> bool:
    """Return whether a pod has volumes of claims."""
    return any(True for _ in claims_of(pod))


def not_made_for(pod: Object, claim: Object) -> str:
    """Return why a claim is not the one that was made for the pod's ephemeral volume; "" if it is."""
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("uid") == uid_of(pod):
            return ""
    return (
        f"PVC {namespace_of(claim)}/{name_of(claim)} was not created for pod {namespace_of(pod)}/{name_of(pod)} "
        "(pod is not owner)"
    )


def class_of(obj: Object) -> str:
    """Return the storage class of a claim or a volume; "" for none."""
    return annotations_of(obj).get(_CLASS) or obj["spec"].get("storageClassName") or ""


def has_class(claim: Object) -> bool:
    """Return whether somebody chose its class, be it none."""
    return _CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def waits_for_consumer(storage_class: Object | None) -> bool:
    """Return whether claims of the class are bound only once a pod that uses them has a node."""
    return storage_class is not None and storage_class.get("volumeBindingMode") == WAITS


def is_bound_to(volume: Object, claim: Object) -> bool:
    """Return whether the volume is given, or promised, to that very claim."""
    reference = volume["spec"].get("claimRef")
    if reference is None or (reference.get("name"), reference.get("namespace")) != (
        name_of(claim),
        namespace_of(claim),
    ):
        return False
    return not reference.get("uid") or reference["uid"] == uid_of(claim)


def is_fully_bound(claim: Object) -> bool:
    """Return whether the binding of the claim is complete on both sides."""
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in annotations_of(claim)


def bound_to(volume: Object, claim: Object, reference: Mapping[str, Any]) -> Object:
    """Return the volume as it is once it is given to the claim; the same object where it is already. ``reference``
    names the claim."""
    given = volume["spec"].get("claimRef") or {}
    changed = volume
    if not is_bound_to(volume, claim):
        changed = annotated(changed, **{BOUND_BY_CONTROLLER: "yes"})
    if any(given.get(name) != reference.get(name) for name in ("name", "namespace", "uid")):
        changed = {**changed, "spec": {**volume["spec"], "claimRef": dict(reference)}}
    return changed


def annotated(obj: Object, **notes: str) -> Object:
    """Return a copy with these annotations, too."""
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations_of(obj), **notes}}}


def modes_differ(volume: Object, claim: Object) -> bool:
    """Return whether one is a block device and the other a file system."""
    return (volume["spec"].get("volumeMode") or "Filesystem") != (claim["spec"].get("volumeMode") or "Filesystem")


def size_of(volume: Object) -> Decimal:
    """Return the capacity of a volume in bytes."""
    return parse((volume["spec"].get("capacity") or {}).get("storage", 0))


def request_of(claim: Object) -> Decimal:
    """Return the bytes that a claim asks for."""
    return parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0))


def attributes_class(obj: Object) -> str:
    """Return the VolumeAttributesClass of a claim or a volume; "" for none."""
    return obj["spec"].get("volumeAttributesClassName") or ""


def access_modes(obj: Object) -> list[str]:
    """Return what a claim asks for or a volume offers."""
    return list(obj["spec"].get("accessModes") or ())


def is_reachable(volume: Object, node: Object) -> bool:
    """Return whether the node's labels satisfy the volume's node affinity; its name does not count, as upstream gives
    the check labels alone."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    return any(
        match_expressions({"matchExpressions": term.get("matchExpressions")}, labels_of(node))
        and match_expressions({"matchExpressions": term.get("matchFields")}, {"metadata.name": ""})
        for term in required.get("nodeSelectorTerms") or ()
        if term.get("matchExpressions") or term.get("matchFields")
    )


def smallest_match(claim: Object, volumes: Iterable[Object], *, waits: bool, node: Object | None) -> Object | None:
    """Return the volume that is promised to the claim, or else the smallest that fits it. ``waits``: none but a
    promised one, unless there is a ``node``, from which the volume must be reachable (FindMatchingVolume)."""
    fitting: list[Object] = []
    for volume in volumes:
        is_promised = is_bound_to(volume, claim)
        if (volume["spec"].get("claimRef") is not None and not is_promised) or is_deleting(volume):
            continue
        if size_of(volume) < request_of(claim) or modes_differ(volume, claim):
            continue
        if attributes_class(volume) != attributes_class(claim):
            continue
        if is_promised:
            # One that this node cannot reach is no reason to take another volume.
            return volume if node is None or is_reachable(volume, node) else None
        if (node is not None or not waits) and _suits(volume, claim, node):
            fitting.append(volume)
    return min(fitting, key=size_of, default=None)


def _suits(volume: Object, claim: Object, node: Object | None) -> bool:
    """Return whether a volume that nobody has is of the kind that the claim asks for."""
    selector = claim["spec"].get("selector")
    if (volume.get("status") or {}).get("phase") != "Available":
        return False
    if (selector is not None and not match_expressions(selector, labels_of(volume))) or class_of(volume) != class_of(
        claim
    ):
        return False
    if node is None:
        return True
    return is_reachable(volume, node) and set(access_modes(claim)) <= set(access_modes(volume))

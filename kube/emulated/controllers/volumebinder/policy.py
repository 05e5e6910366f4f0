"""Which volume a claim gets, and what of a volume and a claim belongs together: pure.

Source: k8s.io/component-helpers/storage/volume (pv_helpers.go) and pkg/controller/volume/persistentvolume (index.go,
pv_controller.go) of Kubernetes 1.34.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from mews.kube.api.objects import Object, annotations_of, is_deleting, labels_of, name_of, namespace_of, uid_of
from mews.kube.api.quantities import parse
from mews.kube.api.selectors import match_expressions

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_MIGRATED = "pv.kubernetes.io/migrated-to"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONERS = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_SCRATCH = re.compile("/tmp/.+")
Spec = Mapping[str, Any]


def class_of(obj: Object) -> str:
    """The storage class of a claim or a volume; "" for none."""
    return annotations_of(obj).get(_CLASS) or obj["spec"].get("storageClassName") or ""


def has_class(claim: Object) -> bool:
    """Whether somebody chose its class, be it none."""
    return _CLASS in annotations_of(claim) or claim["spec"].get("storageClassName") is not None


def default_class(classes: Iterable[Object]) -> Object | None:
    """The newest class that is marked as the default."""
    marked = [each for each in classes if any(annotations_of(each).get(name) == "true" for name in _DEFAULT_CLASS)]
    marked.sort(key=name_of)
    return max(marked, key=lambda each: str(each["metadata"].get("creationTimestamp", "")), default=None)


def is_bound_to(volume: Object, claim: Object) -> bool:
    """Whether the volume is given, or promised, to that very claim."""
    reference = volume["spec"].get("claimRef")
    if reference is None or (reference.get("name"), reference.get("namespace")) != (
        name_of(claim),
        namespace_of(claim),
    ):
        return False
    return not reference.get("uid") or reference["uid"] == uid_of(claim)


def misfit(volume: Object, claim: Object) -> str:
    """Why a claim cannot have the volume that it names; "" when it can."""
    if is_deleting(volume):
        return f'the volume is marked for deletion "{name_of(volume)}"'
    if _size_of(volume) < _request_of(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if modes_differ(volume, claim):
        return "incompatible volumeMode"
    return "" if set(_access(claim)) <= set(_access(volume)) else "incompatible accessMode"


def modes_differ(volume: Object, claim: Object) -> bool:
    """Whether one is a block device and the other a file system."""
    return (volume["spec"].get("volumeMode") or "Filesystem") != (claim["spec"].get("volumeMode") or "Filesystem")


def best_match(claim: Object, volumes: Iterable[Object], *, waits: bool, node: Object | None = None) -> Object | None:
    """The volume that is promised to the claim, or else the smallest that fits, of those with the fewest access modes;
    ``waits``: none but a promised one; ``node``: where it must be reachable."""
    asked = set(_access(claim))
    groups: dict[tuple[str, ...], list[Object]] = {}
    for volume in sorted(volumes, key=name_of):
        if asked <= set(_access(volume)):
            groups.setdefault(tuple(sorted(_access(volume))), []).append(volume)
    for _, group in sorted(groups.items(), key=lambda entry: (len(entry[0]), entry[0])):
        found = _smallest(claim, group, waits=waits, node=node)
        if found is not None:
            return found
    return None


def _smallest(claim: Object, volumes: list[Object], *, waits: bool, node: Object | None) -> Object | None:
    fitting: list[Object] = []
    for volume in volumes:
        is_promised = is_bound_to(volume, claim)
        if (volume["spec"].get("claimRef") is not None and not is_promised) or is_deleting(volume):
            continue
        if _size_of(volume) < _request_of(claim) or modes_differ(volume, claim):
            continue
        if _attributes_class(volume) != _attributes_class(claim):
            continue
        if is_promised:
            return volume
        selector = claim["spec"].get("selector")
        is_free = (volume.get("status") or {}).get("phase") == "Available"
        if waits or not is_free or (selector is not None and not match_expressions(selector, labels_of(volume))):
            continue
        if class_of(volume) == class_of(claim) and (node is None or is_reachable(volume, node)):
            fitting.append(volume)
    return min(fitting, key=_size_of, default=None)


def is_reachable(volume: Object, node: Object) -> bool:
    """Whether a node is among those that the volume names."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if required is None:
        return True
    fields = {"metadata.name": name_of(node)}
    return any(
        match_expressions({"matchExpressions": term.get("matchExpressions")}, labels_of(node))
        and match_expressions({"matchExpressions": term.get("matchFields")}, fields)
        for term in required.get("nodeSelectorTerms") or ()
        if term.get("matchExpressions") or term.get("matchFields")
    )


def undeletable(volume: Object) -> str | None:
    """Why the data of a released volume cannot be removed, "" when they can be; None when somebody else does it."""
    provisioner = annotations_of(volume).get(PROVISIONED_BY, "")
    is_elsewhere = _MIGRATED in annotations_of(volume) or volume["spec"].get("csi") is not None
    if (provisioner and not provisioner.startswith("kubernetes.io/")) or (not provisioner and is_elsewhere):
        return None
    place = volume["spec"].get("hostPath")
    if place is None:
        text = "no deletable volume plugin matched" if "nfs" in volume["spec"] else "no volume plugin matched"
        return f'error getting deleter volume plugin for volume "{name_of(volume)}": {text}'
    if _SCRATCH.match(place.get("path", "")):
        return ""
    return f"host_path deleter only supports /tmp/.+ but received provided {place.get('path', '')}"


def _size_of(volume: Object) -> Decimal:
    return parse((volume["spec"].get("capacity") or {}).get("storage", 0))


def _request_of(claim: Object) -> Decimal:
    return parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0))


def _attributes_class(obj: Object) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""


def _access(obj: Object) -> list[str]:
    return list(obj["spec"].get("accessModes") or ())

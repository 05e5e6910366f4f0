"""Which volume a claim gets, and what of a volume and a claim belongs together: pure.

Source: k8s.io/component-helpers/storage/volume (pv_helpers.go) and pkg/controller/volume/persistentvolume (index.go,
pv_controller.go) of Kubernetes 1.34.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mews.kube.api.objects import Object, annotations_of, is_deleting, name_of
from mews.kube.api.volumes import (
    DEFAULT_CLASS,
    PROVISIONED_BY,
    access_modes,
    attributes_class,
    class_of,
    modes_differ,
    request_of,
    size_of,
    smallest_match,
)

_MIGRATED = "pv.kubernetes.io/migrated-to"
_SCRATCH = re.compile("/tmp/.+")


def default_class(classes: Iterable[Object]) -> Object | None:
    """Return the newest class that is marked as the default."""
    marked = [each for each in classes if any(annotations_of(each).get(name) == "true" for name in DEFAULT_CLASS)]
    marked.sort(key=name_of)
    return max(marked, key=lambda each: str(each["metadata"].get("creationTimestamp", "")), default=None)


def misfit(volume: Object, claim: Object) -> str:
    """Return why a claim cannot have the volume that it names; "" when it can."""
    if is_deleting(volume):
        return f'the volume is marked for deletion "{name_of(volume)}"'
    if size_of(volume) < request_of(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if attributes_class(volume) != attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if modes_differ(volume, claim):
        return "incompatible volumeMode"
    return "" if set(access_modes(claim)) <= set(access_modes(volume)) else "incompatible accessMode"


def best_match(claim: Object, volumes: Iterable[Object], *, waits: bool) -> Object | None:
    """Return the volume that is promised to the claim, or else the smallest that fits, of those with the fewest access
    modes; ``waits``: none but a promised one."""
    asked = set(access_modes(claim))
    groups: dict[tuple[str, ...], list[Object]] = {}
    for volume in sorted(volumes, key=name_of):
        if asked <= set(access_modes(volume)):
            groups.setdefault(tuple(sorted(access_modes(volume))), []).append(volume)
    for _, group in sorted(groups.items(), key=lambda entry: (len(entry[0]), entry[0])):
        found = smallest_match(claim, group, waits=waits, node=None)
        if found is not None:
            return found
    return None


def undeletable(volume: Object) -> str | None:
    """Return why the data of a released volume cannot be removed, "" when they can be; None when somebody else does
    it."""
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

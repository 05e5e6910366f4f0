"""PersistentVolumes (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, annotations_of
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, OBJECT, Rules
from mews.kube.emulated.core.checks.common import Part
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.kinds.volumes.common import CLASS_ANNOTATION, class_of_storage, phase_of, short_modes
from mews.kube.emulated.kinds.volumes.volume_errors import VOLUME_SOURCES, persistent_volume_spec_errors
from mews.kube.emulated.types import internal_kinds


def _volume_errors(volume: Object) -> list[FieldError]:
    return [*persistent_volume_spec_errors(volume["spec"], "spec")]


def _compare_volume(new: Object, old: Object) -> list[FieldError]:
    after, before, found = new["spec"], old["spec"], []
    if any(_source(after, name) != _source(before, name) for name in VOLUME_SOURCES):
        changed = internal_kinds.difference(before, after, "core.PersistentVolumeSource")
        text = f"spec.persistentvolumesource is immutable after creation\n{changed}"
        found.append(refusals.forbidden_field("spec.persistentvolumesource", text))
    found += common.fixed("volumeMode", after.get("volumeMode"), before.get("volumeMode"))
    affinity, former = after.get("nodeAffinity"), before.get("nodeAffinity")
    if former is not None and not _is_same_affinity(affinity, former):
        text = f"{common.IMMUTABLE}, except for updating from beta label to GA"
        found.append(refusals.bad("nodeAffinity", affinity, text))
    name = "volumeAttributesClassName"
    if before.get(name) is not None and after.get(name) is None:
        found.append(refusals.forbidden_field(f"spec.{name}", "update from non-nil value to nil is forbidden"))
    return found


_NEW_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _is_same_affinity(now: Any, before: Any) -> bool:
    """Old labels of nodes may be written by their new names."""
    if isinstance(before, list) and isinstance(now, list):
        return len(now) == len(before) and all(map(_is_same_affinity, now, before))
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = {key for each in (now, before) for key, value in each.items() if value not in (None, [])}
        return all(
            (key == "key" and _NEW_LABELS.get(before.get(key, ""), "") == now.get(key))
            or _is_same_affinity(now.get(key), before.get(key))
            for key in keys
        )
    return bool(now == before)


def _source(spec: Part, name: str) -> Any:
    found = spec.get(name)
    if name == "csi" and found:  # a secret to expand with may come later
        return {key: value for key, value in found.items() if key != "controllerExpandSecretRef"}
    return found


def _stamp_volume(volume: Object, now: str) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now}


def _stamp_phase(new: Object, old: Object, now: str) -> None:
    """When the phase changed, unless who changed it says that itself."""
    status, before = new.get("status") or {}, old.get("status") or {}
    given, known = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase") and given is None and known is not None:
        status["lastPhaseTransitionTime"] = known
    elif status.get("phase") != before.get("phase") and given in (None, known):
        status["lastPhaseTransitionTime"] = now


_OLD_SOURCES = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}


_SHOWN_AS = {"storageos": "storageOS"}


_RECYCLED = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)


def _volume_warnings(volume: Object, _: Object | None) -> list[str]:
    """Return what is old about a volume (pkg/api/persistentvolume)."""
    spec, annotations = volume["spec"], annotations_of(volume)
    found = []
    for key, text in (
        (CLASS_ANNOTATION, 'deprecated since v1.8; use "storageClassName" attribute instead'),
        ("volume.beta.kubernetes.io/mount-options", 'deprecated since v1.31; use "mountOptions" attribute instead'),
    ):
        if key in annotations:
            found.append(f"metadata.annotations[{key}]: {text}")
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLED}")
    old = (name for name in _OLD_SOURCES if spec.get(name) is not None)
    return found + [f"spec.{_SHOWN_AS.get(name, name)}: {_OLD_SOURCES[name]}" for name in old]


def _volume(obj: Object, _: float) -> Row:
    spec, claim = spec_of(obj), spec_of(obj).get("claimRef")
    return [
        (spec.get("capacity") or {}).get("storage", "0"),
        short_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase_of(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        class_of_storage(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        status_of(obj).get("reason", ""),
        spec.get("volumeMode", "<unset>"),
    ]


RULES = Rules(
    printer=Printer(_volume, is_part=True),
    warn=_volume_warnings,
    stamp_update=_stamp_phase,
    stamp_create=_stamp_volume,
    validate=_volume_errors,
    compare=_compare_volume,
    validate_status_update=lambda _new, _old: [],
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA, OBJECT, CHANGE)),
)

"""StatefulSets (pkg/apis/apps/v1/defaults.go, pkg/registry/apps/statefulset)."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks, label_named
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of
from mews.kube.emulated.kinds.volumes.persistent_volume_claims import claim_spec_warnings
from mews.kube.emulated.kinds.workloads.common import default_pods, layout, numbers, rolling, warn
from mews.kube.emulated.kinds.workloads.status_errors import stateful_set_status_errors
from mews.kube.emulated.kinds.workloads.workload_errors import stateful_set_change_errors, stateful_set_errors
from mews.kube.emulated.types.decoding import zero


def _default_stateful_set(stateful_set: Object) -> None:
    default_pods(stateful_set)
    spec = stateful_set["spec"]
    rolling(spec["updateStrategy"], **zero("apps/v1.RollingUpdateStatefulSetStrategy"))
    if "persistentVolumeClaimRetentionPolicy" not in spec:
        spec["persistentVolumeClaimRetentionPolicy"] = zero("apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def _warn_of_claims(new: Object, old: Object | None) -> list[str]:
    found, part = warn(new, old), "" if old is None else ".Spec"
    for index, claim in enumerate(new["spec"].get("volumeClaimTemplates") or ()):
        found += claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]{part}")
    if new["spec"].get("revisionHistoryLimit", 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {text}")
    return found


def _close_gates(new: Object, old: Object) -> None:
    """MaxUnavailableStatefulSet is off by default in 1.34: nobody gets the field who did not have it."""
    if _max_unavailable(old) is None:
        _shut(new)


def _prepare_stateful_set(stateful_set: Object, _: User) -> None:
    _shut(stateful_set)


def _shut(stateful_set: Object) -> None:
    rolling = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    rolling.pop("maxUnavailable", None)


def _max_unavailable(stateful_set: Object) -> Any:
    rolling = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return rolling.get("maxUnavailable")


def _stateful_set(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    return [f"{numbers(obj, 'readyReplicas')[0]}/{spec.get('replicas', 1)}", *layout(spec.get("template") or {})]


RULES = Rules(
    printer=Printer(_stateful_set, is_part=True),
    warn=_warn_of_claims,
    prepare_update=_close_gates,
    prepare_create=_prepare_stateful_set,
    default=_default_stateful_set,
    validate=stateful_set_errors,
    validate_update=stateful_set_change_errors,
    validate_status_update=stateful_set_status_errors,
    metadata=MetadataChecks(name_texts=label_named),
)

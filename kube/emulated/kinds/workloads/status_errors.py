"""What is wrong with the status of workloads and admission policies (pkg/apis/*/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

_MORE_THAN_ALL = "cannot be greater than status.replicas"
_COUNTS = {
    "DeploymentStatus": (
        ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
         "unavailableReplicas", "terminatingReplicas", "collisionCount"),
        ("updatedReplicas", "readyReplicas", "availableReplicas"),
        "cannot be greater than readyReplicas",
    ),
    "ReplicaSetStatus": (
        ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
         "terminatingReplicas"),
        ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
        "cannot be greater than readyReplicas",
    ),
    "StatefulSetStatus": (
        ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
         "collisionCount"),
        ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
        "cannot be greater than status.readyReplicas",
    ),
}  # fmt: skip
_DAEMONS = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip


def _count_errors(new: Object, form: str) -> list[FieldError]:
    counts, bounded, more_than_ready = _COUNTS[form]
    status, found = new.get("status") or {}, list[FieldError]()
    for name in counts:
        found += common.not_negative(f"status.{name}", status.get(name))
    for name in bounded:
        if status.get(name, 0) > status.get("replicas", 0):
            found.append(refusals.bad(f"status.{name}", status.get(name, 0), _MORE_THAN_ALL))
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        found.append(refusals.bad("status.availableReplicas", available, more_than_ready))
    return found


def _collision_errors(new: Object, old: Object) -> list[FieldError]:
    """Collisions are counted, and no count is taken back."""
    count, before = ((obj.get("status") or {}).get("collisionCount") for obj in (new, old))
    if before is None or (count is not None and count >= before):
        return []
    return [refusals.bad("status.collisionCount", count or 0, "cannot be decremented")]


def deployment_status_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a Deployment's."""
    return [*_count_errors(new, "DeploymentStatus"), *_collision_errors(new, old)]


def replica_set_status_errors(new: Object, _: Object) -> list[FieldError]:
    """Return what is wrong with a ReplicaSet's or a ReplicationController's."""
    return _count_errors(new, "ReplicaSetStatus")


def stateful_set_status_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a StatefulSet's."""
    return [*_count_errors(new, "StatefulSetStatus"), *_collision_errors(new, old)]


def daemon_set_status_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a DaemonSet's."""
    status, found = new.get("status") or {}, list[FieldError]()
    for name in _DAEMONS:
        found += common.not_negative(f"status.{name}", status.get(name))
    return [*found, *_collision_errors(new, old)]


def policy_status_errors(new: Object, _: Object) -> list[FieldError]:
    """Return what is wrong with that of an admission policy: what its types were checked for, and its conditions."""
    status, found = new.get("status") or {}, list[FieldError]()
    for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        if not (warning or {}).get("warning"):
            found.append(refusals.required(f"{path}.warning"))
        if not (warning or {}).get("fieldRef", "").strip():
            found.append(refusals.required(f"{path}.fieldRef"))
    return [*found, *common.conditions("status.conditions", status.get("conditions") or ())]

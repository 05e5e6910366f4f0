"""What a ReplicaSet's controller decides (k8s.io/kubernetes pkg/controller/replicaset)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, labels_of, node_name_of, timestamp
from mews.kube.emulated.controllers.conditions import find, nonzero, without
from mews.kube.emulated.controllers.pods import first_to_go, is_active, is_available, is_ready

BURST = 500
"""At most so many pods are made or deleted at a time."""
_FAILURE = "ReplicaFailure"


def wanted(replica_set: Object) -> int:
    """``spec.replicas``."""
    return int(replica_set["spec"].get("replicas", 1))


def min_ready_s(workload: Object) -> int:
    """``spec.minReadySeconds``."""
    return int(workload["spec"].get("minReadySeconds") or 0)


def to_create(replica_set: Object, active: Sequence[Object]) -> int:
    """Return how many pods to make now."""
    return min(max(wanted(replica_set) - len(active), 0), BURST)


def to_delete(replica_set: Object, active: Sequence[Object], related: Sequence[Object], now: float) -> list[Object]:
    """Return which pods to delete now; ``related``: pods of all ReplicaSets of the same owner."""
    count = min(max(len(active) - wanted(replica_set), 0), BURST)
    if count == len(active):
        return list(active)
    if count == 0:
        return []
    crowds = Counter(node_name_of(pod) for pod in related if is_active(pod))
    return first_to_go(active, [crowds[node_name_of(pod)] for pod in active], now)[:count]


def status(replica_set: Object, active: Sequence[Object], failure: str | None, now: float) -> dict[str, Any]:
    """Return the new status; ``failure``: what went wrong as pods were made or deleted."""
    old: Mapping[str, Any] = replica_set.get("status") or {}
    template = labels_of(replica_set["spec"].get("template") or {})
    ready = [pod for pod in active if is_ready(pod)]
    span_s = min_ready_s(replica_set)
    conditions = list(old.get("conditions") or ())
    if failure is None:
        conditions = without(conditions, _FAILURE)
    elif find(conditions, _FAILURE) is None:
        reason = "FailedCreate" if len(active) < wanted(replica_set) else "FailedDelete"
        condition = {"type": _FAILURE, "status": "True", "lastTransitionTime": timestamp(now)}
        conditions.append({**condition, "reason": reason, "message": failure})
    made = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(template.items() <= labels_of(pod).items() for pod in active),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, span_s, now) for pod in ready),
        "observedGeneration": replica_set["metadata"].get("generation", 0),
        "conditions": conditions,
    }
    return nonzero(made, "replicas")

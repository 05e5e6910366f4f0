"""A Deployment's status and conditions (k8s.io/kubernetes pkg/controller/deployment: sync.go, progress.go). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, name_of, timestamp
from mews.kube.emulated.controllers.conditions import Condition, find, nonzero, put, without
from mews.kube.emulated.controllers.deployment.policy import (
    available_of,
    deadline_left_s,
    deadline_s,
    max_unavailable,
    replicas_of,
)

PROGRESSING, AVAILABLE, FAILURE = "Progressing", "Available", "ReplicaFailure"
TIMED_OUT, FINISHED, PAUSED = "ProgressDeadlineExceeded", "NewReplicaSetAvailable", "DeploymentPaused"


def condition(kind: str, status: str, reason: str, message: str, *, now: float) -> Condition:
    """Return a condition as of now."""
    stamp = timestamp(now)
    made = {"type": kind, "status": status, "lastUpdateTime": stamp, "lastTransitionTime": stamp}
    return {**made, "reason": reason, "message": message}


def counts(deployment: Object, new: Object | None, old: Sequence[Object], now: float) -> dict[str, Any]:
    """Return the status without an opinion of the roll-out's progress."""
    sets = [*old, *([new] if new is not None else [])]
    known = deployment.get("status") or {}
    available = sum(available_of(rs) for rs in sets)
    enough = available >= replicas_of(deployment) - max_unavailable(deployment)
    availability = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    made = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": _sum(sets, "replicas"),
        "updatedReplicas": _sum([new] if new is not None else [], "replicas"),
        "readyReplicas": _sum(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(replicas_of(rs) for rs in sets) - available, 0),
        "conditions": put(known.get("conditions") or (), condition(AVAILABLE, *availability, now=now)),
    }
    if known.get("collisionCount") is not None:
        made["collisionCount"] = known["collisionCount"]
    return nonzero(made, "collisionCount")


def _sum(sets: Sequence[Object], name: str) -> int:
    return sum(int((rs.get("status") or {}).get(name, 0)) for rs in sets)


def is_complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    """Return whether all pods are new and available, and there are no others."""
    wanted = replicas_of(deployment)
    numbers = {status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")}
    seen = int(status.get("observedGeneration", 0)) >= int(deployment["metadata"].get("generation", 0))
    return numbers == {wanted} and seen


def _is_progressing(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    def olds(status: Mapping[str, Any]) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return olds(after) < olds(before) or any(after.get(name, 0) > before.get(name, 0) for name in grown)


def rolled(deployment: Object, new: Object | None, old: Sequence[Object], now: float) -> dict[str, Any]:
    """Return the status during a roll-out: with its progress, and what keeps ReplicaSets from making pods."""
    status = counts(deployment, new, old, now)
    conditions: list[Condition] = list(status["conditions"])
    if deadline_s(deployment) is None:
        conditions = without(conditions, PROGRESSING)
    else:
        conditions = _with_progress(deployment, new, status, now)
    failure = _failure([*([new] if new is not None else []), *old])
    conditions = without(conditions, FAILURE) if failure is None else put(conditions, failure)
    return {**status, "conditions": conditions}


def _with_progress(deployment: Object, new: Object | None, status: Mapping[str, Any], now: float) -> list[Condition]:
    before, conditions = deployment.get("status") or {}, list(status["conditions"])
    current = find(before.get("conditions") or (), PROGRESSING)
    same = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if same and current is not None and current.get("reason") == FINISHED:
        return conditions
    who = f'Deployment "{name_of(deployment)}"' if new is None else f'ReplicaSet "{name_of(new)}"'
    if is_complete(deployment, status):
        text = f"{who} has successfully progressed."
        return put(conditions, condition(PROGRESSING, "True", FINISHED, text, now=now))
    if _is_progressing(before, status):
        made = dict(condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{who} is progressing.", now=now))
        if current is not None and current["status"] == "True":
            made["lastTransitionTime"] = current["lastTransitionTime"]
        return [*without(conditions, PROGRESSING), made]
    known = find(conditions, PROGRESSING)
    if known is not None and _is_late(deployment, known, now):
        text = f"{who} has timed out progressing."
        return put(conditions, condition(PROGRESSING, "False", TIMED_OUT, text, now=now))
    return conditions


def _is_late(deployment: Object, progressing: Condition, now: float) -> bool:
    reason = progressing.get("reason")
    if reason in (FINISHED, TIMED_OUT):
        return bool(reason == TIMED_OUT)
    return deadline_left_s(deployment, progressing, now) < 0


def _failure(sets: Sequence[Object]) -> Condition | None:
    for replica_set in sets:
        found = find((replica_set.get("status") or {}).get("conditions") or (), FAILURE)
        if found is not None:
            return {**found, "lastUpdateTime": found.get("lastTransitionTime")}
    return None


def paused(deployment: Object, now: float) -> list[Condition] | None:
    """Return the conditions that tell of a pause or its end; None when they do already."""
    known = (deployment.get("status") or {}).get("conditions") or []
    current = find(known, PROGRESSING)
    reason = None if current is None else current.get("reason")
    is_paused = bool(deployment["spec"].get("paused"))
    if deadline_s(deployment) is None or reason == TIMED_OUT or is_paused == (reason == PAUSED):
        return None
    reported = (PAUSED, "Deployment is paused") if is_paused else ("DeploymentResumed", "Deployment is resumed")
    return put(known, condition(PROGRESSING, "Unknown", *reported, now=now))


def recheck_s(deployment: Object, status: Mapping[str, Any], now: float) -> float | None:
    """Return seconds until a roll-out without progress must be looked at again; None when there is nothing to look
    for."""
    progressing = find((deployment.get("status") or {}).get("conditions") or (), PROGRESSING)
    if deadline_s(deployment) is None or progressing is None:
        return None
    if is_complete(deployment, status) or progressing.get("reason") == TIMED_OUT:
        return None
    left_s = deadline_left_s(deployment, progressing, now)
    return 0.1 if left_s < 1 else left_s + 1

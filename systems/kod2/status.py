"""The status of a TFJob: conditions and replica statuses as Kubeflow writes them, and the elastic scheduler's own part.

Pure: each function takes a status and returns the changed copy. What the operator must not forget is all in here, so a
restarted one rebuilds its queues from the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, clone, is_deleting, micro_timestamp, phase_of, seconds, timestamp
from mews.systems.kod2.model import State
from mews.systems.kod2.podspec import task_of, worker_selector
from mews.systems.kod2.tfjob import TFJob

Status = dict[str, Any]

CREATED, RUNNING, RESTARTING = "Created", "Running", "Restarting"
SUSPENDED, SUCCEEDED, FAILED = "Suspended", "Succeeded", "Failed"
STALLED = "Stalled"
"""It cannot go on: its pods are not let in, or the operator fails over it. Ours: Kubeflow has none for that."""
_ENDED = (SUCCEEDED, FAILED)
_TASK = re.compile(r"[a-z]+-\d{1,9}")
_LONGEST_MESSAGE = 32_768
"""As the API's own conditions have it: a message may quote what somebody wrote, and the status must be written."""


def status_of(obj: Object) -> Status:
    """Return a copy of the object's status."""
    copied: Status = clone(obj.get("status") or {})
    return copied


def holds(status: Mapping[str, Any], kind: str) -> bool:
    """Return whether a condition is there and true."""
    return any(c["type"] == kind and c["status"] == "True" for c in status.get("conditions") or ())


def is_finished(status: Mapping[str, Any]) -> bool:
    """Return whether the job has succeeded or failed."""
    return any(holds(status, kind) for kind in _ENDED)


def with_condition(
    status: Status, kind: str, reason: str, message: str, *, now_s: float, value: str = "True"
) -> Status:
    """Return the condition set and moved to the end; others that it excludes made false or dropped, as Kubeflow's
    operator does: Running and Restarting exclude each other, the end makes Running false. One that is there with that
    value and reason stays as it is, message included."""
    stamp, message = timestamp(now_s), message[:_LONGEST_MESSAGE]
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    known = next((c for c in conditions if c["type"] == kind), None)
    stays = known is not None and (known["status"], known.get("reason")) == (value, reason)
    if known is not None and stays and (kind != STALLED or known.get("message") == message):
        return status
    since = known["lastTransitionTime"] if known is not None and known["status"] == value else stamp
    new = {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message,
        "lastUpdateTime": stamp,
        "lastTransitionTime": since,
    }
    left = []
    for condition in conditions:
        if condition["type"] == kind or {condition["type"], kind} == {RUNNING, RESTARTING}:
            continue
        if condition["type"] == STALLED and kind in (*_ENDED, SUSPENDED):
            continue
        if condition["type"] == RUNNING and kind in _ENDED and condition["status"] == "True":
            condition = {**condition, "status": "False", "lastUpdateTime": stamp, "lastTransitionTime": stamp}
        left.append(condition)
    return {**status, "conditions": [*left, new]}


def suspended(status: Status, job: TFJob, *, now_s: float) -> Status:
    """Out of the queues: nothing of it runs, and it starts anew when it is resumed."""
    status = {key: value for key, value in status.items() if key != "startTime"}
    if not any(c["type"] == CREATED for c in status.get("conditions") or ()):
        status = with_condition(status, CREATED, "TFJobCreated", f"TFJob {job.name} is created.", now_s=now_s)
    message = f"TFJob {job.name} is suspended."
    if holds(status, RUNNING):
        status = with_condition(status, RUNNING, "TFJobSuspended", message, now_s=now_s, value="False")
    status = with_condition(status, SUSPENDED, "TFJobSuspended", message, now_s=now_s)
    restarts = (status.get("elastic") or {}).get("restarts")
    replicas = {
        role: {column: count for column, count in counts.items() if column != "active"}
        for role, counts in (status.get("replicaStatuses") or {}).items()
    }
    return {**status, "replicaStatuses": replicas, "elastic": {"restarts": restarts} if restarts else {}}


def resumed(status: Status, job: TFJob, *, now_s: float) -> Status:
    """Return the status of a job that is no longer suspended."""
    message = f"TFJob {job.name} is resumed."
    return with_condition(status, SUSPENDED, "TFJobResumed", message, now_s=now_s, value="False")


def finished(status: Status, kind: str, reason: str, message: str, *, now_s: float) -> Status:
    """Into the finished queue."""
    done = with_condition(status, kind, reason, message, now_s=now_s)
    done["completionTime"] = timestamp(now_s)
    if kind == SUCCEEDED:
        done["replicaStatuses"] = {role: _all_done(counts) for role, counts in _replica_statuses(done).items()}
    gone = ("placement", "reason", "stalled")
    elastic = {k: v for k, v in (done.get("elastic") or {}).items() if k not in gone}
    done["elastic"] = {**elastic, "state": State.COMPLETED.value, "workers": 0, "finishedAt": micro_timestamp(now_s)}
    return done


def _replica_statuses(status: Status) -> dict[str, dict[str, int]]:
    return status.get("replicaStatuses") or {}


def _all_done(counts: Mapping[str, int]) -> dict[str, int]:
    """Tasks that still ran when their job succeeded count as succeeded."""
    succeeded = counts.get("succeeded", 0) + counts.get("active", 0)
    rest = {column: count for column, count in counts.items() if column not in ("active", "succeeded")}
    return {**rest, "succeeded": succeeded} if succeeded else rest


def entered(status: Status, job: TFJob, *, weight: float | None, now_s: float) -> Status:
    """Into the waiting queue, for the first time or after a suspension."""
    elastic = {k: v for k, v in (status.get("elastic") or {}).items() if k in ("restarts",)}
    elastic |= {"state": State.WAITING.value, "workers": 0, "min": job.minimum, "max": job.maximum}
    elastic |= {"waitingSince": micro_timestamp(now_s), "selector": worker_selector(job)}
    if weight is not None:
        elastic["weight"] = round(weight, 6)
    return {**status, "elastic": elastic}


def with_elastic(status: Status, **fields: Any) -> Status:
    """Fields of the elastic part set; None removes one."""
    elastic = {**(status.get("elastic") or {}), **fields}
    return {**status, "elastic": {key: value for key, value in elastic.items() if value is not None}}


LAST_DELAY_S = 60.0


def delay_s(times: int, *, first_s: float = 1.0) -> float:
    """Return how long something that was refused so many times before is left alone: doubled with each further time."""
    return min(first_s * 2.0 ** min(times, 20), LAST_DELAY_S)


class Stall(Struct, frozen=True):
    """What a job is held back by: how often it was in a row, until when (unix s), and for which generation of it."""

    times: int
    until_s: float
    generation: int


def stall_of(tfjob: Object) -> Stall | None:
    """Return what holds a TFJob back; None where nothing does, or its spec has changed since."""
    found = ((tfjob.get("status") or {}).get("elastic") or {}).get("stalled")
    if not found or int(found["generation"]) != generation_of(tfjob):
        return None
    return Stall(int(found["times"]), seconds(found["until"]), int(found["generation"]))


def stalled(status: Status, tfjob: Object, reason: str, message: str, *, now_s: float) -> Status:
    """Held back once more, with the condition that says so."""
    known = stall_of(tfjob)
    times = 1 if known is None else known.times + 1
    until_s = now_s + delay_s(times - 1)
    until = {"times": times, "until": micro_timestamp(until_s), "generation": generation_of(tfjob)}
    return with_condition(with_elastic(status, stalled=until), STALLED, reason, message, now_s=now_s)


def is_stalled(tfjob: Object) -> bool:
    """Return whether its status says that it is held back, or was by what has changed since."""
    status = tfjob.get("status") or {}
    return holds(status, STALLED) or "stalled" in (status.get("elastic") or {})


def freed(status: Status) -> Status:
    """Held back no more."""
    conditions = [condition for condition in status.get("conditions") or () if condition["type"] != STALLED]
    return with_elastic({**status, "conditions": conditions}, stalled=None)


def sent_back(status: Status, reason: str, *, now_s: float) -> Status:
    """Back to the waiting queue, with nothing that it held; since when it waits stays."""
    stamp = timestamp(now_s)
    status = {key: value for key, value in status.items() if key != "startTime"}
    status["conditions"] = [
        {**c, "status": "False", "lastUpdateTime": stamp, "lastTransitionTime": stamp}
        if c["type"] == RUNNING and c["status"] == "True"
        else c
        for c in status.get("conditions") or ()
    ]
    return with_elastic(
        status, state=State.WAITING.value, workers=0, placement=None, scaledAt=None, reason=reason[:_LONGEST_MESSAGE]
    )


def generation_of(tfjob: Object) -> int:
    """``metadata.generation``: it counts changes of the spec."""
    return int(tfjob["metadata"].get("generation") or 0)


def placement_of(status: Mapping[str, Any]) -> dict[str, str]:
    """Task -> node; what somebody wrote there that names no task is passed over."""
    placement: Mapping[str, str] = (status.get("elastic") or {}).get("placement") or {}
    return {task: node for task, node in placement.items() if _TASK.fullmatch(task)}


def state_of(status: Mapping[str, Any]) -> str:
    """Return the elastic state; "" before the operator has seen the job."""
    return str((status.get("elastic") or {}).get("state") or "")


def waiting_since_s(status: Mapping[str, Any]) -> float | None:
    """Entry to the waiting queue, unix s."""
    stamp = (status.get("elastic") or {}).get("waitingSince")
    return None if stamp is None else seconds(stamp)


def scaled_s(status: Mapping[str, Any]) -> float | None:
    """Return the last scale-in or scale-out, unix s."""
    stamp = (status.get("elastic") or {}).get("scaledAt")
    return None if stamp is None else seconds(stamp)


def replicas_seen(status: Mapping[str, Any]) -> int | None:
    """``Worker.replicas`` as it was when the job was placed, or last acted on."""
    seen = (status.get("elastic") or {}).get("replicas")
    return None if seen is None else int(seen)


def with_replicas(status: Status, job: TFJob, pods: Mapping[str, Object], *, baseline: bool = False) -> Status:
    """replicaStatuses, counted anew over the pods that there are: task -> pod. ``baseline``: as Kubeflow's operator
    does, to which a running pod that somebody deletes is one that failed."""
    counted: dict[str, dict[str, int]] = {role.value: {} for role in job.roles}
    names = {role.task: role.value for role in job.roles}
    for pod in pods.values():
        role = names.get(task_of(pod["metadata"].get("labels") or {}).rpartition("-")[0])
        column = {"Running": "active", "Succeeded": "succeeded", "Failed": "failed"}.get(phase_of(pod))
        if baseline and column == "active" and is_deleting(pod):
            column = "failed"
        if role is not None and column is not None:
            counted[role][column] = counted[role].get(column, 0) + 1
    return {**status, "replicaStatuses": counted}

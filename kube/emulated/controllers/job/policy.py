"""What a Job's controller decides (k8s.io/kubernetes pkg/controller/job)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, clone, phase_of, seconds, timestamp
from mews.kube.emulated.controllers.conditions import Condition, find
from mews.kube.emulated.controllers.job.failures import forbidden_failure
from mews.kube.emulated.controllers.job.indexes import JobIndexes, met_rule
from mews.kube.emulated.controllers.job.reading import INDEX, TRACKING, completions_of, is_indexed, is_suspended

MOST_PER_SYNC = 500
MOST_UNCOUNTED = 500
"""Pods that ended are counted so many at a time, for the status has a bound."""
BATCH_S = 1.0
"""Changes of pods are waited for, so that one look at the Job sees many."""


def condition(kind: str, reason: str, message: str, *, now: float, status: str = "True") -> Condition:
    """Return a condition as of now."""
    stamp = timestamp(now)
    made = {"type": kind, "status": status, "lastProbeTime": stamp, "lastTransitionTime": stamp}
    return {**made, "reason": reason, "message": message}


def ensured(conditions: Sequence[Condition], wanted: Condition) -> list[Condition] | None:
    """Return the conditions with that status of a type; None when they say so already. One that was never true is not
    made false."""
    current = find(conditions, wanted["type"])
    if current is None:
        return None if wanted["status"] == "False" else [*conditions, wanted]
    if all(current.get(name) == wanted.get(name) for name in ("status", "reason", "message")):
        return None
    return [wanted if c["type"] == wanted["type"] else c for c in conditions]


def verdict(job: Object, pods: Sequence[Object], *, failed: int, indexes: JobIndexes, now: float) -> Condition | None:
    """Return why the Job is to end now: by its status, by what went wrong, by its success policy. None: it goes on."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    met = find(conditions, "SuccessCriteriaMet")
    if met is not None and met["status"] == "True":
        return met
    target = find(conditions, "FailureTarget")
    if target is not None and target["status"] == "True":
        return condition("Failed", target.get("reason", ""), target.get("message", ""), now=now)
    failure = _failure(job, pods, failed=failed, indexes=indexes, now=now)
    if failure is not None:
        return condition("FailureTarget", *failure, now=now)
    rule = met_rule(job, indexes.succeeded)
    if rule is not None:
        return condition("SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {rule}", now=now)
    return None


def _failure(
    job: Object, pods: Sequence[Object], *, failed: int, indexes: JobIndexes, now: float
) -> tuple[str, str] | None:
    """(reason, message) of what went wrong."""
    text = forbidden_failure(job, pods)
    if text is not None:
        return "PodFailurePolicy", text
    limit = int(job["spec"].get("backoffLimit", 6))
    if failed > limit or _restarted_too_often(job, pods, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left_s = deadline_left_s(job, now)
    if left_s is not None and left_s <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _failed_indexes(job, indexes)


def _failed_indexes(job: Object, indexes: JobIndexes) -> tuple[str, str] | None:
    most, count = job["spec"].get("maxFailedIndexes"), len(indexes.failed or ())
    if most is not None and count > int(most):
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if count > 0 and count + len(indexes.succeeded) >= (completions_of(job) or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def success(now: float) -> Condition:
    """Return the condition that enough of the job's pods have succeeded."""
    return condition("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now=now)


def deadline_left_s(job: Object, now: float) -> float | None:
    """Return seconds until its deadline; None where it has none or does not run."""
    span_s, start = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
    if span_s is None or start is None or is_suspended(job):
        return None
    return float(seconds(start) + span_s - now)


def _restarted_too_often(job: Object, pods: Sequence[Object], limit: int) -> bool:
    if (job["spec"]["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    count = 0
    for pod in pods:
        if phase_of(pod) in ("Running", "Pending"):
            status = pod.get("status") or {}
            known = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
            count += sum(int(entry.get("restartCount", 0)) for entry in known)
    return count > 0 if limit == 0 else count >= limit


# How many


def wanted_active(job: Object, *, active: int, succeeded: int) -> int:
    """Return how many pods ought to run now."""
    parallelism, completions = int(job["spec"].get("parallelism", 1)), completions_of(job)
    if completions is None:
        return active if succeeded > 0 else parallelism
    return max(min(completions - succeeded, parallelism), 0)


def tracked_template(job: Object) -> dict[str, Any]:
    """Return the Job's pod template with what counting needs."""
    template: dict[str, Any] = clone(job["spec"]["template"])
    metadata = template.setdefault("metadata", {})
    finalizers = metadata.get("finalizers") or []
    metadata["finalizers"] = finalizers if TRACKING in finalizers else [*finalizers, TRACKING]
    if is_indexed(job):
        source = {"valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
        spec = template.get("spec") or {}
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            env = container.get("env") or []
            if all(entry["name"] != "JOB_COMPLETION_INDEX" for entry in env):
                container["env"] = [*env, {"name": "JOB_COMPLETION_INDEX", **source}]
    return template


# What is stored of pods that are not counted yet


def settled(status: Mapping[str, Any], tracked: Sequence[str]) -> dict[str, Any]:
    """Return the status after those of the uncounted pods were counted that are tracked no more."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    left: dict[str, list[str]] = {}
    made = dict(status)
    for name in ("succeeded", "failed"):
        uids = uncounted.get(name) or []
        kept = [uid for uid in uids if uid in tracked]
        made[name] = int(status.get(name, 0)) + len(uids) - len(kept)
        if kept:
            left[name] = kept
    made["uncountedTerminatedPods"] = left
    return made


def is_count_settled(status: Mapping[str, Any]) -> bool:
    """Return whether every pod was counted."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    return not uncounted.get("succeeded") and not uncounted.get("failed")

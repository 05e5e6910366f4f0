"""What a Job's controller decides (k8s.io/kubernetes pkg/controller/job)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mews.kube.api.objects import Object, annotations_of, clone, is_deleting, name_of, phase_of, seconds, timestamp
from mews.kube.emulated.controllers.conditions import Condition, find
from mews.kube.emulated.controllers.pods import is_active

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
MOST_PER_SYNC = 500
FIRST_BACKOFF_S, LAST_BACKOFF_S = 10.0, 600.0
"""How long a failed pod is not replaced; it doubles with each failure in a row."""
BATCH_S = 1.0
"""Changes of pods are waited for, so that one look at the Job sees many."""
_LONGEST_PREFIX = 58


def is_finished(job: Object) -> bool:
    """Whether the job has the condition Complete or Failed."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)


def is_suspended(job: Object) -> bool:
    """Whether ``spec.suspend`` is set."""
    return bool(job["spec"].get("suspend"))


def is_indexed(job: Object) -> bool:
    """Whether ``spec.completionMode`` is Indexed."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def completions_of(job: Object) -> int | None:
    """``spec.completions``; None: any success ends it."""
    value = job["spec"].get("completions")
    return None if value is None else int(value)


def only_failed_are_replaced(job: Object) -> bool:
    """Whether pods are replaced only once they have ended (``spec.podReplacementPolicy``)."""
    return job["spec"].get("podReplacementPolicy") == "Failed" or job["spec"].get("podFailurePolicy") is not None


def is_tracked(pod: Object) -> bool:
    """Whether the pod has not been counted yet."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def has_failed(pod: Object, job: Object) -> bool:
    """Whether a pod counts as failed: also one that is being deleted, for it may never say so."""
    if phase_of(pod) == "Failed":
        return True
    return not only_failed_are_replaced(job) and is_deleting(pod) and phase_of(pod) != "Succeeded"


def index_of(pod: Object) -> int | None:
    """The completion index of a pod of an indexed Job."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def counts(pod: Object, job: Object) -> bool:
    """Whether the pod is one that can count: its index is one of the Job's."""
    index = index_of(pod)
    return not is_indexed(job) or (index is not None and index < (completions_of(job) or 0))


def finished_at(pod: Object) -> float:
    """Unix seconds at which the pod ended, as far as it says."""
    ends: list[float] = []
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        stamp = ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if stamp is None:
            ends = []
            break
        ends.append(seconds(stamp))
    if ends:
        return max(ends)
    ready = find((pod.get("status") or {}).get("conditions") or (), "Ready") or {}
    if ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return seconds(ready["lastTransitionTime"])
    metadata = pod["metadata"]
    if metadata.get("deletionTimestamp"):
        return seconds(metadata["deletionTimestamp"]) - float(metadata.get("deletionGracePeriodSeconds") or 0)
    return seconds(metadata["creationTimestamp"])


@dataclass(frozen=True, slots=True)
class Backoff:
    """Failures since the last success, and the time of the last one in unix seconds."""

    failures: int = 0
    last: float = 0.0

    def after(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> Backoff:
        """With pods that ended since."""
        ends = sorted(finished_at(pod) for pod in failed)
        if not succeeded:
            return self if not ends else replace(self, failures=self.failures + len(ends), last=ends[-1])
        success = max(finished_at(pod) for pod in succeeded)
        later = [end for end in ends if end > success]
        return Backoff(len(later), later[-1] if later else 0.0)

    def left_s(self, now: float) -> float:
        """Seconds for which no pod is made yet."""
        if self.failures == 0:
            return 0.0
        span_s = min(FIRST_BACKOFF_S * 2.0 ** min(self.failures - 1, 30), LAST_BACKOFF_S)
        return max(span_s - (now - self.last), 0.0)


def condition(kind: str, reason: str, message: str, *, now: float, status: str = "True") -> Condition:
    """A condition as of now."""
    stamp = timestamp(now)
    made = {"type": kind, "status": status, "lastProbeTime": stamp, "lastTransitionTime": stamp}
    return {**made, "reason": reason, "message": message}


def ensured(conditions: Sequence[Condition], wanted: Condition) -> list[Condition] | None:
    """The conditions with that status of a type; None when they say so already. One that was never true is not made
    false."""
    current = find(conditions, wanted["type"])
    if current is None:
        return None if wanted["status"] == "False" else [*conditions, wanted]
    if all(current.get(name) == wanted.get(name) for name in ("status", "reason", "message")):
        return None
    return [wanted if c["type"] == wanted["type"] else c for c in conditions]


def verdict(job: Object, pods: Sequence[Object], *, failed: int, now: float) -> Condition | None:
    """Why the Job is to end now, by what was said before and by what went wrong; None when it goes on."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    met = find(conditions, "SuccessCriteriaMet")
    if met is not None and met["status"] == "True":
        return met
    target = find(conditions, "FailureTarget")
    if target is not None and target["status"] == "True":
        return condition("Failed", target.get("reason", ""), target.get("message", ""), now=now)
    text = _forbidden_failure(job, pods)
    if text is not None:
        return condition("FailureTarget", "PodFailurePolicy", text, now=now)
    limit = int(job["spec"].get("backoffLimit", 6))
    if failed > limit or _restarted_too_often(job, pods, limit):
        text = "Job has reached the specified backoff limit"
        return condition("FailureTarget", "BackoffLimitExceeded", text, now=now)
    left_s = deadline_left_s(job, now)
    if left_s is not None and left_s <= 0:
        text = "Job was active longer than specified deadline"
        return condition("FailureTarget", "DeadlineExceeded", text, now=now)
    return None


def success(now: float) -> Condition:
    """Return the condition that enough of the job's pods have succeeded."""
    return condition("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now=now)


def deadline_left_s(job: Object, now: float) -> float | None:
    """Seconds until its deadline; None where it has none or does not run."""
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


# spec.podFailurePolicy


def _forbidden_failure(job: Object, pods: Sequence[Object]) -> str | None:
    for pod in pods:
        if has_failed(pod, job):
            action, text = failure_rule(job, pod)
            if action == "FailJob":
                return text
    return None


def failure_rule(job: Object, pod: Object) -> tuple[str, str]:
    """(action, message) of the first rule of the failure policy that fits a failed pod: FailJob, Ignore or Count."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        text = _by_exit_code(rule, pod, index) if rule.get("onExitCodes") else _by_condition(rule, pod, index)
        if text is not None:
            return str(rule["action"]), text
    return "Count", ""


def _by_exit_code(rule: Mapping[str, Any], pod: Object, index: int) -> str | None:
    wanted, status = rule["onExitCodes"], pod.get("status") or {}
    if phase_of(pod) != "Failed":
        return None
    for entry in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        ended = (entry.get("state") or {}).get("terminated")
        code = int((ended or {}).get("exitCode", 0))
        if code == 0 or wanted.get("containerName") not in (None, entry["name"]):
            continue
        if (code in wanted["values"]) == (wanted["operator"] == "In"):
            where = f"{pod['metadata']['namespace']}/{name_of(pod)}"
            return (
                f"Container {entry['name']} for pod {where} failed with exit code {code} "
                f"matching {rule['action']} rule at index {index}"
            )
    return None


def _by_condition(rule: Mapping[str, Any], pod: Object, index: int) -> str | None:
    for pattern in rule.get("onPodConditions") or ():
        known = find((pod.get("status") or {}).get("conditions") or (), pattern["type"])
        if known is not None and known["status"] == pattern.get("status", "True"):
            where = f"{pod['metadata']['namespace']}/{name_of(pod)}"
            return f"Pod {where} has condition {pattern['type']} matching {rule['action']} rule at index {index}"
    return None


# How many, and which indexes


def wanted_active(job: Object, *, active: int, succeeded: int) -> int:
    """How many pods ought to run now."""
    parallelism, completions = int(job["spec"].get("parallelism", 1)), completions_of(job)
    if completions is None:
        return active if succeeded > 0 else parallelism
    return max(min(completions - succeeded, parallelism), 0)


def parse_indexes(text: str) -> list[int]:
    """Read ``0,2-4`` as numbers."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def write_indexes(indexes: Sequence[int]) -> str:
    """Numbers as ``0,2-4``: two in a row are ``0,1``, three are a range."""
    parts: list[str] = []
    ordered, start = sorted(indexes), 0
    for position, value in enumerate(ordered):
        last = position + 1 == len(ordered) or ordered[position + 1] != value + 1
        if last:
            run = ordered[start : position + 1]
            parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(index) for index in run]
            start = position + 1
    return ",".join(parts)


def pending_indexes(job: Object, pods: Sequence[Object], succeeded: Sequence[int], count: int) -> list[int]:
    """The first indexes that neither succeeded nor have a pod."""
    busy = {index_of(pod) for pod in pods if is_active(pod)} | set(succeeded)
    if only_failed_are_replaced(job):
        busy |= {index_of(pod) for pod in pods if is_deleting(pod) and phase_of(pod) not in ("Succeeded", "Failed")}
    free = (index for index in range(completions_of(job) or 0) if index not in busy)
    return [index for index, _ in zip(free, range(count), strict=False)]


def superfluous(job: Object, active: Sequence[Object]) -> list[Object]:
    """Active pods of an indexed Job whose index is another's too, or none of its own."""
    seen: set[int] = set()
    doomed: list[Object] = []
    for pod in active if is_indexed(job) else ():
        index = index_of(pod)
        if index is None or index >= (completions_of(job) or 0) or index in seen:
            doomed.append(pod)
        else:
            seen.add(index)
    return doomed


def tracked_template(job: Object) -> dict[str, Any]:
    """The Job's pod template with what counting needs."""
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


def indexed(template: Mapping[str, Any], job: Object, index: int) -> tuple[dict[str, Any], str]:
    """The template of one index, and the prefix of its pods' names."""
    made: dict[str, Any] = clone(template)
    for name in ("annotations", "labels"):
        made["metadata"][name] = {**(made["metadata"].get(name) or {}), INDEX: str(index)}
    made["spec"]["hostname"] = f"{name_of(job)}-{index}"
    tail = f"-{index}-"
    return made, name_of(job)[: _LONGEST_PREFIX - len(tail)] + tail


# What is stored of pods that are not counted yet


def settled(status: Mapping[str, Any], tracked: Sequence[str]) -> dict[str, Any]:
    """The status after those of the uncounted pods were counted that are tracked no more."""
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
    """Whether every pod was counted."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    return not uncounted.get("succeeded") and not uncounted.get("failed")

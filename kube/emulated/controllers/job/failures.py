"""Pods of Jobs that failed: when they are replaced, and what the Job's failure policy makes of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import Object, name_of
from mews.kube.emulated.controllers.job.reading import finished_at, has_failed

FIRST_BACKOFF_S, LAST_BACKOFF_S = 10.0, 600.0
"""How long a failed pod is not replaced; it doubles with each failure in a row."""


def backoff_left_s(failures: int, last: float, now: float) -> float:
    """Return seconds for which no pod is made yet, after so many failures in a row, the last one at that time."""
    if failures == 0:
        return 0.0
    span_s = min(FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 30), LAST_BACKOFF_S)
    return max(span_s - (now - last), 0.0)


class Backoff(Struct, frozen=True):
    """Failures since the last success, and the time of the last one in unix seconds."""

    failures: int = 0
    last: float = 0.0

    def after(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> Backoff:
        """Return it with pods that ended since."""
        ends = sorted(finished_at(pod) for pod in failed)
        if not succeeded:
            return self if not ends else replace(self, failures=self.failures + len(ends), last=ends[-1])
        success = max(finished_at(pod) for pod in succeeded)
        later = [end for end in ends if end > success]
        return Backoff(len(later), later[-1] if later else 0.0)

    def left_s(self, now: float) -> float:
        """Return seconds for which no pod is made yet."""
        return backoff_left_s(self.failures, self.last, now)


# spec.podFailurePolicy


def forbidden_failure(job: Object, pods: Sequence[Object]) -> str | None:
    """Return why the Job is to fail at once by its failure policy; None: it is not."""
    for pod in pods:
        if has_failed(pod, job):
            action, text = failure_rule(job, pod)
            if action == "FailJob":
                return text
    return None


def failure_rule(job: Object, pod: Object) -> tuple[str, str]:
    """(action, message) of the first rule of the failure policy that fits a failed pod: FailJob, FailIndex, Ignore or
    Count, which is what is done where none fits."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        text = _by_exit_code(rule, pod, index) if rule.get("onExitCodes") else _by_condition(rule, pod, index)
        if text is not None:
            return str(rule["action"]), text
    return "Count", ""


def _by_exit_code(rule: Mapping[str, Any], pod: Object, index: int) -> str | None:
    wanted, status = rule["onExitCodes"], pod.get("status") or {}
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
    patterns = [(pattern["type"], pattern.get("status", "True")) for pattern in rule.get("onPodConditions") or ()]
    for known in (pod.get("status") or {}).get("conditions") or ():
        if (known["type"], known["status"]) in patterns:
            where = f"{pod['metadata']['namespace']}/{name_of(pod)}"
            return f"Pod {where} has condition {known['type']} matching {rule['action']} rule at index {index}"
    return None

"""The indexes of an indexed Job: which have succeeded, which have failed for good, and which need a pod. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object, annotations_of, clone, is_deleting, is_terminal, name_of, phase_of
from mews.kube.emulated.controllers.job.failures import backoff_left_s, failure_rule
from mews.kube.emulated.controllers.job.reading import (
    INDEX,
    completions_of,
    counts,
    finished_at,
    has_failed,
    index_of,
    is_indexed,
    is_tracked,
    limit_per_index,
    only_failed_are_replaced,
)
from mews.kube.emulated.controllers.pods import first_to_go, is_active

FAILURES, IGNORED_FAILURES = (
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
)
_LONGEST_PREFIX = 58
_LARGEST_COUNT = 2**31 - 1


def parse_indexes(text: str, *, below: int | None = None) -> list[int]:
    """Read ``0,2-4`` as numbers; those that are not below a bound are left out."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        end = int(last or first) + 1
        found += range(int(first), end if below is None else min(end, below))
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


class JobIndexes(Struct, frozen=True):
    """Those that succeeded, before by the status and with the pods that ended since; those that failed, None where
    failures are counted for the Job as a whole; and by index the failed pod that keeps its finalizer until another has
    taken over its count of failures."""

    before: frozenset[int] = frozenset()
    succeeded: frozenset[int] = frozenset()
    failed: frozenset[int] | None = None
    awaiting: Mapping[int, Object] = field(default_factory=dict)

    @property
    def over(self) -> frozenset[int]:
        """The indexes that need no pod any more."""
        return self.succeeded | (self.failed or frozenset())


def indexes_of(job: Object, pods: Sequence[Object]) -> JobIndexes:
    """Read the indexes of a Job; one that is not indexed has none."""
    if not is_indexed(job):
        return JobIndexes()
    status, completions = job.get("status") or {}, completions_of(job) or 0
    fresh = [
        (pod, index) for pod in pods if is_tracked(pod) and counts(pod, job) and (index := index_of(pod)) is not None
    ]
    before = frozenset(parse_indexes(status.get("completedIndexes", ""), below=completions))
    succeeded = before | {index for pod, index in fresh if phase_of(pod) == "Succeeded"}
    if limit_per_index(job) is None:
        return JobIndexes(before, succeeded)
    known = parse_indexes(status.get("failedIndexes") or "", below=completions)
    failed = frozenset(known) | {index for pod, index in fresh if _is_last_failure(job, pod)}
    settled = succeeded | failed | _taken(pod for pod in pods if is_active(pod))
    awaiting: dict[int, Object] = {}
    for pod, index in fresh:
        if has_failed(pod, job) and index not in settled and _is_later(pod, awaiting.get(index)):
            awaiting[index] = pod
    return JobIndexes(before, succeeded, failed, awaiting)


def _taken(pods: Iterable[Object]) -> frozenset[int]:
    return frozenset(index for pod in pods if (index := index_of(pod)) is not None)


def _is_last_failure(job: Object, pod: Object) -> bool:
    """Return whether a pod's failure is one too many for its index."""
    if not has_failed(pod, job):
        return False
    action = failure_rule(job, pod)[0]
    if action == "FailIndex":
        return True
    return action != "Ignore" and _count(pod, FAILURES) >= (limit_per_index(job) or 0)


def _is_later(pod: Object, known: Object | None) -> bool:
    if known is None:
        return True
    return _all_failures(known) <= _all_failures(pod) and finished_at(known) <= finished_at(pod)


def _count(pod: Object, annotation: str) -> int:
    text = annotations_of(pod).get(annotation, "")
    number = int(text) if text.isdecimal() else 0
    return number if number <= _LARGEST_COUNT else 0


def _all_failures(pod: Object) -> int:
    return _count(pod, FAILURES) + _count(pod, IGNORED_FAILURES)


# Pods to make and to delete


def pending_indexes(job: Object, pods: Sequence[Object], over: frozenset[int], count: int) -> list[int]:
    """Return the first indexes that are not over and have no pod."""
    busy = over | _taken(pod for pod in pods if is_active(pod))
    if only_failed_are_replaced(job):
        busy |= _taken(pod for pod in pods if is_deleting(pod) and not is_terminal(pod))
    free = (index for index in range(completions_of(job) or 0) if index not in busy)
    return [index for index, _ in zip(free, range(count), strict=False)]


def creatable(pending: Sequence[int], awaiting: Mapping[int, Object], now: float) -> tuple[list[int], float]:
    """Return the indexes that may have a pod now, by the last failure of each; else the seconds until the first may."""
    waits = {index: _wait_s(awaiting.get(index), now) for index in pending}
    ready = [index for index in pending if waits[index] == 0]
    return ready, 0.0 if ready else min(waits.values(), default=0.0)


def _wait_s(failed: Object | None, now: float) -> float:
    return 0.0 if failed is None else backoff_left_s(_all_failures(failed) + 1, finished_at(failed), now)


def superfluous(job: Object, active: Sequence[Object], now: float) -> list[Object]:
    """Active pods of an indexed Job whose index is another's too, or none of its own: of those that share an index the
    one that has got furthest stays."""
    if not is_indexed(job):
        return []
    sharing: dict[int, list[Object]] = {}
    doomed: list[Object] = []
    for pod in active:
        index = index_of(pod)
        if index is None or not counts(pod, job):
            doomed.append(pod)
        else:
            sharing.setdefault(index, []).append(pod)
    for pods in sharing.values():
        doomed += first_to_go(pods, [0] * len(pods), now)[:-1]
    return doomed


def indexed(template: Mapping[str, Any], job: Object, index: int, failed: Object | None) -> tuple[dict[str, Any], str]:
    """Return the template of one index, and the prefix of its pods' names; ``failed``: the pod that it replaces."""
    made: dict[str, Any] = clone(template)
    for name in ("annotations", "labels"):
        made["metadata"][name] = {**(made["metadata"].get(name) or {}), INDEX: str(index)}
    if limit_per_index(job) is not None:
        made["metadata"]["annotations"] |= _failures_after(job, failed)
    made["spec"]["hostname"] = f"{name_of(job)}-{index}"
    tail = f"-{index}-"
    return made, name_of(job)[: _LONGEST_PREFIX - len(tail)] + tail


def _failures_after(job: Object, failed: Object | None) -> dict[str, str]:
    """Return what a pod says of the failures of its index before it."""
    if failed is None:
        return {FAILURES: "0"}
    ignored = failure_rule(job, failed)[0] == "Ignore"
    made = {FAILURES: str(_count(failed, FAILURES) + (not ignored))}
    passed_over = _count(failed, IGNORED_FAILURES) + ignored
    return made | ({IGNORED_FAILURES: str(passed_over)} if passed_over else {})


# spec.successPolicy


def met_rule(job: Object, succeeded: frozenset[int]) -> int | None:
    """Return the first rule of the success policy that the indexes that succeeded fulfil."""
    rules = (job["spec"].get("successPolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules if succeeded else ()):
        count, among = rule.get("succeededCount"), succeeded
        if rule.get("succeededIndexes") is not None:
            required = frozenset(parse_indexes(rule["succeededIndexes"], below=completions_of(job) or 0))
            if not required:
                continue
            among = succeeded & required
            if among == required:
                return number
        if count is not None and len(among) >= int(count):
            return number
    return None

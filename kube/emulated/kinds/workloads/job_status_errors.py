"""What is wrong with the status of a Job (pkg/apis/batch/validation): mostly what a write of it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common as checks
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.workloads.index_lists import IndexListError, overlap, total_of
from mews.kube.emulated.kinds.workloads.job_errors import is_indexed

Part = Mapping[str, Any]

_CONDITIONS = "status.conditions"
_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


def job_status_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a Job's status that is written."""
    spec, status, before = new["spec"], new.get("status") or {}, old.get("status") or {}
    found: list[FieldError] = []
    for name in _COUNTS:
        found += checks.not_negative(f"status.{name}", status.get(name))
    found += _uncounted_errors(status.get("uncountedTerminatedPods") or {})
    found += _outcome_errors(status, before)
    found += _finish_errors(spec, status, before)
    found += _index_errors(spec, status, before)
    found += _pod_errors(status, before)
    found += _criteria_errors(spec, status)
    return [*found, *_change_errors(spec, status, before)]


def _uncounted_errors(uncounted: Part) -> Iterator[FieldError]:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(name) or ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield refusals.bad(path, "", "must not be empty")
            elif uid in seen:
                yield refusals.duplicate(path, uid)
            seen.add(uid)


def _is(status: Part, kind: str, value: str = "True") -> bool:
    """Return whether a condition is so."""
    given = status.get("conditions") or ()
    return any(entry.get("type") == kind and entry.get("status") == value for entry in given)


def _is_finished(status: Part) -> bool:
    return _is(status, "Complete") or _is(status, "Failed")


def _turned(status: Part, before: Part, *kinds: str) -> bool:
    """Return whether one of the conditions changed."""
    return any(_is(status, kind) != _is(before, kind) for kind in kinds)


def _differs(status: Part, before: Part, *fields: str) -> bool:
    return any(status.get(name) != before.get(name) for name in fields)


def _refused(text: str) -> FieldError:
    return FieldError(_CONDITIONS, "FieldValueInvalid", text)


def _outcome_errors(status: Part, before: Part) -> Iterator[FieldError]:
    complete, failed = _is(status, "Complete"), _is(status, "Failed")
    start, end = status.get("startTime"), status.get("completionTime")
    if _turned(status, before, "Complete", "Failed") and complete and failed:
        yield _refused("cannot set Complete=True and Failed=true conditions")
    if _turned(status, before, "Complete", "FailureTarget") and complete and _is(status, "FailureTarget"):
        yield _refused("cannot set Complete=True and FailureTarget=true conditions")
    if _turned(status, before, "Complete") or _differs(status, before, "completionTime"):
        if end and not complete:
            text = "cannot set completionTime when there is no Complete=True condition"
            yield refusals.bad("status.completionTime", end, text)
        if complete and not end:
            yield refusals.required("status.completionTime", "completionTime is required for Complete jobs")
    if _differs(status, before, "startTime", "completionTime") and start and end and _time(end) < _time(start):
        yield refusals.bad("status.completionTime", end, "must be equal to or after `startTime`")
    changed = _turned(status, before, "Failed") or _differs(status, before, "failedIndexes")
    if changed and failed and not _is(status, "FailureTarget"):
        yield _refused("cannot set Failed=True condition without the FailureTarget=true condition")
    if _turned(status, before, "Complete", "SuccessCriteriaMet") and complete and not _is(status, "SuccessCriteriaMet"):
        yield _refused("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _finish_errors(spec: Part, status: Part, before: Part) -> Iterator[FieldError]:
    if not _is_finished(status):
        return
    fresh = not _is_finished(before)
    if (fresh or _differs(status, before, "active")) and status.get("active", 0) > 0:
        yield refusals.bad("status.active", status["active"], "active>0 is invalid for finished job")
    empty = spec.get("suspend") is True and spec.get("completions") == 0
    if (fresh or _differs(status, before, "startTime")) and not empty and not status.get("startTime"):
        yield refusals.required("status.startTime", "startTime is required for finished job")
    pods = status.get("uncountedTerminatedPods") or {}
    if (fresh or _differs(status, before, "uncountedTerminatedPods")) and any(pods.values()):
        shown = {"Succeeded": pods.get("succeeded"), "Failed": pods.get("failed")}
        yield refusals.bad("status.uncountedTerminatedPods", shown, "must be empty for finished job")


def _index_errors(spec: Part, status: Part, before: Part) -> Iterator[FieldError]:
    completed, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    completions, limited = spec.get("completions"), spec.get("backoffLimitPerIndex") is not None
    new_completed = completed != before.get("completedIndexes", "")
    new_failed = _differs(status, before, "failedIndexes")
    if new_completed and completions is not None:
        yield from _list_errors("completedIndexes", completed, completions)
    if new_failed and completions is not None and limited and failed is not None:
        yield from _list_errors("failedIndexes", failed, completions)
    if new_completed and completed and not is_indexed(spec):
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield refusals.bad("status.completedIndexes", completed, text)
    if new_failed and failed is not None and not limited:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield refusals.bad("status.failedIndexes", failed, text)
    if (new_completed or new_failed) and completions is not None and failed is not None:
        common = overlap(completed, failed, completions)
        if common is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {common}"
            yield refusals.bad("status.failedIndexes", failed, text)


def _list_errors(name: str, text: str, completions: int) -> Iterator[FieldError]:
    try:
        total_of(text, completions)
    except IndexListError as error:
        yield refusals.bad(f"status.{name}", text, f"error parsing {name}: {error}")


def _pod_errors(status: Part, before: Part) -> Iterator[FieldError]:
    finished, terminating, ready = _is_finished(status), status.get("terminating") or 0, status.get("ready") or 0
    changed = finished != _is_finished(before) or _differs(status, before, "terminating")
    if changed and finished and terminating > 0:
        yield refusals.bad("status.terminating", terminating, "terminating>0 is invalid for finished job")
    active = status.get("active", 0)
    more = "ready" in status and ready > active
    if more and (_differs(status, before, "ready") or active != before.get("active", 0)):
        yield refusals.bad("status.ready", ready, "cannot set more ready pods than active")


def _criteria_errors(spec: Part, status: Part) -> Iterator[FieldError]:
    met = _is(status, "SuccessCriteriaMet")
    if met and _is(status, "Failed"):
        yield _refused("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and _is(status, "FailureTarget"):
        yield _refused("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if spec.get("successPolicy") is not None and not met and _is(status, "Complete"):
        yield _refused("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")


def _change_errors(spec: Part, status: Part, before: Part) -> Iterator[FieldError]:
    for kind in ("Failed", "Complete", "FailureTarget"):
        if _is(before, kind) and not _is(status, kind):
            yield _refused(f"cannot disable the terminal {kind}=True condition")
    elastic = is_indexed(spec) and spec.get("completions") == spec.get("parallelism")
    for name in ("failed", "succeeded"):
        fewer = status.get(name, 0) < before.get(name, 0)
        if fewer and not (name == "succeeded" and elastic):
            yield refusals.bad(f"status.{name}", status.get(name, 0), f"cannot decrease the {name} counter")
    start, end = before.get("startTime"), before.get("completionTime")
    if end and status.get("completionTime") and status["completionTime"] != end:
        yield refusals.bad("status.completionTime", status["completionTime"], checks.IMMUTABLE)
    resuming = _is(before, "Suspended") and _is(status, "Suspended", "False")
    if start and status.get("startTime") != start and not spec.get("suspend") and not resuming:
        yield refusals.required("status.startTime", "startTime cannot be removed for unsuspended job")
    met = _is(status, "SuccessCriteriaMet")
    if _is(before, "SuccessCriteriaMet") and not met:
        yield _refused("cannot disable the SuccessCriteriaMet=True condition")
    if _is(before, "Complete") and not _is(before, "SuccessCriteriaMet") and met:
        yield _refused("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")

"""Events, in their core form: what must be there, and what is always shown."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules import checks
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_ALWAYS = (
    ("reportingComponent", ""),
    ("reportingInstance", ""),
    ("firstTimestamp", None),
    ("lastTimestamp", None),
    ("eventTime", None),
)
_TYPES = ("Normal", "Warning")
_OF_NEW_EVENTS = ("reportingInstance", "action", "reason")


def _default(event: Object) -> None:
    """Events of ``events.k8s.io`` had the defaults of that group, whose fields bear other names."""
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for name, value in _ALWAYS:
        event.setdefault(name, value)


def _validate(event: Object) -> list[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    involved = event["involvedObject"].get("namespace", "")
    found = []
    if involved and involved != namespace:
        found.append(refusals.bad("involvedObject.namespace", involved, "does not match event.namespace"))
    if not involved and namespace not in ("default", "kube-system"):
        found.append(refusals.bad("involvedObject.namespace", involved, "does not match event.namespace"))
    if event["eventTime"] is None:
        return found
    if not event["reportingComponent"]:
        found.append(refusals.required("reportingController"))
    found += names.qualified_faults("reportingController", event["reportingComponent"])
    found += [refusals.required(name) for name in _OF_NEW_EVENTS if not event.get(name)]
    if event.get("type", "") not in _TYPES:
        found.append(refusals.bad("type", "", f"has invalid value: {event.get('type', '')}"))
    return found


_LONGEST = (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024))
_UNSET = ("firstTimestamp", "lastTimestamp", "count", "source")


def _validate_new(event: Object) -> list[FieldError]:
    """What is asked of events of ``events.k8s.io`` alone (ValidateEventCreate)."""
    found = _validate(event)
    if event["eventTime"] is None:
        return [*found, *_series_faults(event), refusals.required("eventTime")]
    for name, longest in _LONGEST:
        if len(event.get(name, "")) > longest:
            found.append(refusals.bad(name, "", f"can have at most {longest} characters"))
    found += _series_faults(event)
    return found + [refusals.bad(name, "", "needs to be unset") for name in _UNSET if event.get(name)]


def _series_faults(event: Object) -> list[FieldError]:
    series, found = event.get("series"), list[FieldError]()
    if series is None:
        return found
    if series.get("count", 0) < 2:
        found.append(refusals.bad("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(refusals.required("series.lastObservedTime"))
    return found


_FIXED: tuple[tuple[str, Any], ...] = (
    ("involvedObject", {}), ("reason", ""), ("message", ""), ("source", {}), ("firstTimestamp", None),
    ("lastTimestamp", None), ("count", 0), ("reason", ""), ("type", ""), ("eventTime", None), ("action", ""),
    ("related", None), ("reportingComponent", ""), ("reportingInstance", ""),
)  # fmt: skip
_NAMES = {"reportingComponent": "reportingController"}


def _change_new(new: Object, old: Object, _: str) -> list[FieldError]:
    found = _validate(new)
    for name, longest in _LONGEST:
        if len(new.get(name, "")) > longest:
            found.append(refusals.bad(name, "", f"can have at most {longest} characters"))
    if new.get("series") != old.get("series"):
        found += _series_faults(new)
    for name, empty in _FIXED:
        found += checks.fixed(_NAMES.get(name, name), new.get(name, empty), old.get(name, empty))
    return found


RULES = Rules(default=_default, validate=_validate)
NEW_EVENTS = Rules(default=_default, validate=_validate_new, validate_change=_change_new)
"""Those of ``events.k8s.io``."""

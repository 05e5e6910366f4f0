"""Events, in their core form: what must be there, and what is always shown."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.views import KindView
from mews.kube.emulated.core.tables.cells import Printer, Row
from mews.kube.emulated.core.tables.durations import age

_ALWAYS = (
    ("reportingComponent", ""),
    ("reportingInstance", ""),
    ("firstTimestamp", None),
    ("lastTimestamp", None),
    ("eventTime", None),
)
_OF_NO_NAMESPACE = ("default", "kube-system")
"""Where events are about objects that are in no namespace."""
_TYPES = ("Normal", "Warning")


def _default(event: Object) -> None:
    """Events of ``events.k8s.io`` had the defaults of that group, whose fields bear other names."""
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    for name, value in _ALWAYS:
        event.setdefault(name, value)


def _legacy_errors(event: Object, controller: str = "reportingComponent") -> list[FieldError]:
    """Return what is asked of events of both groups (legacyValidateEvent), of which each calls a ``controller``
    otherwise."""
    namespace = event["metadata"].get("namespace", "")
    involved = event["involvedObject"].get("namespace", "")
    is_legacy, found = event["eventTime"] is None, list[FieldError]()
    is_unplaced = not involved and namespace not in _OF_NO_NAMESPACE
    if (involved or "default") != namespace if is_legacy else is_unplaced:
        found.append(refusals.bad("involvedObject.namespace", involved, "does not match event.namespace"))
    if is_legacy:
        return found
    if not event["reportingComponent"]:
        found.append(refusals.required(controller))
    found += names.qualified_errors(controller, event["reportingComponent"])
    for name, longest, needed in _TEXTS:
        text = event.get(name, "")
        if needed and not text:
            found.append(refusals.required(name))
        if len(text.encode()) > longest:
            found.append(refusals.bad(name, "", f"can have at most {longest} characters"))
    return found


_TEXTS = (("reportingInstance", 128, True), ("action", 128, True), ("reason", 128, True), ("message", 1024, False))
_UNSET = (("firstTimestamp", None), ("lastTimestamp", None), ("count", 0))


def _new_errors(event: Object) -> list[FieldError]:
    """Return what is asked of events of ``events.k8s.io`` (ValidateEventCreate)."""
    found = [*_legacy_errors(event, "reportingController"), *_series_errors(event)]
    if event["eventTime"] is None:
        found.append(refusals.required("eventTime"))
    if event.get("type", "") not in _TYPES:
        found.append(refusals.bad("type", "", f"has invalid value: {event.get('type', '')}"))
    found += [
        refusals.bad(name, "", "needs to be unset") for name, empty in _UNSET if event.get(name) not in (empty, None)
    ]
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        found.append(refusals.bad("source", "", "needs to be unset"))
    return found


def _series_errors(event: Object) -> list[FieldError]:
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
    found = _legacy_errors(new, "reportingController")
    if new.get("series") != old.get("series"):
        found += _series_errors(new)
    for name, empty in _FIXED:
        found += common.fixed(_NAMES.get(name, name), new.get(name, empty), old.get(name, empty))
    return found


# As events.k8s.io shows them: they are stored in the core form.

_SHOWN = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_STORED = {new: old for old, new in _SHOWN.items()}


_SHOWN_WHEN_SET = ("reportingController", "reportingInstance", "note", "reason", "type")


def _shown(event: Object) -> Object:
    shown = _renamed(event, _SHOWN, "events.k8s.io/v1")
    return {key: value for key, value in shown.items() if value or key not in _SHOWN_WHEN_SET}


def _renamed(obj: Object, names: dict[str, str], api_version: str) -> Object:
    return {**{names.get(key, key): value for key, value in obj.items()}, "apiVersion": api_version}


VIEW = KindView(show=_shown, store=lambda obj: _renamed(obj, _STORED, "v1"))


def _event(event: Object, now_s: float) -> Row:
    """Return that of an event in core form."""
    first = age(event.get("firstTimestamp") or event.get("eventTime"), now_s)
    last = age(event.get("lastTimestamp"), now_s) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    series = event.get("series")
    if series:
        last, count = age(series.get("lastObservedTime"), now_s), series.get("count", 0)
    involved = event["involvedObject"]
    target = involved.get("kind", "").lower()
    if involved.get("name"):
        target += f"/{involved['name']}"
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance")
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        target,
        involved.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (event.get("message") or "").strip(),
        first,
        count,
        event["metadata"]["name"],
    ]


RULES = Rules(
    printer=Printer(_event),
    default=_default,
    validate=_legacy_errors,
    metadata=MetadataChecks(on_create=False, on_update=()),
)
NEW_EVENTS = Rules(printer=Printer(_event), default=_default, validate=_new_errors, validate_update=_change_new)
"""Those of ``events.k8s.io``."""

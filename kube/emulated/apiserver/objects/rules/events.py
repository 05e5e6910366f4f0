"""Events, in their core form: what must be there, and what is always shown."""

from __future__ import annotations

from mews.kube.api.objects import Object
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
        found.append(refusals.bad("type", event.get("type", ""), f"has invalid value: {event.get('type', '')}"))
    return found


RULES = Rules(default=_default, validate=_validate)

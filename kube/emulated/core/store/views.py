"""Kinds that are another view of stored objects: how to show them and how to store what comes in.

Events live in the core form; ``events.k8s.io`` shows the same ones under its own names (contract section 7).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.admission import PendingCallsError
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.packs.devices import beta_views as resource_beta_views


def _same(obj: Object) -> Object:
    return obj


VERSIONED = "versioned"
"""The view of a kind that is stored in another version of its group, with the same fields but in ``_CONVERTED``."""
_CONVERTED: Mapping[str, tuple[Callable[[str, Object], Object], Callable[[str, Object], Object]]] = {
    "resource.k8s.io/v1beta1": (resource_beta_views.shown, resource_beta_views.stored),
}
"""How objects of a version are shown and stored, given the kind's plural."""


class KindView(Struct, frozen=True):
    """``show`` turns a stored object into the kind's form, ``store`` back. Neither changes its argument."""

    show: Callable[[Object], Object] = _same
    store: Callable[[Object], Object] = _same


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


def _renamed(obj: Object, names: Mapping[str, str], api_version: str) -> Object:
    return {**{names.get(key, key): value for key, value in obj.items()}, "apiVersion": api_version}


_UTILIZATION = "targetCPUUtilizationPercentage"
_CURRENT_UTILIZATION = "currentCPUUtilizationPercentage"


def _shown_autoscaler(scaler: Object) -> Object:
    """autoscaling/v2 as v1: the average utilization of cpu is a field of its own. Other metrics are not shown."""
    spec = {key: value for key, value in scaler.get("spec", {}).items() if key not in ("metrics", "behavior")}
    status = {key: value for key, value in scaler.get("status", {}).items() if key != "currentMetrics"}
    status.pop("conditions", None)
    status.setdefault("currentReplicas", 0)
    for metric in scaler.get("spec", {}).get("metrics") or ():
        if (target := _cpu_of(metric).get("target", {}).get("averageUtilization")) is not None:
            spec[_UTILIZATION] = target
    for metric in scaler.get("status", {}).get("currentMetrics") or ():
        if (current := _cpu_of(metric).get("current", {}).get("averageUtilization")) is not None:
            status[_CURRENT_UTILIZATION] = current
    return {**scaler, "apiVersion": "autoscaling/v1", "spec": spec, "status": status}


def _cpu_of(metric: Object) -> Object:
    resource: Object = metric.get("resource") or {}
    return resource if metric.get("type") == "Resource" and resource.get("name") == "cpu" else {}


def _stored_autoscaler(scaler: Object) -> Object:
    stored = {**scaler, "apiVersion": "autoscaling/v2"}
    spec = dict(scaler.get("spec") or {})
    target = spec.pop(_UTILIZATION, None)
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": wanted}}]
    if "spec" in scaler:
        stored["spec"] = spec
    return stored


VIEWS: Mapping[str, KindView] = {
    "": KindView(),
    "autoscalers": KindView(show=_shown_autoscaler, store=_stored_autoscaler),
    "events": KindView(
        show=_shown,
        store=lambda obj: _renamed(obj, _STORED, "v1"),
    ),
}


def view_of(kind: Kind) -> KindView:
    """Return how the kind shows stored objects."""
    if kind.custom:
        return KindView(show=kind.forms[0]) if kind.forms is not None else VIEWS[""]
    return _versioned(kind) if kind.view == VERSIONED else VIEWS[kind.view]


@cache
def _versioned(kind: Kind) -> KindView:
    """Objects that bear another version, and have another shape where that version has one."""
    kept = f"{kind.resource.group}/{kind.kept_in}"
    own, plural = kind.resource.api_version, kind.plural
    shown, stored = _CONVERTED.get(own, (_same_shape, _same_shape))
    return KindView(
        show=lambda obj: {**shown(plural, obj), "apiVersion": own},
        store=lambda obj: {**stored(plural, obj), "apiVersion": kept},
    )


def _same_shape(plural: str, obj: Object) -> Object:
    return obj


def all_shown(kind: Kind, objects: Iterable[Object]) -> list[Object]:
    """Stored objects as the kind shows them; what has to be asked for them is asked together
    (``PendingCallsError``)."""
    show, found = view_of(kind).show, []
    missing: dict[Hashable, Any] = {}
    for obj in objects:
        try:
            found.append(show(obj))
        except PendingCallsError as pending:
            for key, call in pending.calls.items():
                if missing.setdefault(key, call) is not call:
                    missing[key].join(call)
    if missing:
        raise PendingCallsError(missing)
    return found


def ask_ahead(kind: Kind, obj: Object) -> None:
    """Stop with ``PendingCallsError``, before anything is changed, where the answer to a write has to be asked for."""
    if kind.forms is not None:
        kind.forms[0](obj)


def stored_form(kind: Kind, obj: Object) -> Object:
    """Return an object of a custom kind, checked in its own version, as it is stored."""
    return kind.forms[1](obj) if kind.forms is not None else obj

"""Rules of autoscalers (pkg/apis/autoscaling/validation), in their second version."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, clone
from mews.kube.api.quantities import parse
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.views import KindView
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.kinds.metric_cells import metric_texts
from mews.kube.emulated.kinds.pods.resource_errors import resource_name_errors

_DEFAULT_USE = 80
_LONGEST_WINDOW_S, _LONGEST_PERIOD_S = 3600, 1800
_SCALE_UP: Part = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Part = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
_METRICS = ("ContainerResource", "External", "Object", "Pods", "Resource")
_PLACES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TARGETS = ("Utilization", "Value", "AverageValue")


def _default(scaler: Object) -> None:
    spec = scaler["spec"]
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _DEFAULT_USE}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]

    behavior = spec.get("behavior")
    if behavior is not None:
        for name, usual in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            behavior[name] = {**clone(usual), **part_of(behavior, name)}


def _errors(scaler: Object) -> list[FieldError]:
    return [*_spec_errors(scaler["spec"], None)]


def _change_errors(new: Object, old: Object, _: str) -> list[FieldError]:
    return [*_spec_errors(new["spec"], old["spec"])]


def zero_errors(scaler: Object) -> list[FieldError]:
    """Return what is wrong with an autoscaler where the gate HPAScaleToZero is on."""
    return [*_spec_errors(scaler["spec"], None, to_zero=True)]


def zero_change_errors(new: Object, old: Object, _: str) -> list[FieldError]:
    """Return what is wrong with a change there."""
    return [*_spec_errors(new["spec"], old["spec"], to_zero=True)]


def _spec_errors(spec: Part, before: Part | None, *, to_zero: bool = False) -> Iterator[FieldError]:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    least = 0 if to_zero or (before is not None and before.get("minReplicas") == 0) else 1
    if low is not None and low < least:
        yield refusals.bad("spec.minReplicas", low, f"must be greater than or equal to {least}")
    if high < 1:
        yield refusals.bad("spec.maxReplicas", high, "must be greater than 0")
    if low is not None and high < low:
        yield refusals.bad("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    target, former = part_of(spec, "scaleTargetRef"), part_of(before or {}, "scaleTargetRef")
    same = before is not None and all(target.get(name, "") == former.get(name, "") for name in ("apiVersion", "kind"))
    of_core = target.get("kind") == "ReplicationController"
    yield from _reference_errors(target, "spec.scaleTargetRef", None if same else of_core)
    for index, metric in enumerate(items(spec, "metrics")):
        yield from _metric_errors(metric, f"spec.metrics[{index}]")
    scaled_by = {metric.get("type") for metric in items(spec, "metrics")}
    if low == 0 and not scaled_by & {"Object", "External"}:
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield refusals.forbidden_field("spec.metrics", text)
    for name in ("scaleUp", "scaleDown"):
        rules = part_of(spec, "behavior").get(name)
        if rules is not None:
            yield from _behavior_errors(rules, f"spec.behavior.{name}")


def _reference_errors(reference: Part, path: str, groupless: bool | None) -> Iterator[FieldError]:
    """``groupless``: whether the version may be of no group; None: it is not looked at."""
    for name in ("kind", "name"):
        if not reference.get(name):
            yield refusals.required(f"{path}.{name}")
        else:
            yield from common.path_segment(f"{path}.{name}", reference[name])
    version = reference.get("apiVersion", "")
    if groupless is None:
        return
    if version.count("/") > 1:
        yield refusals.bad(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif not version.partition("/")[0 if "/" in version else 1] and not groupless:
        yield refusals.bad(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _behavior_errors(rules: Part, path: str) -> Iterator[FieldError]:
    window, policy = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None and window < 0:
        yield refusals.bad(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > _LONGEST_WINDOW_S:
        text = f"must be less than or equal to {_LONGEST_WINDOW_S}"
        yield refusals.bad(f"{path}.stabilizationWindowSeconds", window, text)
    if policy is not None:
        yield from common.option(f"{path}.selectPolicy", policy, ("Disabled", "Max", "Min"))
    if not items(rules, "policies"):
        yield refusals.required(f"{path}.policies", "must specify at least one Policy")
    for index, given in enumerate(items(rules, "policies")):
        yield from _policy_errors(given, f"{path}.policies[{index}]")


def _policy_errors(policy: Part, path: str) -> Iterator[FieldError]:
    yield from common.option(f"{path}.type", policy.get("type", ""), ("Percent", "Pods"))
    for name in ("value", "periodSeconds"):
        if policy.get(name, 0) <= 0:
            yield refusals.bad(f"{path}.{name}", policy.get(name, 0), "must be greater than zero")
    period = policy.get("periodSeconds", 0)
    if period > _LONGEST_PERIOD_S:
        yield refusals.bad(f"{path}.periodSeconds", period, f"must be less than or equal to {_LONGEST_PERIOD_S}")


def _metric_errors(metric: Part, path: str) -> Iterator[FieldError]:
    kind = metric.get("type", "")
    if not kind:
        yield refusals.required(f"{path}.type", "must specify a metric source type")
    yield from common.option(f"{path}.type", kind, _METRICS)
    given = [place for place in _PLACES.values() if metric.get(place) is not None]
    for place in given[:1]:
        yield from _SOURCES[place](metric[place], f"{path}.{place}")
    wanted = _PLACES.get(kind, "")
    if not wanted:
        yield from common.option(f"{path}.type", kind, _METRICS)
    elif wanted not in given:
        yield refusals.required(f"{path}.{wanted}", "must populate information for the given metric source")
    if len(given) != 1:
        for place in given:
            if place != wanted:
                yield refusals.forbidden_field(f"{path}.{place}", "must populate the given metric source only")


def _identifier_errors(source: Part, path: str) -> Iterator[FieldError]:
    name = part_of(source, "metric").get("name", "")
    if not name:
        yield refusals.required(f"{path}.metric.name", "must specify a metric name")
    else:
        yield from common.path_segment(f"{path}.metric.name", name)


def _target_errors(target: Part, path: str) -> Iterator[FieldError]:
    kind, use = target.get("type", ""), target.get("averageUtilization")
    if not kind:
        yield refusals.required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        yield refusals.bad(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        if target.get(name) is not None and parse(target[name]) <= 0:
            yield refusals.bad(f"{path}.{name}", target[name], "must be positive")
    if use is not None and use < 1:
        yield refusals.bad(f"{path}.averageUtilization", use, "must be greater than 0")


def _object_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from _reference_errors(part_of(source, "describedObject"), f"{path}.describedObject", True)
    yield from _identifier_errors(source, path)
    target = part_of(source, "target")
    yield from _target_errors(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        text = "must set either a target value or averageValue"
        yield refusals.required(f"{path}.target.averageValue", text)


def _external_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from _identifier_errors(source, path)
    target = part_of(source, "target")
    yield from _target_errors(target, f"{path}.target")
    given = [target.get("value") is not None, target.get("averageValue") is not None]
    if not any(given):
        text = "must set either a target value for metric or a per-pod target"
        yield refusals.required(f"{path}.target.averageValue", text)
    if all(given):
        text = "may not set both a target value for metric and a per-pod target"
        yield refusals.forbidden_field(f"{path}.target.value", text)


def _pods_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from _identifier_errors(source, path)
    target = part_of(source, "target")
    yield from _target_errors(target, f"{path}.target")
    if target.get("averageValue") is None:
        yield refusals.required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource_errors(source: Part, path: str) -> Iterator[FieldError]:
    if not source.get("name"):
        yield refusals.required(f"{path}.name", "must specify a resource name")
    yield from _amount_errors(source, path)


def _container_errors(source: Part, path: str) -> Iterator[FieldError]:
    if not source.get("name"):
        yield refusals.required(f"{path}.name", "must specify a resource name")
    else:
        yield from resource_name_errors(source["name"], f"{path}.name")
    if not source.get("container"):
        yield refusals.required(f"{path}.container", "must specify a container")
    else:
        yield from common.label(f"{path}.container", source["container"])
    yield from _amount_errors(source, path)


def _amount_errors(source: Part, path: str) -> Iterator[FieldError]:
    target = part_of(source, "target")
    yield from _target_errors(target, f"{path}.target")
    given = [target.get("averageUtilization") is not None, target.get("averageValue") is not None]
    if not any(given):
        text = "must set either a target raw value or a target utilization"
        yield refusals.required(f"{path}.target.averageUtilization", text)
    if all(given):
        text = "may not set both a target raw value and a target utilization"
        yield refusals.forbidden_field(f"{path}.target.averageValue", text)


_SOURCES = {
    "object": _object_errors,
    "external": _external_errors,
    "pods": _pods_errors,
    "resource": _resource_errors,
    "containerResource": _container_errors,
}


def _status_errors(new: Object, _: Object) -> list[FieldError]:
    status, found = part_of(new, "status"), list[FieldError]()
    for name in ("currentReplicas", "desiredReplicas"):
        found += common.not_negative(f"status.{name}", status.get(name))
    return found


# As autoscaling/v1 shows them.

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


VIEW = KindView(show=_shown_autoscaler, store=_stored_autoscaler)


def _autoscaler(obj: Object, _: float) -> Row:
    spec, target = spec_of(obj), spec_of(obj).get("scaleTargetRef") or {}
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metric_texts(spec.get("metrics") or (), status_of(obj).get("currentMetrics") or ()),
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status_of(obj).get("currentReplicas", 0),
    ]


RULES = Rules(
    printer=Printer(_autoscaler, is_part=True),
    default=_default,
    validate=_errors,
    validate_update=_change_errors,
    validate_status_update=_status_errors,
)

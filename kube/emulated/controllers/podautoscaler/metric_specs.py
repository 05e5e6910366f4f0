"""One entry of an autoscaler's ``spec.metrics``: what it comes to, its status, and its failure in upstream's words.

Pure (computeReplicasForMetric and what it calls in pkg/controller/podautoscaler/horizontal.go, 1.34).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from msgspec import Struct

from mews.kube.api.quantities import canonical, milli
from mews.kube.emulated.controllers.podautoscaler.replicas import (
    Circumstances,
    PodMetrics,
    Proposal,
    ReplicasError,
    by_average,
    by_share,
    by_utilization,
    by_value,
)

Spec = Mapping[str, Any]
_UNIT = 1024
_NO_TARGET = {
    "Resource": "invalid resource metric source: neither an average utilization target nor an average value (usage) "
    "target was set",
    "Object": "invalid object metric source: neither a value target nor an average value target was set",
    "External": "invalid external metric source: neither a value target nor an average value target was set",
}


class MetricReading(Struct, frozen=True):
    """What a metrics API answered for an entry: of pods, or plain values in thousandths; or why it did not."""

    pods: PodMetrics | None = None
    values: Sequence[int] = ()
    failure: str = ""


class Measured(Struct, frozen=True):
    """What an entry comes to: the replicas, how a rescale names it, and its ``status.currentMetrics``."""

    replicas: int
    name: str
    status: dict[str, Any]


class MetricFailure(Struct, frozen=True):
    """Why an entry comes to nothing: the reason of event and condition with their text, and the text of the whole."""

    reason: str
    text: str
    whole: str


def measured(spec: Spec, reading: MetricReading, about: Circumstances, namespace: str) -> Measured | MetricFailure:
    """Return what an entry of that namespace comes to by what was read for it."""
    match spec["type"]:
        case "Resource":
            return _resource(spec["resource"], "", reading, about)
        case "ContainerResource":
            source = spec["containerResource"]
            return _resource(source, source["container"], reading, about)
        case "Pods":
            return _pods(spec["pods"], reading, about)
        case "Object":
            return _object(spec["object"], reading, about, namespace)
    return _external(spec["external"], reading, about, namespace)


def _resource(source: Spec, container: str, reading: MetricReading, about: Circumstances) -> Measured | MetricFailure:
    name, target = source["name"], source["target"]
    average, percent = target.get("averageValue"), target.get("averageUtilization")
    kind, of_what = ("ContainerResource", container) if container else ("Resource", name)
    try:
        if average is None and percent is None:
            raise ReplicasError(_NO_TARGET["Resource"])
        what = "usage" if average is not None else "utilization"
        try:
            if reading.failure:
                raise ReplicasError(f"unable to get metrics for resource {name}: {reading.failure}")
            found = (
                by_average(reading.pods or {}, milli(average), name, about)
                if average is not None
                else by_utilization(reading.pods or {}, percent, name, about, container=container)
            )
        except ReplicasError as error:
            raise ReplicasError(f"failed to get {name} {what}: {error}") from error
    except ReplicasError as error:
        part = "container" if container else "resource"
        whole = f"failed to get {of_what} {part} metric value: {error}"
        return MetricFailure(f"FailedGet{kind}Metric", str(error), whole)
    current: dict[str, Any] = {"averageValue": _amount(name, found.usage)}
    if found.utilization is not None:
        current["averageUtilization"] = found.utilization
    words = f"{name} resource"
    if average is None:
        words = f"{name} {'container ' if container else ''}resource utilization (percentage of request)"
    place, more = ("containerResource", {"container": container}) if container else ("resource", {})
    return Measured(found.replicas, words, {"type": kind, place: {"name": name, **more, "current": current}})


def _pods(source: Spec, reading: MetricReading, about: Circumstances) -> Measured | MetricFailure:
    metric = source["metric"]
    try:
        if reading.failure:
            raise ReplicasError(f"unable to get metric {metric['name']}: {reading.failure}")
        found = by_average(reading.pods or {}, milli(source["target"]["averageValue"]), "", about)
    except ReplicasError as error:
        return MetricFailure("FailedGetPodsMetric", str(error), f"failed to get pods metric value: {error}")
    status = {"type": "Pods", "pods": {"metric": metric, "current": {"averageValue": _thousandths(found.usage)}}}
    return Measured(found.replicas, f"pods metric {metric['name']}", status)


def _object(source: Spec, reading: MetricReading, about: Circumstances, namespace: str) -> Measured | MetricFailure:
    metric, described, target = source["metric"], source["describedObject"], source["target"]
    wraps = ""
    try:
        if target.get("type") == "Value" and target.get("value") is not None:
            field, words = "value", f"{described['kind']} metric {metric['name']}"
            found = by_value(_usage_of(source, reading, namespace), milli(target["value"]), about)
        elif target.get("type") == "AverageValue" and target.get("averageValue") is not None:
            wraps = f"failed to get {metric['name']} object metric: "
            field, words = "averageValue", _external_words(metric)
            found = by_share(_usage_of(source, reading, namespace), milli(target["averageValue"]), about)
        else:
            raise ReplicasError(_NO_TARGET["Object"])
    except ReplicasError as error:
        return MetricFailure("FailedGetObjectMetric", str(error), f"failed to get object metric value: {wraps}{error}")
    current = {field: _thousandths(found.usage)}
    status = {"type": "Object", "object": {"describedObject": described, "metric": metric, "current": current}}
    return Measured(found.replicas, words, status)


def _usage_of(source: Spec, reading: MetricReading, namespace: str) -> int:
    if reading.failure:
        described = source["describedObject"]  # 1.34 mixes up the parts of its sentence: "%v on %s %s/%s"
        where = f"{described['kind']} on {namespace} {described['name']}/{reading.failure}"
        raise ReplicasError(f"unable to get metric {source['metric']['name']}: {where}")
    return reading.values[0]


def _external(source: Spec, reading: MetricReading, about: Circumstances, namespace: str) -> Measured | MetricFailure:
    metric, target = source["metric"], source["target"]
    name, wraps = metric["name"], ""
    try:
        if target.get("averageValue") is not None:
            field, wraps = "averageValue", f"failed to get {name} external metric: "
            decide, goal = by_share, milli(target["averageValue"])
        elif target.get("value") is not None:
            field, wraps = "value", f"failed to get external metric {name}: "
            decide, goal = by_value, milli(target["value"])
        else:
            raise ReplicasError(_NO_TARGET["External"])
        if reading.failure:
            where = f"{namespace}/{name}/{selector_words(metric.get('selector'))}"
            raise ReplicasError(f"unable to get external metric {where}: {reading.failure}")
        found: Proposal = decide(sum(reading.values), goal, about)
    except ReplicasError as error:
        whole = f"failed to get {name} external metric value: {wraps}{error}"
        return MetricFailure("FailedGetExternalMetric", str(error), whole)
    status = {"type": "External", "external": {"metric": metric, "current": {field: _thousandths(found.usage)}}}
    return Measured(found.replicas, _external_words(metric), status)


def _external_words(metric: Spec) -> str:
    """Return how a rescale names an external metric, and one of an object that is shared among pods."""
    return f"external metric {metric['name']}({selector_words(metric.get('selector'))})"


def selector_words(selector: Mapping[str, Any] | None) -> str:
    """Return a LabelSelector as Go's ``%+v`` prints it."""
    if selector is None:
        return "nil"
    shown = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{shown}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _thousandths(amount: int) -> str:
    return canonical(f"{amount}m")


def _amount(resource: str, amount: int) -> str:
    """Return that of memory in binary units where they lose nothing, as metrics-server has it."""
    whole = int((Decimal(amount) / 1000).to_integral_value(ROUND_CEILING))
    if resource != "memory" or whole < _UNIT:
        return _thousandths(amount)
    return canonical(f"{whole // _UNIT}Ki" if whole % _UNIT == 0 else whole)

"""What the metrics APIs say of an autoscaler's pods, as its controller asks them
(pkg/controller/podautoscaler/metrics/client.go, 1.34)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, name_of, seconds
from mews.kube.api.quantities import milli
from mews.kube.api.resources import Resource
from mews.kube.client.port import KubeApi
from mews.kube.emulated.controllers.podautoscaler.metric_specs import MetricReading, Spec
from mews.kube.emulated.controllers.podautoscaler.replicas import PodMetric
from mews.kube.emulated.streaming.metrics import GROUP, VERSION

_PODS = Resource(GROUP, VERSION, "pods", "PodMetrics")
_CUSTOM, _EXTERNAL = ("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1")
_WINDOW_S = 60.0
"""Of a custom metric that names none."""
_DURATION = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class MetricsReader:
    """Reads what an entry of ``spec.metrics`` names. Nothing is kept between two readings."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube

    async def read(self, spec: Spec, namespace: str, selector: str) -> MetricReading:
        """Return the metric of the pods that the selector selects, of the object, or from outside; or why there is
        none."""
        match spec["type"]:
            case "Resource":
                return await self._resource(spec["resource"]["name"], "", namespace, selector)
            case "ContainerResource":
                source = spec["containerResource"]
                return await self._resource(source["name"], source["container"], namespace, selector)
            case "Pods":
                return _unselected(spec["pods"], await self._pods(spec["pods"], namespace, selector))
            case "Object":
                return _unselected(spec["object"], await self._object(spec["object"], namespace))
        return await self._external(spec["external"]["metric"], namespace)

    async def _resource(self, name: str, container: str, namespace: str, selector: str) -> MetricReading:
        try:
            items = await self._listed(_PODS, namespace, selector)
        except (ApiError, UnavailableError) as error:
            return _failed("resource", _of_client(error, "get pods.metrics.k8s.io"))
        if not items:
            return MetricReading(failure="no metrics returned from resource metrics API")
        return MetricReading(pods=pod_metrics(items, name, container))

    async def _pods(self, source: Spec, namespace: str, selector: str) -> MetricReading:
        (group, version), metric = _CUSTOM, source["metric"]["name"]
        try:
            items = await self._listed(Resource(group, version, f"pods/*/{metric}", "MetricValue"), namespace, selector)
        except (ApiError, UnavailableError) as error:
            return _failed("custom", _of_custom(error))
        if not items:
            return MetricReading(failure="no metrics returned from custom metrics API")
        return MetricReading(pods={item["describedObject"]["name"]: _custom_metric(item) for item in items})

    async def _object(self, source: Spec, namespace: str) -> MetricReading:
        described, metric = source["describedObject"], source["metric"]["name"]
        group, _, _ = described.get("apiVersion", "").rpartition("/")
        of, version = _CUSTOM
        try:
            plural = await self._plural(group, described["kind"])
            wanted = Resource(of, version, f"{plural}/{described['name']}/{metric}", "MetricValue")
            items = await self._listed(wanted, namespace, "")
        except (ApiError, UnavailableError) as error:
            return _failed("custom", _of_custom(error))
        if not items:
            return _failed("custom", "the custom metrics API server returned no value")
        return MetricReading(values=[milli(items[0]["value"])])

    async def _plural(self, group: str, kind: str) -> str:
        """Return a kind's resource as the custom metrics API has it in its paths: ``deployments.apps``."""
        for each in await self._kube.discovery():
            if (each.group, each.kind) == (group, kind):
                return f"{each.plural}.{group}" if group else each.plural
        raise NotFoundError(f'no matches for kind "{kind}" in group "{group}"', details={"kind": kind})

    async def _external(self, metric: Mapping[str, Any], namespace: str) -> MetricReading:
        group, version = _EXTERNAL
        name, selector = metric["name"], selector_text(metric.get("selector") or {})
        try:
            items = await self._listed(Resource(group, version, name, "ExternalMetricValue"), namespace, selector)
        except (ApiError, UnavailableError) as error:
            return _failed("external", _of_client(error, f"get {name}.{group}"))
        if not items:
            return MetricReading(failure="no metrics returned from external metrics API")
        return MetricReading(values=[milli(item["value"]) for item in items])

    async def _listed(self, resource: Resource, namespace: str, selector: str) -> Sequence[Object]:
        return (await self._kube.list(resource, namespace=namespace, label_selector=selector)).items


def pod_metrics(items: Iterable[Object], resource: str, container: str) -> dict[str, PodMetric]:
    """Return those of PodMetrics objects, the use of a resource by name of pod: of one container, or of all. A pod of
    which that is not known in full is left out."""
    found: dict[str, PodMetric] = {}
    for item in items:
        of = [each for each in item["containers"] if container in ("", each["name"])]
        if of and all(resource in each["usage"] for each in of):
            used = sum(milli(each["usage"][resource]) for each in of)
            found[name_of(item)] = PodMetric(used, seconds(item["timestamp"]), duration_s(item["window"]))
    return found


def duration_s(text: str) -> float:
    """Return seconds of a duration as Go writes it: ``1m30.5s``."""
    return sum(float(number) * _UNITS_S[unit] for number, unit in _DURATION.findall(text))


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return a LabelSelector in the API's query form (metav1.FormatLabelSelector, without its word for none)."""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], ",".join(sorted(each.get("values") or ()))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "DoesNotExist": f"!{key}"}
        terms.append((key, forms.get(each["operator"], key)))
    return ",".join(term for _, term in sorted(terms, key=lambda pair: pair[0]))


def _custom_metric(item: Object) -> PodMetric:
    window = item.get("windowSeconds")
    at_s = seconds(item["timestamp"])
    return PodMetric(milli(item["value"]), at_s, _WINDOW_S if window is None else float(window))


def _unselected(source: Spec, reading: MetricReading) -> MetricReading:
    """KubeApi cannot select among series of a custom metric; what was read without that is none of the answer."""
    if reading.failure or not source["metric"].get("selector"):
        return reading
    return _failed("custom", f"metric {source['metric']['name']}: this controller cannot send a metric selector")


def _failed(api: str, why: str) -> MetricReading:
    return MetricReading(failure=f"unable to fetch metrics from {api} metrics API: {why}")


def _of_client(error: Exception, asked: str) -> str:
    """Return what client-go makes of an answer that is no Status: an API that is not served answers 404 in plain
    text."""
    if isinstance(error, NotFoundError) and not error.details:
        return f"the server could not find the requested resource ({asked})"
    return error.message if isinstance(error, ApiError) else str(error)


def _of_custom(error: Exception) -> str:
    if isinstance(error, NotFoundError) and not error.details:
        return "no custom metrics API (custom.metrics.k8s.io) registered"
    return error.message if isinstance(error, ApiError) else str(error)

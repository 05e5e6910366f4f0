"""Lives of HorizontalPodAutoscalers on a cluster without metrics APIs: every verdict that needs none, and what is said
where one is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import condition_of
from mews.kube.api.resources import (
    AUTOSCALERS,
    CRDS,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from tests.kube.emulated.controllers.staging import Stage, template, workload

Story = Callable[[Stage], Awaitable[None]]
CPU: Mapping[str, Any] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
MEMORY: Mapping[str, Any] = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "5Mi"}},
}
_OF_CONTAINER = {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}
_METRIC = {"name": "qps", "selector": {"matchLabels": {"b": "c", "a": "b"}}}
_VALUE, _AVERAGE = {"type": "Value", "value": "5"}, {"type": "AverageValue", "averageValue": "5"}
_SERVICE = {"apiVersion": "v1", "kind": "Service", "name": "s"}
_REDISCOVERED_S = 32.0
"""kube-controller-manager looks every 30 s at which kinds are served."""
_CUSTOM = "no custom metrics API"


def scaler(kind: str, name: str, *metrics: Mapping[str, Any], version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    """The body of an autoscaler; by cpu where no metric is given."""
    target = {"apiVersion": version, "kind": kind, "name": name}
    return {"spec": {"maxReplicas": 4, "metrics": list(metrics or (CPU,)), "scaleTargetRef": target, **spec}}


async def _says(stage: Stage, name: str, kind: str, reason: str, text: str = "") -> bool:
    condition = condition_of(await stage.get(AUTOSCALERS, name), kind)
    return condition is not None and condition["reason"] == reason and text in condition["message"]


def _with_target(
    name: str, body: Mapping[str, Any], kind: str, reason: str, text: str = "", *, replicas: int = 1
) -> Story:
    """A Deployment ``web`` with so many pods, and an autoscaler of which a condition comes to a reason."""

    async def story(stage: Stage) -> None:
        await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=replicas))
        made = {"availableReplicas": replicas, "observedGeneration": 1}
        await stage.until("pods", lambda: stage.status(DEPLOYMENTS, "web", **made))
        await stage.make(AUTOSCALERS, "hpa", **body)
        await stage.until("a verdict", lambda: _says(stage, "hpa", kind, reason, text))

    story.__name__ = name
    return story


def _by(name: str, reason: str, *metrics: Mapping[str, Any], text: str = "") -> Story:
    return _with_target(name, scaler("Deployment", "web", *metrics), "ScalingActive", reason, text)


async def is_above_its_most_replicas(stage: Stage) -> None:
    await stage.make(STATEFUL_SETS, "db", **workload("db", replicas=3, serviceName="db"))
    await stage.until("pods", lambda: stage.status(STATEFUL_SETS, "db", availableReplicas=3))
    await stage.make(AUTOSCALERS, "hpa", **scaler("StatefulSet", "db", maxReplicas=2))
    await stage.until("fewer", lambda: stage.status(STATEFUL_SETS, "db", replicas=2))
    await stage.until("no metrics", lambda: _says(stage, "hpa", "ScalingActive", "FailedGetResourceMetric"))


async def is_below_its_least_replicas(stage: Stage) -> None:
    body = {"spec": {"replicas": 1, "selector": {"app": "old"}, "template": template("old")}}
    await stage.make(REPLICATION_CONTROLLERS, "old", **body)
    await stage.make(AUTOSCALERS, "hpa", **scaler("ReplicationController", "old", version="v1", minReplicas=2))
    await stage.until("more", lambda: stage.status(REPLICATION_CONTROLLERS, "old", readyReplicas=2))
    await stage.until("no metrics", lambda: _says(stage, "hpa", "ScalingActive", "FailedGetResourceMetric"))


async def scales_again_after_zero(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=0))
    await stage.make(AUTOSCALERS, "hpa", **scaler("Deployment", "web", minReplicas=2))
    await stage.until("disabled", lambda: _says(stage, "hpa", "ScalingActive", "ScalingDisabled"))
    await stage.change(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
    await stage.until("more", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=2))


async def shares_its_pods_with_another(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=1))
    await stage.until("pods", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=1))
    await stage.make(AUTOSCALERS, "first", **scaler("Deployment", "web"))
    await stage.until("alone", lambda: _says(stage, "first", "ScalingActive", "FailedGetResourceMetric"))
    await stage.make(AUTOSCALERS, "second", **scaler("Deployment", "web"))
    await stage.until("second", lambda: _says(stage, "second", "ScalingActive", "AmbiguousSelector"))
    await stage.until("first", lambda: _says(stage, "first", "ScalingActive", "AmbiguousSelector"))
    await stage.kube.delete(AUTOSCALERS, "second", namespace=stage.namespace)
    await stage.until("alone again", lambda: _says(stage, "first", "ScalingActive", "FailedGetResourceMetric"))


async def has_a_target_that_comes_late(stage: Stage) -> None:
    await stage.make(AUTOSCALERS, "hpa", **scaler("Deployment", "web"))
    await stage.until("none", lambda: _says(stage, "hpa", "AbleToScale", "FailedGetScale"))
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=1))
    await stage.until("found", lambda: _says(stage, "hpa", "AbleToScale", "SucceededGetScale"))


async def has_a_daemon_set_for_a_target(stage: Stage) -> None:
    await stage.make(DAEMON_SETS, "agent", **workload("agent"))
    await stage.make(AUTOSCALERS, "hpa", **scaler("DaemonSet", "agent"))
    await stage.until("a verdict", lambda: _says(stage, "hpa", "AbleToScale", "FailedGetScale"))


async def has_a_custom_target_without_a_selector(stage: Stage) -> None:
    group = f"{stage.namespace}.example.com"
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"scale": scale}}
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    definition = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    await stage.kube.create(CRDS, {"metadata": {"name": f"things.{group}"}, "spec": definition})
    await stage.until("served", lambda: _served(stage, group))
    await asyncio.sleep(_REDISCOVERED_S)
    await stage.make(Resource(group, "v1", "things", "Thing"), "t", spec={"replicas": 1})
    await stage.make(AUTOSCALERS, "hpa", **scaler("Thing", "t", version=f"{group}/v1"))
    await stage.until("a verdict", lambda: _says(stage, "hpa", "ScalingActive", "InvalidSelector"))


async def _served(stage: Stage, group: str) -> bool:
    return condition_of(await stage.kube.get(CRDS, f"things.{group}"), "Established") is not None


_BEHAVIOR = {"scaleDown": {"selectPolicy": "Disabled"}}
STORIES: Sequence[Story] = (
    is_above_its_most_replicas,
    is_below_its_least_replicas,
    scales_again_after_zero,
    shares_its_pods_with_another,
    has_a_target_that_comes_late,
    has_a_daemon_set_for_a_target,
    has_a_custom_target_without_a_selector,
    _with_target("has-no-such-kind", scaler("Frob", "web"), "AbleToScale", "FailedGetScale"),
    _with_target("has-no-such-group", scaler("Frob", "web", version="frob.io/v1"), "AbleToScale", "FailedGetScale"),
    _with_target("is-disabled", scaler("Deployment", "web"), "ScalingActive", "ScalingDisabled", replicas=0),
    _with_target(
        "has-a-behavior",
        scaler("Deployment", "web", behavior=_BEHAVIOR),
        "ScalingActive",
        "FailedGetResourceMetric",
        replicas=3,
    ),
    _by("by-memory-and-cpu", "FailedGetResourceMetric", MEMORY, CPU, text="failed to get memory usage"),
    _by(
        "by-a-container",
        "FailedGetContainerResourceMetric",
        {"type": "ContainerResource", "containerResource": _OF_CONTAINER},
    ),
    _by(
        "by-pods",
        "FailedGetPodsMetric",
        {"type": "Pods", "pods": {"metric": _METRIC, "target": _AVERAGE}},
        text=_CUSTOM,
    ),
    _by(
        "by-an-object",
        "FailedGetObjectMetric",
        {"type": "Object", "object": {"describedObject": _SERVICE, "metric": _METRIC, "target": _VALUE}},
        text=_CUSTOM,
    ),
    _by(
        "by-a-share-of-an-object",
        "FailedGetObjectMetric",
        {"type": "Object", "object": {"describedObject": _SERVICE, "metric": _METRIC, "target": _AVERAGE}},
        CPU,
        text=_CUSTOM,
    ),
    _by(
        "by-what-is-outside",
        "FailedGetExternalMetric",
        {"type": "External", "external": {"metric": _METRIC, "target": _VALUE}},
    ),
    _by(
        "by-a-share-of-what-is-outside",
        "FailedGetExternalMetric",
        {"type": "External", "external": {"metric": {"name": "qps"}, "target": _AVERAGE}},
    ),
)

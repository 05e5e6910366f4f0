"""The autoscaler's controller on an API of ours: what it reads, what it writes, and when it is at rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from mews.harness.clock import VirtualLoop, run_virtual, virtual_clock
from mews.kube.api.errors import ConflictError, ForbiddenError, UnavailableError
from mews.kube.api.objects import Object, condition_of, timestamp
from mews.kube.api.resources import AUTOSCALERS, DEPLOYMENTS, EVENTS, PODS, Resource
from mews.kube.client.port import ObjectList
from mews.kube.clock import Pace, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.emulated.controllers.podautoscaler.measures import MetricsReader, duration_s, pod_metrics, selector_text
from mews.kube.emulated.controllers.podautoscaler.metric_specs import MetricReading
from mews.kube.emulated.controllers.podautoscaler.replicas import PodMetric
from mews.kube.emulated.packs.kubelets.measures import serve_kinds
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage
from mews.kube.releases.cluster_release import cluster_release
from tests.kube.emulated.controllers.autoscaler_stories import CPU, MEMORY, STORIES, scaler
from tests.kube.emulated.controllers.staging import workload
from tests.kube.emulated.controllers.telling import ours

SPACE = "default"


class Unwilling(InProcessKube):
    """Refuses the first writes of a subresource."""

    refused: str = ""
    errors: list[Exception]
    calls: list[str]

    async def replace(self, resource: Resource, obj: Mapping[str, Any], **more: Any) -> Object:
        subresource = str(more.get("subresource") or "")
        self.calls.append(f"{resource.plural}/{subresource}")
        if subresource == self.refused and resource in (DEPLOYMENTS, AUTOSCALERS) and self.errors:
            error = self.errors.pop(0)
            if isinstance(error, ConflictError):  # another has changed the object
                labels = {"left": str(len(self.errors))}
                await super().patch(resource, str(obj["metadata"]["name"]), {"metadata": {"labels": labels}})
            raise error
        return await super().replace(resource, obj, **more)


Play = Callable[[Unwilling], Awaitable[None]]


def played(play: Play, *, refused: str = "", errors: Sequence[Exception] = (), run: str = "") -> None:
    """On a cluster of a store and the autoscaler's controller alone; so many writes to the subresource fail."""

    async def main() -> None:
        clock = virtual_clock()
        kube = Unwilling(fresh_store(clock.now, stream(1, "store")))
        kube.refused, kube.errors, kube.calls = refused, list(errors), []
        context = Context(kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        manager = ControllerManager(context, Pace(), controllers=[run or "horizontal-pod-autoscaler-controller"])
        task = asyncio.create_task(manager.run())
        try:
            await kube.create(DEPLOYMENTS, {"metadata": {"name": "web"}, **workload("web", replicas=5)})
            await kube.create(AUTOSCALERS, {"metadata": {"name": "hpa"}, **scaler("Deployment", "web")})
            await play(kube)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)


async def _scaler(kube: InProcessKube) -> Object:
    return await kube.get(AUTOSCALERS, "hpa", namespace=SPACE)


async def _size(kube: InProcessKube) -> int:
    return int((await kube.get(DEPLOYMENTS, "web", namespace=SPACE))["spec"]["replicas"])


async def _events(kube: InProcessKube) -> list[tuple[str, str]]:
    return [(each["reason"], each["message"]) for each in (await kube.list(EVENTS, namespace=SPACE)).items]


def test_every_story_comes_to_its_verdict_and_again_to_the_same() -> None:
    told = ours(STORIES)
    assert told == ours(STORIES)
    _, events = told["by-an-object"]
    [failed, _] = events["HorizontalPodAutoscaler/hpa"]
    text = "unable to get metric qps: Service on by-an-object s/unable to fetch metrics from custom metrics API: "
    assert text in failed  # upstream's sentence has its words in that order
    _, events = told["has-a-daemon-set-for-a-target"]
    [failed] = events["HorizontalPodAutoscaler/hpa"]
    assert "the server could not find the requested resource" in failed


def test_it_is_looked_at_fifteen_seconds_after_it_came() -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(14.9)
        assert await _size(kube) == 5
        await asyncio.sleep(0.2)
        assert await _size(kube) == 4
        assert (await _events(kube)) == [
            ("SuccessfulRescale", "New size: 4; reason: Current number of replicas above Spec.MaxReplicas")
        ]
        status = (await _scaler(kube))["status"]
        assert (status["currentReplicas"], status["desiredReplicas"]) == (5, 4)
        assert status["lastScaleTime"] == "2026-01-01T00:00:15Z"

    played(play)


def test_a_scale_that_changes_between_is_read_again() -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(20)
        assert await _size(kube) == 4
        assert kube.calls.count("deployments/scale") == 3

    played(play, refused="scale", errors=[ConflictError("changed")] * 2)


@pytest.mark.parametrize(
    "error", [ForbiddenError("not you"), UnavailableError("no answer"), *[ConflictError("changed")]]
)
def test_a_scale_that_cannot_be_written_is_tried_again_at_the_next_turn(error: Exception) -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(20)
        assert await _size(kube) == 5
        condition = condition_of(await _scaler(kube), "AbleToScale")
        assert condition is not None
        assert (condition["status"], condition["reason"]) == ("False", "FailedUpdateScale")
        assert condition["message"] == f"the HPA controller was unable to update the target scale: {error}"
        [(reason, text)] = await _events(kube)
        assert (reason, text.rpartition("error: ")[2]) == ("FailedRescale", str(error))
        await asyncio.sleep(15)
        assert await _size(kube) == 4

    played(play, refused="scale", errors=[error] * (5 if isinstance(error, ConflictError) else 1))


def test_a_status_that_cannot_be_written_is_said_in_an_event() -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(20)
        assert ("FailedUpdateStatus", "not you") in await _events(kube)
        assert "conditions" not in (await _scaler(kube))["status"]
        await asyncio.sleep(15)
        assert "conditions" in (await _scaler(kube))["status"]

    played(play, refused="status", errors=[ForbiddenError("not you")])


def test_a_status_that_stays_is_not_written_again() -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(35)
        before = kube.calls.count("horizontalpodautoscalers/status")
        await asyncio.sleep(150)
        assert kube.calls.count("horizontalpodautoscalers/status") == before
        assert _is_at_rest()

    played(play)


def test_a_first_look_that_is_still_to_come_counts_as_something_that_may_happen() -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(1)
        assert not _is_at_rest()

    played(play)


def _is_at_rest() -> bool:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.idle_until() is not None


def test_one_that_has_gone_is_looked_at_no_more_and_remembered_no_more() -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(20)
        await kube.delete(AUTOSCALERS, "hpa", namespace=SPACE)
        await kube.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 9}}, namespace=SPACE)
        await asyncio.sleep(60)
        assert await _size(kube) == 9
        await kube.create(AUTOSCALERS, {"metadata": {"name": "hpa"}, **scaler("Deployment", "web", maxReplicas=7)})
        await asyncio.sleep(15.1)
        assert await _size(kube) == 7

    played(play)


def test_nothing_is_done_where_another_controller_alone_runs() -> None:
    async def play(kube: Unwilling) -> None:
        await asyncio.sleep(60)
        assert await _size(kube) == 5
        assert kube.calls == []

    played(play, run="disruption-controller")


# Several metrics


class Kubelet:
    """The kubelet of every node: all its pods use the same."""

    def __init__(self) -> None:
        self.pods: list[Object] = []
        self.cpu_milli, self.memory = 0, 0

    def kubelet_of(self, node: str) -> Any:
        return self

    def usage(self) -> list[PodUsage]:
        used = ContainerUsage(self.cpu_milli * 1_000_000, self.memory)
        return [PodUsage(each, {"c": used}, 10.0) for each in self.pods]


MEASURED = {"metadata": {"name": "hpa"}}
MISSING: Mapping[str, Any] = {
    "type": "Pods",
    "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "1"}},
}


def measured(
    play: Callable[[InProcessKube, Kubelet], Awaitable[None]], *metrics: Mapping[str, Any], replicas: int = 4
) -> None:
    """A Deployment with so many pods that ask for a core each, long ready, and an autoscaler by these metrics."""

    async def main() -> None:
        clock, kubelet = virtual_clock(), Kubelet()
        store = fresh_store(clock.now, stream(1, "store"))
        serve_kinds(store)
        kube = InProcessKube(store, kubelets=kubelet)
        made = await kube.create(DEPLOYMENTS, {"metadata": {"name": "web"}, **workload("web", replicas=replicas)})
        await kube.replace(DEPLOYMENTS, {**made, "status": {"replicas": replicas}}, subresource="status")
        for number in range(replicas):
            container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
            body = {"metadata": {"name": f"p{number}", "labels": {"app": "web"}}, "spec": {"containers": [container]}}
            pod = await kube.create(PODS, {**body, "spec": {**body["spec"], "nodeName": "n1"}})
            since = timestamp(clock.now() - 1000)
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
            status = {"phase": "Running", "startTime": since, "conditions": [ready]}
            kubelet.pods.append(await kube.replace(PODS, {**pod, "status": status}, subresource="status"))
        context = Context(kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        run = ["horizontal-pod-autoscaler-controller"]
        task = asyncio.create_task(ControllerManager(context, Pace(), controllers=run).run())
        try:
            await kube.create(AUTOSCALERS, {**MEASURED, **scaler("Deployment", "web", *metrics, maxReplicas=20)})
            await play(kube, kubelet)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)


@pytest.mark.parametrize("metrics", [(CPU, MEMORY), (MEMORY, CPU)], ids=["first", "last"])
def test_the_metric_that_asks_for_most_decides(metrics: Sequence[Mapping[str, Any]]) -> None:
    async def play(kube: InProcessKube, kubelet: Kubelet) -> None:
        kubelet.cpu_milli, kubelet.memory = 750, 1 << 20
        await asyncio.sleep(15.1)
        assert await _size(kube) == 6
        [(_, text)] = await _events(kube)
        assert text == "New size: 6; reason: cpu resource utilization (percentage of request) above target"
        status = (await _scaler(kube))["status"]
        assert [each["resource"]["name"] for each in status["currentMetrics"]] == [
            each["resource"]["name"] for each in metrics
        ]

    measured(play, *metrics)


def test_a_metric_that_fails_keeps_others_from_removing_pods_and_not_from_adding_them() -> None:
    async def play(kube: InProcessKube, kubelet: Kubelet) -> None:
        kubelet.cpu_milli = 100
        await asyncio.sleep(15.1)
        assert await _size(kube) == 4
        condition = condition_of(await _scaler(kube), "ScalingActive")
        assert condition is not None
        assert (condition["status"], condition["reason"]) == ("False", "FailedGetPodsMetric")
        kubelet.cpu_milli = 750
        await asyncio.sleep(15)
        assert await _size(kube) == 6
        scaled = await _scaler(kube)
        assert scaled["status"]["currentMetrics"][0] == {"type": ""}
        condition = condition_of(scaled, "ScalingActive")
        assert condition is not None
        assert (condition["status"], condition["reason"]) == ("True", "ValidMetricFound")

    measured(play, MISSING, CPU)


def test_recommendations_go_with_the_autoscaler() -> None:
    async def play(kube: InProcessKube, kubelet: Kubelet) -> None:
        kubelet.cpu_milli = 500
        await asyncio.sleep(16)
        await kube.delete(AUTOSCALERS, "hpa", namespace=SPACE)
        await asyncio.sleep(16)
        kubelet.cpu_milli = 100
        await kube.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, namespace=SPACE)
        await kube.create(AUTOSCALERS, {**MEASURED, **scaler("Deployment", "web", CPU)})
        await asyncio.sleep(31)
        assert await _size(kube) == 2  # the first recommendation is what was there, and holds for five minutes

    measured(play, CPU)


def test_time_alone_lets_fewer_pods_be_and_is_waited_for() -> None:
    async def play(kube: InProcessKube, kubelet: Kubelet) -> None:
        kubelet.cpu_milli = 250
        await asyncio.sleep(200)
        assert (await _size(kube), _is_at_rest()) == (4, False)
        await asyncio.sleep(200)
        assert (await _size(kube), _is_at_rest()) == (2, True)

    measured(play, CPU)


def test_time_alone_lets_a_young_pod_count_and_is_waited_for() -> None:
    async def play(kube: InProcessKube, kubelet: Kubelet) -> None:
        kubelet.cpu_milli = 500
        await asyncio.sleep(100)
        assert _is_at_rest()
        pod = await kube.get(PODS, "p0", namespace=SPACE)
        status = {**pod["status"], "startTime": timestamp(virtual_clock().now())}
        await kube.replace(PODS, {**pod, "status": status}, subresource="status")
        await asyncio.sleep(31)
        assert not _is_at_rest()
        await asyncio.sleep(300)
        assert _is_at_rest()

    measured(play, CPU)


def test_a_target_without_pods_is_judged_by_what_is_outside_where_none_are_allowed() -> None:
    async def main() -> None:
        clock = virtual_clock()
        release = cluster_release("1.34", {"HPAScaleToZero": True})
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), release=release))
        context = Context(kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        run = ["horizontal-pod-autoscaler-controller"]
        task = asyncio.create_task(ControllerManager(context, Pace(), controllers=run).run())
        await kube.create(DEPLOYMENTS, {"metadata": {"name": "web"}, **workload("web", replicas=0)})
        target = {"type": "Value", "value": "1"}
        outside = {"type": "External", "external": {"metric": {"name": "qps"}, "target": target}}
        await kube.create(AUTOSCALERS, {**MEASURED, **scaler("Deployment", "web", outside, minReplicas=0)})
        await asyncio.sleep(16)
        condition = condition_of(await _scaler(kube), "ScalingActive")
        assert condition is not None
        assert condition["reason"] == "FailedGetExternalMetric"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)


# Metrics APIs


class Served:
    """A KubeApi that lists what it is given for a path, and remembers what it was asked."""

    def __init__(self, items: Sequence[Object], error: Exception | None = None) -> None:
        self.items, self.error = list(items), error
        self.asked: list[tuple[str, str]] = []

    async def list(self, resource: Resource, *, namespace: str, label_selector: str) -> ObjectList:
        self.asked.append((resource.path(namespace), label_selector))
        if self.error is not None:
            raise self.error
        return ObjectList(self.items, "")

    async def discovery(self) -> Sequence[Resource]:
        return [DEPLOYMENTS]


def read(spec: Mapping[str, Any], served: Served) -> MetricReading:
    return asyncio.run(MetricsReader(served).read(spec, "ns", "app=web"))  # type: ignore[arg-type]


def metrics_of(name: str, **usage: Mapping[str, str]) -> Object:
    containers = [{"name": container, "usage": dict(used)} for container, used in usage.items()]
    return {
        "metadata": {"name": name},
        "timestamp": "1970-01-01T00:01:00Z",
        "window": "10.5s",
        "containers": containers,
    }


def test_cpu_of_pods_is_the_sum_of_their_containers() -> None:
    a, b = {"cpu": "100m", "memory": "1Ki"}, {"cpu": "50000001n"}
    items = [metrics_of("p", a=a, b=b), metrics_of("q", a=a), metrics_of("none")]
    found = pod_metrics(items, "cpu", "")
    assert found == {"p": PodMetric(151, 60.0, 10.5), "q": PodMetric(100, 60.0, 10.5)}
    assert set(pod_metrics(items, "cpu", "b")) == {"p"}
    assert pod_metrics(items, "memory", "") == {"q": PodMetric(1024_000, 60.0, 10.5)}
    served = Served(items)
    assert read(CPU, served).pods == found
    assert served.asked == [("/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods", "app=web")]
    assert read(CPU, Served([])).failure == "no metrics returned from resource metrics API"


def test_metrics_of_pods_of_objects_and_from_outside() -> None:
    at = {"timestamp": "1970-01-01T00:01:00Z"}
    item = {**at, "describedObject": {"name": "p"}, "value": "1500m"}
    pods, plain = Served([item, {**item, "describedObject": {"name": "q"}, "windowSeconds": 5}]), {"name": "qps"}
    of_pods = {"type": "Pods", "pods": {"metric": plain}}
    assert read(of_pods, pods).pods == {"p": PodMetric(1500, 60.0, 60.0), "q": PodMetric(1500, 60.0, 5.0)}
    base = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns"
    assert pods.asked == [(f"{base}/pods/*/qps", "app=web")]
    described = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    one, of_object = Served([item]), {"type": "Object", "object": {"metric": plain, "describedObject": described}}
    assert read(of_object, one).values == [1500]
    assert one.asked == [(f"{base}/deployments.apps/web/qps", "")]
    outside = Served([item, {"value": "2"}])
    selector = {"matchLabels": {"b": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}
    external = {"type": "External", "external": {"metric": {**plain, "selector": selector}}}
    assert read(external, outside).values == [1500, 2000]
    assert outside.asked == [("/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/qps", "a in (x,y),b=1")]


def test_a_selector_that_cannot_be_sent_is_no_answer_for_all_series() -> None:
    item = {"timestamp": "1970-01-01T00:01:00Z", "describedObject": {"name": "p"}, "value": "1"}
    source = {"metric": {"name": "qps", "selector": {"matchLabels": {"a": "b"}}}}
    found = read({"type": "Pods", "pods": source}, Served([item]))
    assert found.pods is None
    assert found.failure.endswith("metric qps: this controller cannot send a metric selector")


@pytest.mark.parametrize(
    ("error", "text"),
    [(ForbiddenError("not you"), "not you"), (UnavailableError("no answer"), "no answer")],
)
def test_an_api_that_refuses_says_why(error: Exception, text: str) -> None:
    assert read(CPU, Served([], error)).failure == f"unable to fetch metrics from resource metrics API: {text}"


def test_durations_and_selectors() -> None:
    assert [duration_s(text) for text in ("10s", "1m30.5s", "500ms", "1h0m0s")] == [10.0, 90.5, 0.5, 3600.0]
    expressions = [{"key": key, "operator": key} for key in ("Exists", "DoesNotExist")]
    assert selector_text({"matchExpressions": expressions}) == "!DoesNotExist,Exists"
    assert selector_text({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["b", "a"]}]}) == (
        "k notin (a,b)"
    )

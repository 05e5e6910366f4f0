"""How many replicas a metric asks for, in the situations of upstream's replica_calculator_test.go, told anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mews.kube.api.objects import timestamp
from mews.kube.emulated.controllers.podautoscaler.metric_specs import (
    Measured,
    MetricFailure,
    MetricReading,
    measured,
    selector_words,
)
from mews.kube.emulated.controllers.podautoscaler.replicas import (
    Circumstances,
    PodMetric,
    Proposal,
    ReplicasError,
    Tolerances,
    any_warms_up,
    by_average,
    by_share,
    by_utilization,
    by_value,
    group_pods,
    requests_of_pods,
)

NOW, LONG_AGO = 10_000.0, 1_000.0
CORE = 1000


def pod(name: str, *, phase: str = "Running", ready: bool | None = True, **more: Any) -> dict[str, Any]:
    """A pod that asks for one core: ``started`` and ``changed`` are when it began and became ready or not."""
    status: dict[str, Any] = {"phase": phase, "startTime": timestamp(more.pop("started", LONG_AGO))}
    if ready is not None:
        changed = timestamp(more.pop("changed", LONG_AGO + 1))
        status["conditions"] = [{"type": "Ready", "status": str(ready), "lastTransitionTime": changed}]
    metadata = {"name": name, **({"deletionTimestamp": timestamp(NOW)} if more.pop("deleting", False) else {})}
    containers = more.pop("containers", [{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    return {"metadata": metadata, "spec": {"containers": containers, **more}, "status": status}


def pods(count: int) -> list[dict[str, Any]]:
    return [pod(f"p{number}") for number in range(count)]


def uses(*milli: int) -> dict[str, PodMetric]:
    """The use of pods ``p0``, ``p1`` and so on, measured just now."""
    return {f"p{number}": PodMetric(value, NOW, 60.0) for number, value in enumerate(milli)}


def about(given: Sequence[Mapping[str, Any]], wanted: int | None = None, **more: Any) -> Circumstances:
    wanted = len(given) if wanted is None else wanted
    return Circumstances(wanted, more.pop("there", wanted), [dict(each) for each in given], NOW, **more)


COLD = pod("p2", ready=False, started=NOW - 10, changed=NOW - 10)
PENDING_FIFTH, PENDING_SIXTH = (pod(name, phase="Pending", ready=None) for name in ("p4", "p5"))
PENDING, FAILED = pod("p2", phase="Pending", ready=None), pod("p2", phase="Failed")


@pytest.mark.parametrize(
    ("given", "used", "target", "expected"),
    [
        (pods(3), (300, 500, 700), 30, Proposal(5, 500, 50)),
        (pods(5), (100, 300, 500, 250, 250), 50, Proposal(3, 280, 28)),
        (pods(3), (550, 550, 550), 50, Proposal(3, 550, 55)),
        (pods(3), (560, 560, 560), 50, Proposal(4, 560, 56)),
        (pods(3), (440, 440, 440), 50, Proposal(3, 440, 44)),
        (pods(3), (459, 459, 459), 50, Proposal(3, 459, 45)),
        ([*pods(2), COLD], (900, 900, 900), 50, Proposal(4, 900, 90)),
        ([*pods(2), PENDING], (500, 700), 30, Proposal(4, 600, 60)),
        ([pods(1)[0], pod("p1", phase="Pending"), PENDING], (400,), 30, Proposal(3, 400, 40)),
        ([*pods(2), FAILED], (500, 700, 9000), 30, Proposal(4, 600, 60)),
        ([*pods(2), pod("p2", deleting=True)], (500, 700, 9000), 30, Proposal(4, 600, 60)),
        (pods(4), (1000, 190), 100, Proposal(4, 595, 59)),
        (pods(4), (1000, 190), 59, Proposal(4, 595, 59)),
        (pods(4), (100, 100), 20, Proposal(4, 100, 10)),
        (pods(4), (100, 100, 100), 20, Proposal(4, 100, 10)),
        (pods(4), (10, 10, 10), 50, Proposal(2, 10, 1)),
        (pods(2), (1000,), 300, Proposal(2, 1000, 100)),
        (pods(4), (2000, 2000), 50, Proposal(8, 2000, 200)),
        (pods(2), (900, 900, 900), 50, Proposal(4, 900, 90)),
        ([*pods(4), PENDING_FIFTH, PENDING_SIXTH], (810,) * 4, 50, Proposal(6, 810, 81)),
        (pods(6), (810,) * 4, 50, Proposal(6, 810, 81)),
    ],
    ids=[
        "all are busy",
        "all are idle",
        "just within the tolerance",
        "just beyond it",
        "below it, and pods are rounded up",
        "just within it below",
        "one that warms up counts as idle",
        "one that waits counts as idle",
        "two that wait keep the scale",
        "one that failed does not count",
        "one that goes does not count",
        "those without a metric keep from scaling down",
        "those without a metric change nothing where all is well",
        "two of four without a metric count in full",
        "one of four without a metric counts in full",
        "what is left scales down",
        "a target above all requests counts for those without a metric",
        "those without a metric count as idle before pods are added",
        "metrics of pods that are not there add nothing to the average",
        "with those that wait it is within the tolerance",
        "with those without a metric it is within the tolerance",
    ],
)
def test_utilization_of_requests(given: Any, used: Any, target: int, expected: Proposal) -> None:
    assert by_utilization(uses(*used), target, "cpu", about(given)) == expected


def test_more_pods_than_replicas_as_in_a_rollout_do_not_turn_the_direction() -> None:
    assert by_utilization(uses(250, 250, 250), 50, "cpu", about(pods(4), 2)).replicas == 2
    assert by_average(uses(250, 250, 250), 500, "", about(pods(4), 2)).replicas == 2


@pytest.mark.parametrize(
    ("given", "used", "target", "expected"),
    [
        (pods(3), (20_000, 10_000, 30_000), 15_000, Proposal(4, 20_000)),
        (pods(5), (12_000,) * 5, 20_000, Proposal(3, 12_000)),
        (pods(3), (21_000,) * 3, 20_000, Proposal(3, 21_000)),
        ([*pods(2), COLD], (50_000, 10_000, 30_000), 15_000, Proposal(6, 30_000)),
        (pods(3), (10_000,), 20_000, Proposal(3, 10_000)),
        (pods(3), (1_000,), 20_000, Proposal(3, 1_000)),
        (pods(3), (1_000, 1_000), 20_000, Proposal(2, 1_000)),
        ([*pods(2), PENDING], (50_000, 10_000), 15_000, Proposal(4, 30_000)),
    ],
    ids=[
        "busy",
        "idle",
        "within the tolerance",
        "a metric that is not of cpu counts while a pod warms up",
        "one without a metric",
        "two without a metric keep the scale",
        "one of three without a metric",
        "one that waits counts as idle",
    ],
)
def test_an_average_of_pods(given: Any, used: Any, target: int, expected: Proposal) -> None:
    assert by_average(uses(*used), target, "", about(given)) == expected


@pytest.mark.parametrize(
    ("usage", "target", "circumstances", "expected"),
    [
        (20_000, 15_000, about(pods(3)), Proposal(4, 20_000)),
        (20_000, 15_000, about([*pods(2), COLD]), Proposal(3, 20_000)),
        (20_000, 15_000, about([*pods(2), pod("p2", phase="Succeeded")]), Proposal(3, 20_000)),
        (16_000, 15_000, about(pods(3), 7), Proposal(7, 16_000)),
        (16_000, 15_000, about([], 0), Proposal(2, 16_000)),
        (0, 15_000, about([], 0), Proposal(0, 0)),
    ],
    ids=[
        "more",
        "those that are ready count",
        "those that run count",
        "within the tolerance",
        "from zero",
        "stays at zero",
    ],
)
def test_a_value_of_one_object(usage: int, target: int, circumstances: Circumstances, expected: Proposal) -> None:
    assert by_value(usage, target, circumstances) == expected


def test_a_value_that_is_shared_among_pods() -> None:
    assert by_share(20_000, 5_000, about(pods(3))) == Proposal(4, 6667)
    assert by_share(15_500, 5_000, about(pods(3))) == Proposal(3, 5167)
    assert by_share(9_000, 5_000, about(pods(3))) == Proposal(2, 3000)
    assert by_share(2**62, 1, about(pods(3))).replicas == 2**31 - 1
    assert by_share(9_000, 5_000, about(pods(3), there=0)) == Proposal(2, -(2**63))


def test_tolerances_are_of_each_direction() -> None:
    steady = Tolerances(down=0.1, up=0.5)
    assert by_utilization(uses(700, 700), 50, "cpu", about(pods(2), tolerances=steady)).replicas == 2
    assert by_utilization(uses(800, 800), 50, "cpu", about(pods(2), tolerances=steady)).replicas == 4
    assert by_utilization(uses(220, 220), 50, "cpu", about(pods(2), tolerances=steady)).replicas == 1


@pytest.mark.parametrize(
    ("started", "ready", "changed", "counts"),
    [
        (NOW - 200, True, NOW - 61, True),
        (NOW - 200, True, NOW - 59, False),
        (NOW - 200, False, NOW - 100, False),
        (NOW - 299, None, 0, False),
        (NOW - 301, False, NOW - 300, False),
        (NOW - 301, False, NOW - 200, True),
        (NOW - 301, True, NOW - 1, True),
    ],
    ids=[
        "ready for a whole window",
        "ready for less",
        "not ready, in its first minutes",
        "without a condition",
        "never ready",
        "once ready, long after its start",
        "ready at last",
    ],
)
def test_cpu_of_a_pod_in_its_first_minutes(started: float, ready: bool | None, changed: float, counts: bool) -> None:
    one = pod("p0", ready=ready, started=started, changed=changed) if ready is not None else pod("p0", ready=None)
    groups = group_pods([one], uses(1), "cpu", NOW)
    assert (groups.ready, groups.unready) == ((1, frozenset()) if counts else (0, {"p0"}))
    assert group_pods([one], uses(1), "memory", NOW).ready == 1


def test_time_alone_changes_the_verdict_while_a_pod_is_young() -> None:
    assert any_warms_up([*pods(2), COLD], NOW)
    assert not any_warms_up(pods(2), NOW)
    assert not any_warms_up([pod("p0", phase="Failed", started=NOW)], NOW)


def test_groups_of_pods() -> None:
    given = [*pods(1), pod("p1"), PENDING, pod("p3", deleting=True), pod("p4", phase="Failed"), pod("p5", ready=None)]
    groups = group_pods(given, {**uses(1), "p5": PodMetric(1, NOW, 60.0)}, "cpu", NOW)
    assert groups.ready == 1
    assert (groups.unready, groups.missing, groups.ignored) == ({"p2", "p5"}, {"p1"}, {"p3", "p4"})


def test_requests_of_pods() -> None:
    main, other = ({"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in (("a", "1"), ("b", "500m")))
    sidecar = {**main, "name": "s", "restartPolicy": "Always"}
    given = pod("p0", containers=[main, other], initContainers=[sidecar, {"name": "i"}])
    assert requests_of_pods([given], "", "cpu") == {"p0": 2500}
    assert requests_of_pods([given], "b", "cpu") == {"p0": 500}
    whole = pod("p0", containers=[main], resources={"requests": {"cpu": "3"}})
    assert requests_of_pods([whole], "", "cpu") == {"p0": 3000}
    assert requests_of_pods([whole], "a", "cpu") == {"p0": 1000}
    with pytest.raises(ReplicasError, match="missing pod-level request for memory in Pod p0"):
        requests_of_pods([whole], "", "memory")
    bare = pod("p1", containers=[main, {"name": "b"}])
    with pytest.raises(ReplicasError, match="missing request for cpu in container b of Pod p1"):
        requests_of_pods([given, bare], "", "cpu")


@pytest.mark.parametrize(
    ("given", "used", "text"),
    [
        ([], (1,), "no pods returned by selector while calculating replica count"),
        (pods(1), (), "did not receive metrics for targeted pods (pods might be unready)"),
        ([COLD], (1, 1, 1), "no metrics returned matched known pods"),
        ([PENDING], (), "did not receive metrics for targeted pods (pods might be unready)"),
    ],
)
def test_what_no_number_follows_from(given: Any, used: Any, text: str) -> None:
    with pytest.raises(ReplicasError) as refused:
        by_utilization(uses(*used), 50, "cpu", about(given))
    assert str(refused.value) == text
    if not given:
        with pytest.raises(ReplicasError, match=f"unable to calculate ready pods: {text}"):
            by_value(20_000, 5_000, about(given, 1))


TARGETS = {"Utilization": {"averageUtilization": 50}, "AverageValue": {"averageValue": "500m"}}


def of_resource(name: str, kind: str, **more: Any) -> dict[str, Any]:
    place = "containerResource" if more else "resource"
    target = {"type": kind, **TARGETS[kind]}
    return {"type": place[0].upper() + place[1:], place: {"name": name, "target": target, **more}}


METRIC = {"name": "qps"}
SERVICE = {"kind": "Service", "name": "s"}
VALUE, AVERAGE = {"type": "Value", "value": "5"}, {"type": "AverageValue", "averageValue": "5"}


@pytest.mark.parametrize(
    ("spec", "reading", "replicas", "name", "current"),
    [
        (
            of_resource("cpu", "Utilization"),
            MetricReading(pods=uses(900, 900)),
            4,
            "cpu resource utilization (percentage of request)",
            {"averageUtilization": 90, "averageValue": "900m"},
        ),
        (
            of_resource("cpu", "Utilization", container="c"),
            MetricReading(pods=uses(900, 900)),
            4,
            "cpu container resource utilization (percentage of request)",
            {"averageUtilization": 90, "averageValue": "900m"},
        ),
        (
            of_resource("memory", "AverageValue"),
            MetricReading(pods=uses(3072_000, 3072_000)),
            12288,
            "memory resource",
            {"averageValue": "3Ki"},
        ),
        (
            {"type": "Pods", "pods": {"metric": METRIC, "target": AVERAGE}},
            MetricReading(pods=uses(7_500, 7_500)),
            3,
            "pods metric qps",
            {"averageValue": "7500m"},
        ),
        (
            {"type": "Object", "object": {"describedObject": SERVICE, "metric": METRIC, "target": VALUE}},
            MetricReading(values=[10_000]),
            4,
            "Service metric qps",
            {"value": "10"},
        ),
        (
            {"type": "Object", "object": {"describedObject": SERVICE, "metric": METRIC, "target": AVERAGE}},
            MetricReading(values=[15_000]),
            3,
            "external metric qps(nil)",
            {"averageValue": "7500m"},
        ),
        (
            {"type": "External", "external": {"metric": METRIC, "target": VALUE}},
            MetricReading(values=[10_000, 2_000]),
            5,
            "external metric qps(nil)",
            {"value": "12"},
        ),
        (
            {"type": "External", "external": {"metric": METRIC, "target": AVERAGE}},
            MetricReading(values=[10_000, 2_000]),
            3,
            "external metric qps(nil)",
            {"averageValue": "6"},
        ),
    ],
)
def test_an_entry_of_the_spec(spec: Any, reading: MetricReading, replicas: int, name: str, current: Any) -> None:
    found = measured(spec, reading, about(pods(2)), "default")
    assert isinstance(found, Measured)
    assert (found.replicas, found.name) == (replicas, name)
    place = next(key for key in spec if key != "type")
    assert found.status["type"] == spec["type"]
    assert found.status[place]["current"] == current
    kept = {key: value for key, value in spec[place].items() if key != "target"}
    assert {key: value for key, value in found.status[place].items() if key != "current"} == kept


def test_an_entry_that_fails_says_so_in_full_and_in_short() -> None:
    found = measured(of_resource("cpu", "Utilization"), MetricReading(pods={}), about(pods(2)), "default")
    short = "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)"
    whole = f"failed to get cpu resource metric value: {short}"
    assert found == MetricFailure("FailedGetResourceMetric", short, whole)


def test_a_selector_as_go_prints_it() -> None:
    expression = {"key": "k", "operator": "In", "values": ["a", "b"]}
    assert selector_words({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [expression]}) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}"
    )

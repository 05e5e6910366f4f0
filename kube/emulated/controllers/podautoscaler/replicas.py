"""How many replicas a metric asks for. Pure (pkg/controller/podautoscaler/replica_calculator.go, 1.34).

Usage and targets are thousandths, as ``Quantity.MilliValue()``: of a core, of a byte, of whatever a metric counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from mews.kube.api.objects import (
    Object,
    condition_of,
    containers_of,
    init_containers_of,
    is_deleting,
    name_of,
    phase_of,
    seconds,
)
from mews.kube.api.pod_requests import amounts_named, is_of_the_whole, is_sidecar, pod_amount
from mews.kube.api.quantities import milli

CPU = "cpu"
CPU_INITIALIZATION_S, INITIAL_READINESS_DELAY_S = 300.0, 30.0
"""``--horizontal-pod-autoscaler-cpu-initialization-period`` and ``-initial-readiness-delay`` of
kube-controller-manager."""
_MOST_REPLICAS = 2**31 - 1
_DIVIDED_BY_ZERO = -(2**63)
"""What Go on amd64 makes of an infinite float as an int64: the average over no pods."""
_NEVER = "1970-01-01T00:00:00Z"
_NO_PODS = "no pods returned by selector while calculating replica count"
_NO_METRICS = "did not receive metrics for targeted pods (pods might be unready)"


class ReplicasError(ValueError):
    """No number of replicas follows from what was measured: why, in upstream's words."""


class PodMetric(Struct, frozen=True):
    """What was measured of one pod over ``window_s`` that ended at ``at_s`` (unix seconds)."""

    value: int
    at_s: float
    window_s: float


PodMetrics = Mapping[str, PodMetric]
"""Pod name -> its metric."""


class Tolerances(Struct, frozen=True):
    """How far usage may be from its target, as shares of it, before replicas change."""

    down: float = 0.1
    up: float = 0.1

    def allow(self, ratio: float) -> bool:
        """Return whether a ratio of usage to target is close enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Circumstances(Struct, frozen=True):
    """What decisions about any metric need: the replicas there should be and there are, the selected pods, the time
    (unix seconds) and the tolerances."""

    wanted: int
    there: int
    pods: Sequence[Object]
    now: float
    tolerances: Tolerances = Tolerances()


class Proposal(Struct, frozen=True):
    """The replicas that a metric asks for; its usage, on average a pod or in all; that as a share of the requests
    in percent, where the metric is one of utilization."""

    replicas: int
    usage: int
    utilization: int | None = None


class PodGroups(Struct, frozen=True):
    """How many pods count, and the names of those that do not: not ready, without a metric, or ended."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def by_utilization(
    metrics: PodMetrics, target: int, resource: str, about: Circumstances, *, container: str = ""
) -> Proposal:
    """Return it for a resource whose usage shall be ``target`` percent of what pods request, of one container or of
    all.

    Raises ReplicasError.
    """
    groups, counted = _counted(metrics, resource, about)
    requests = requests_of_pods(about.pods, container, resource)
    ratio, utilization, usage = _utilization(counted, requests, target)
    # Pods without a metric are thought to use all that they request when others say to scale down.
    fallback = max(100, target)
    assumed = {name: requests[name] * fallback // 100 for name in groups.missing}

    def again(filled: Mapping[str, int]) -> float:
        return _utilization(filled, requests, target)[0]

    return Proposal(_replicas(ratio, counted, groups, about, assumed, again), usage, utilization)


def by_average(metrics: PodMetrics, target: int, resource: str, about: Circumstances) -> Proposal:
    """Return it for a metric of pods whose average shall be ``target``; ``resource`` is "" for one that is not of a
    resource.

    Raises ReplicasError.
    """
    groups, counted = _counted(metrics, resource, about)
    ratio, usage = _average(counted, target)
    assumed = dict.fromkeys(groups.missing, target)

    def again(filled: Mapping[str, int]) -> float:
        return _average(filled, target)[0]

    return Proposal(_replicas(ratio, counted, groups, about, assumed, again), usage)


def by_value(usage: int, target: int, about: Circumstances) -> Proposal:
    """Return it for a metric of one object, or an external one, whose value as it is shall be ``target``.

    Raises ReplicasError.
    """
    ratio = usage / target
    if about.wanted == 0:
        return Proposal(math.ceil(ratio), usage)
    if about.tolerances.allow(ratio):
        return Proposal(about.wanted, usage)
    if not about.pods:
        raise ReplicasError(f"unable to calculate ready pods: {_NO_PODS}")
    ready = sum(phase_of(pod) == "Running" and _readiness(pod) == "True" for pod in about.pods)
    return Proposal(math.ceil(ratio * ready), usage)


def by_share(usage: int, target: int, about: Circumstances) -> Proposal:
    """Return it for such a metric whose value, divided by the pods there are, shall be ``target``."""
    replicas = about.there
    if not replicas or not about.tolerances.allow(usage / (target * replicas)):
        replicas = min(math.ceil(usage / target), _MOST_REPLICAS)
    if not about.there:
        return Proposal(replicas, _DIVIDED_BY_ZERO)
    return Proposal(replicas, math.ceil(usage / about.there))


def _counted(metrics: PodMetrics, resource: str, about: Circumstances) -> tuple[PodGroups, dict[str, int]]:
    """Return the groups of the pods, and the usage of those that count and of whatever else was measured."""
    if not about.pods:
        raise ReplicasError(_NO_PODS)
    groups = group_pods(about.pods, metrics, resource, about.now)
    left_out = groups.ignored | groups.unready
    counted = {name: metric.value for name, metric in metrics.items() if name not in left_out}
    if not counted:
        raise ReplicasError(_NO_METRICS)
    return groups, counted


def _replicas(
    ratio: float,
    counted: Mapping[str, int],
    groups: PodGroups,
    about: Circumstances,
    assumed: Mapping[str, int],
    again: Callable[[Mapping[str, int]], float],
) -> int:
    """Return what a ratio of usage to target comes to. ``assumed``: what pods without a metric count for before
    replicas are taken away; ``again``: the ratio with such pods in it. Pods without a metric and those that are not
    ready damp a change, and never turn it round."""
    grows_unready = bool(groups.unready) and ratio > 1.0
    if not grows_unready and not groups.missing:
        return about.wanted if about.tolerances.allow(ratio) else math.ceil(ratio * groups.ready)
    filled = dict(counted)
    if ratio < 1.0:
        filled |= assumed
    elif ratio > 1.0:
        filled |= dict.fromkeys(groups.missing, 0)
    if grows_unready:
        filled |= dict.fromkeys(groups.unready, 0)
    damped = again(filled)
    turned = (ratio < 1.0 < damped) or (damped < 1.0 < ratio)
    if turned or about.tolerances.allow(damped):
        return about.wanted
    replicas = math.ceil(damped * len(filled))
    turned = (damped < 1.0 and replicas > about.wanted) or (damped > 1.0 and replicas < about.wanted)
    return about.wanted if turned else replicas


def _utilization(usage: Mapping[str, int], requests: Mapping[str, int], target: int) -> tuple[float, int, int]:
    """Ratio to the target, percent of the requests, and the average (metrics/utilization.go)."""
    known = [name for name in usage if name in requests]
    total, requested = sum(usage[name] for name in known), sum(requests[name] for name in known)
    if not requested:
        raise ReplicasError("no metrics returned matched known pods")
    percent = total * 100 // requested
    return percent / target, percent, total // len(known)


def _average(usage: Mapping[str, int], target: int) -> tuple[float, int]:
    average = sum(usage.values()) // len(usage)
    return average / target, average


def group_pods(pods: Iterable[Object], metrics: PodMetrics, resource: str, now: float) -> PodGroups:
    """Return which pods count. Of cpu, a pod's first minutes count only while it is ready and for a whole window by
    then."""
    ready, unready, missing, ignored = 0, set[str](), set[str](), set[str]()
    for pod in pods:
        name, phase = name_of(pod), phase_of(pod)
        if is_deleting(pod) or phase == "Failed":
            ignored.add(name)
        elif phase == "Pending":
            unready.add(name)
        elif name not in metrics:
            missing.add(name)
        elif resource == CPU and _warms_up(pod, metrics[name], now):
            unready.add(name)
        else:
            ready += 1
    return PodGroups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _warms_up(pod: Object, metric: PodMetric, now: float) -> bool:
    condition, start = condition_of(pod, "Ready"), (pod.get("status") or {}).get("startTime")
    if condition is None or start is None:
        return True
    started, changed = seconds(start), seconds(condition.get("lastTransitionTime") or _NEVER)
    if started + CPU_INITIALIZATION_S > now:
        return condition["status"] == "False" or metric.at_s < changed + metric.window_s
    # It has never been ready if it is not, and was not for long after its start.
    return condition["status"] == "False" and started + INITIAL_READINESS_DELAY_S > changed


def any_warms_up(pods: Iterable[Object], now: float) -> bool:
    """Return whether the metrics of a pod may come to count by time alone: one that is in its first minutes."""
    starts = ((pod.get("status") or {}).get("startTime") for pod in pods if phase_of(pod) != "Failed")
    return any(start is not None and seconds(start) + CPU_INITIALIZATION_S > now for start in starts)


def _readiness(pod: Object) -> str:
    condition = condition_of(pod, "Ready")
    return "" if condition is None else str(condition["status"])


def requests_of_pods(pods: Iterable[Object], container: str, resource: str) -> dict[str, int]:
    """Pod name -> what it requests: of one container where it is named, else as a whole or of all that go on running.

    Raises ReplicasError for a request that is missing.
    """
    return {name_of(pod): _request(pod, container, resource) for pod in pods}


def _request(pod: Object, container: str, resource: str) -> int:
    as_a_whole = (pod["spec"].get("resources") or {}).get("requests") or {}
    if not container and any(is_of_the_whole(name) for name in as_a_whole):
        if resource not in amounts_named(pod, "requests"):
            raise ReplicasError(f"missing pod-level request for {resource} in Pod {name_of(pod)}")
        return pod_amount(pod, resource, milli)
    total = 0
    for each in (*containers_of(pod), *(init for init in init_containers_of(pod) if is_sidecar(init))):
        if container in ("", each["name"]):
            requests = (each.get("resources") or {}).get("requests") or {}
            if resource not in requests:
                text = f"missing request for {resource} in container {each['name']} of Pod {name_of(pod)}"
                raise ReplicasError(text)
            total += milli(requests[resource])
    return total

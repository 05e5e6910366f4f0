"""How many pods a budget lets go (k8s.io/kubernetes pkg/controller/disruption)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, is_deleting, name_of, seconds, timestamp
from mews.kube.emulated.controllers.conditions import find, without
from mews.kube.emulated.controllers.deployment.policy import scaled
from mews.kube.emulated.controllers.pods import is_ready

DELETION_TIMEOUT_S = 120.0
"""How long an evicted pod counts as gone before it is."""
_KIND = "DisruptionAllowed"
_MOMENT_S = 0.001
"""After it, that time has passed."""


def needs_scale(budget: Object) -> bool:
    """Return whether what is expected depends on the pods' controllers: a share, or what may be missing."""
    spec = budget["spec"]
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def expected(budget: Object, pods: Sequence[Object], scale: int) -> tuple[int, int]:
    """(expected pods, those that must be healthy); ``scale``: what the pods' controllers want in all."""
    spec = budget["spec"]
    if spec.get("maxUnavailable") is not None:
        return scale, max(scale - scaled(spec["maxUnavailable"], scale, up=True), 0)
    least = spec.get("minAvailable")
    if isinstance(least, str):
        return scale, scaled(least, scale, up=True)
    return (len(pods), int(least)) if least is not None else (0, 0)


def disrupted(budget: Object, pods: Sequence[Object], now: float) -> dict[str, str]:
    """Evicted pods that are still there, by name, with the time of their eviction."""
    known: Mapping[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
    names = {name_of(pod) for pod in pods if not is_deleting(pod)}
    return {n: t for n, t in known.items() if n in names and seconds(t) + DELETION_TIMEOUT_S >= now}


def recheck_s(leaving: Mapping[str, str], now: float) -> float:
    """Return in how many seconds the first of these evicted pods is no longer believed to go (disruption.go,
    buildDisruptedPodMap)."""
    return max(min(map(seconds, leaving.values())) + DELETION_TIMEOUT_S - now, 0.0) + _MOMENT_S


def overdue(budget: Object, pods: Sequence[Object], now: float) -> list[Object]:
    """Evicted pods that should have been deleted by now, and are not."""
    known: Mapping[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
    there = [pod for pod in pods if name_of(pod) in known and not is_deleting(pod)]
    return [pod for pod in there if seconds(known[name_of(pod)]) + DELETION_TIMEOUT_S < now]


def status(budget: Object, pods: Sequence[Object], scale: int, now: float) -> dict[str, Any]:
    """Return the status that the disruption budget should have, given its pods."""
    old: Mapping[str, Any] = budget.get("status") or {}
    generation = budget["metadata"].get("generation", 0)
    leaving = disrupted(budget, pods, now)
    healthy = sum(is_ready(pod) and not is_deleting(pod) and name_of(pod) not in leaving for pod in pods)
    count, least = expected(budget, pods, scale)
    allowed = max(healthy - least, 0) if count > 0 else 0
    made: dict[str, Any] = {"observedGeneration": generation, **({"disruptedPods": leaving} if leaving else {})}
    made |= {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": least, "expectedPods": count}
    conditions = old.get("conditions") or []
    current, state = find(conditions, _KIND), "True" if allowed else "False"
    since = current["lastTransitionTime"] if current is not None and current["status"] == state else timestamp(now)
    condition = {"type": _KIND, "status": state, "observedGeneration": generation, "lastTransitionTime": since}
    condition |= {"reason": "SufficientPods" if allowed else "InsufficientPods", "message": ""}
    return {**made, "conditions": [*without(conditions, _KIND), condition]}

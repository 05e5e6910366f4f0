"""How controllers read pods (k8s.io/kubernetes pkg/controller/controller_utils.go, pkg/api/v1/pod). Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import Any

from mews.kube.api.objects import (
    Object,
    annotations_of,
    clone,
    condition_of,
    is_deleting,
    is_terminal,
    node_name_of,
    phase_of,
    seconds,
    uid_of,
)

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = "controller.kubernetes.io/pod-deletion-cost"
_LONGEST_PREFIX = 253
_NANOSECOND = 1e-9


def is_active(pod: Object) -> bool:
    """Return whether the pod has neither ended nor begun to be deleted."""
    return not is_terminal(pod) and not is_deleting(pod)


def is_ready(pod: Object) -> bool:
    """Return whether the pod's condition Ready is true."""
    return (condition_of(pod, "Ready") or {}).get("status") == "True"


def ready_since(pod: Object) -> float | None:
    """Unix seconds since which it is ready, None when it is not or does not say."""
    stamp = (condition_of(pod, "Ready") or {}).get("lastTransitionTime")
    return seconds(stamp) if is_ready(pod) and stamp else None


def is_available(pod: Object, min_ready_s: int, now: float) -> bool:
    """Return whether the pod has been ready for ``min_ready_s`` seconds."""
    if not is_ready(pod):
        return False
    since = ready_since(pod)
    return min_ready_s == 0 or (since is not None and since + min_ready_s <= now)


def next_availability_s(pods: Sequence[Object], min_ready_s: int, now: float) -> float:
    """Return seconds until the first of the pods that are ready but not available is."""
    waits = [since + min_ready_s - now for pod in pods if (since := ready_since(pod)) is not None]
    return min((wait for wait in waits if wait > 0), default=float(min_ready_s))


def pod_of(template: Mapping[str, Any], owner_name: str, reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod that a template makes for its controller."""
    metadata = template.get("metadata") or {}
    prefix = f"{owner_name}-"
    made: dict[str, Any] = {"generateName": prefix if len(prefix) <= _LONGEST_PREFIX else owner_name}
    for name in ("labels", "annotations", "finalizers"):
        if metadata.get(name):
            made[name] = clone(metadata[name])
    made["ownerReferences"] = [dict(reference)]
    return {"metadata": made, "spec": clone(template.get("spec") or {})}


def first_to_go(pods: Sequence[Object], ranks: Sequence[int], now: float) -> list[Object]:
    """Pods in the order in which a shrinking ReplicaSet deletes them; ``ranks``: how many active ones of the same
    owner share the pod's node. Ages count by powers of two, so that not always the youngest goes."""

    def less(one: tuple[Object, int], two: tuple[Object, int]) -> int:
        a, b = one[0], two[0]
        for x, y in zip(_early_rules(a, one[1]), _early_rules(b, two[1]), strict=True):
            if x != y:
                return -1 if x < y else 1
        if is_ready(a) and is_ready(b) and ready_since(a) != ready_since(b):
            return _by_age(a, b, (ready_since(a), ready_since(b)), now)
        for x, y in zip(_restarts(b), _restarts(a), strict=True):
            if x != y:
                return -1 if x < y else 1
        born = (_born(a), _born(b))
        return _by_age(a, b, born, now) if born[0] != born[1] else 0

    return [pod for pod, _ in sorted(zip(pods, ranks, strict=True), key=cmp_to_key(less))]


def _early_rules(pod: Object, rank: int) -> tuple[int, ...]:
    cost = annotations_of(pod).get(_COST, "0")
    number = int(cost) if cost.lstrip("-").isdecimal() else 0
    return (bool(node_name_of(pod)), _PHASES.get(phase_of(pod), 0), is_ready(pod), number, -rank)


def _by_age(a: Object, b: Object, since: tuple[float | None, float | None], now: float) -> int:
    if since[0] is None or since[1] is None:
        return -1 if since[0] is None else 1
    difference = _age_rank(now - since[0]) - _age_rank(now - since[1])
    if difference == 0:
        return -1 if uid_of(a) < uid_of(b) else 1
    return difference


def _age_rank(age_s: float) -> int:
    return int(math.log2(age_s / _NANOSECOND)) if age_s > 0 else -1


def _born(pod: Object) -> float | None:
    stamp = pod["metadata"].get("creationTimestamp")
    return seconds(stamp) if stamp else None


def _restarts(pod: Object) -> tuple[int, int]:
    status = pod.get("status") or {}
    sidecars = {c["name"] for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"}
    mains = max((int(c.get("restartCount", 0)) for c in status.get("containerStatuses") or ()), default=0)
    inits = [c for c in status.get("initContainerStatuses") or () if c.get("name") in sidecars]
    return mains, max((int(c.get("restartCount", 0)) for c in inits), default=0)

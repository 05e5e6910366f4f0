"""Taints that follow from a node's conditions, and how long a pod bears them. Pure.

Source: contract kubelet.md section 11, pkg/controller/nodelifecycle and pkg/controller/tainteviction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mews.kube.api.objects import Object, condition_of, timestamp
from mews.kube.scheduling.plugins.taints import tolerates

Taint = dict[str, Any]

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def taints_of(node: Mapping[str, Any]) -> list[Taint]:
    """``spec.taints``."""
    return list(node.get("spec", {}).get("taints") or ())


def condition_key(node: Mapping[str, Any]) -> str:
    """Return the taint of the node's Ready condition; "" while it is ready or says nothing."""
    status = (condition_of(node, "Ready") or {}).get("status")
    return {"False": NOT_READY, "Unknown": UNREACHABLE}.get(str(status), "")


def with_no_schedule(node: Object, now: float) -> list[Taint]:
    """Return the node's taints with the NoSchedule ones that its conditions and cordon ask for."""
    wanted = {condition_key(node)} - {""}
    if node.get("spec", {}).get("unschedulable"):
        wanted.add(UNSCHEDULABLE)
    return _adjusted(node, (NOT_READY, UNREACHABLE, UNSCHEDULABLE), wanted, "NoSchedule", now)


def with_no_execute(node: Object, now: float) -> list[Taint]:
    """Return the node's taints with the NoExecute one that its Ready condition asks for."""
    return _adjusted(node, (NOT_READY, UNREACHABLE), {condition_key(node)} - {""}, "NoExecute", now)


def _adjusted(node: Object, governed: Iterable[str], wanted: set[str], effect: str, now: float) -> list[Taint]:
    governed, taints = tuple(governed), taints_of(node)
    kept = [t for t in taints if t.get("effect") != effect or t["key"] not in governed or t["key"] in wanted]
    present = {taint["key"] for taint in kept if taint.get("effect") == effect}
    added = [{"key": key, "effect": effect, "timeAdded": timestamp(now)} for key in sorted(wanted - present)]
    return kept + added


def bears_s(pod: Mapping[str, Any], taints: Iterable[Taint]) -> float:
    """Return how many seconds a pod stays on a node with those NoExecute taints: 0 when it does not tolerate one,
    infinity when nothing limits it."""
    tolerations, limit_s = pod["spec"].get("tolerations") or (), math.inf
    for taint in taints:
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        for toleration in matching:
            if toleration.get("tolerationSeconds") is not None:
                limit_s = min(limit_s, max(0.0, float(toleration["tolerationSeconds"])))
    return limit_s


def no_execute(node: Mapping[str, Any] | None) -> list[Taint]:
    """Return the node's taints with the effect NoExecute."""
    return [taint for taint in taints_of(node or {}) if taint.get("effect") == "NoExecute"]

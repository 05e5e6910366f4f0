"""What of a live session waits that should not, and what its verdict is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import (
    Object,
    condition_of,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    node_name_of,
    phase_of,
    seconds,
)

WAITS_S = 60.0
"""How long something may wait that has all it needs, beyond the time that it is given itself: API seconds."""

_WORKLOADS: Mapping[str, tuple[str, str]] = {
    "Deployment": ("Available", "True"),
    "Job": ("Failed", "False"),
    "CronJob": ("", ""),
    "StatefulSet": ("", ""),
    "ReplicaSet": ("ReplicaFailure", "False"),
    "PersistentVolumeClaim": ("", ""),
    "TFJob": ("Failed", "False"),
}
"""Kind -> the condition by which it says that it is well, and the status that this then has."""


class SessionVerdict(Struct, frozen=True):
    """``passed`` only where no invariant is broken and nothing waits that should not; ``waiting`` are sentences."""

    violations: tuple[Mapping[str, Any], ...]
    waiting: tuple[str, ...]
    wall_s: float

    @property
    def verdict(self) -> str:
        """passed or failed."""
        return "failed" if self.violations or self.waiting else "passed"

    @property
    def reason(self) -> str:
        """One line."""
        broken = [f"invariant {each['invariant']} ({each['name']}): {each['what']}" for each in self.violations]
        found = [*broken, *self.waiting]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"{found[0]}{more}" if found else "a live session, so far"

    def as_dict(self) -> dict[str, Any]:
        """Return them as the session's server answers."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "violations": [dict(each) for each in self.violations],
            "waiting": list(self.waiting),
            "seconds": {"wall": round(self.wall_s, 3)},
        }


def waiting(nodes: Sequence[Object], others: Sequence[Object], now_s: float) -> Iterator[str]:
    """Yield what is not as it should be: nodes, pods that are bound or go, and what users made beside pods.

    A pod that no node has room for waits rightly; one that would fit is invariant 8's.
    """
    for node in nodes:
        ready = condition_of(node, "Ready") or {}
        if ready.get("status") != "True" and _old(ready.get("lastTransitionTime"), now_s):
            yield f"node {name_of(node)} is not Ready: {ready.get('reason', 'no status')}"
    for obj in others:
        what = _gone_too_long(obj, now_s) or (_pod(obj, now_s) if obj.get("kind") == "Pod" else _made(obj, now_s))
        if what:
            yield f"{obj.get('kind', 'Pod')} {key_of(obj)} {what}"


def _old(since: Any, now_s: float) -> bool:
    return bool(since) and now_s - seconds(str(since)) > WAITS_S


def _gone_too_long(obj: Object, now_s: float) -> str:
    """It is being deleted for longer than its grace, which the time of its deletion has in it."""
    at = obj["metadata"].get("deletionTimestamp")
    return f"is Terminating since {at}" if is_deleting(obj) and _old(at, now_s) else ""


def _pod(pod: Object, now_s: float) -> str:
    if not node_name_of(pod) or is_terminal(pod) or is_deleting(pod):
        return ""
    ready = condition_of(pod, "Ready") or {}
    scheduled = condition_of(pod, "PodScheduled") or {}
    since = ready.get("lastTransitionTime") or scheduled.get("lastTransitionTime")
    if ready.get("status") == "True" or not _old(since, now_s):
        return ""
    return f"is on node {node_name_of(pod)} and {phase_of(pod)}, not Ready since {since}"


def _made(obj: Object, now_s: float) -> str:
    kind, status = str(obj.get("kind")), obj.get("status") or {}
    if kind not in _WORKLOADS or not _old(obj["metadata"].get("creationTimestamp"), now_s):
        return ""
    if kind == "PersistentVolumeClaim":
        return "" if status.get("phase") == "Bound" else f"is {status.get('phase', 'Pending')}"
    if kind == "StatefulSet":
        wanted = (obj.get("spec") or {}).get("replicas", 1)
        ready = status.get("readyReplicas", 0)
        return "" if ready >= wanted else f"has {ready} of {wanted} replicas ready"
    name, well = _WORKLOADS[kind]
    condition = condition_of(obj, name) if name else None
    bad = condition is not None and condition.get("status") != well and _old(condition.get("lastTransitionTime"), now_s)
    return f"has condition {name}={condition.get('status')}: {condition.get('reason', '')}" if bad and condition else ""

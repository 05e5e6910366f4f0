"""What a Deployment's controller decides about numbers (k8s.io/kubernetes pkg/controller/deployment, …/util)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, annotations_of, name_of, seconds, uid_of

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
)
_HISTORY_LENGTH = 2000
NEVER = 2**31 - 1
"""A deadline or limit that means there is none."""


def replicas_of(workload: Object) -> int:
    """``spec.replicas``."""
    return int(workload["spec"].get("replicas", 1))


def available_of(replica_set: Object) -> int:
    """``status.availableReplicas``."""
    return int((replica_set.get("status") or {}).get("availableReplicas", 0))


def is_rolling(deployment: Object) -> bool:
    """Return whether the Deployment's strategy is RollingUpdate."""
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def scaled(value: Any, total: int, *, up: bool) -> int:
    """Return a number or a percentage of a total; rounded up or down."""
    if isinstance(value, str):
        share = int(value.removesuffix("%")) * total / 100
        return math.ceil(share) if up else math.floor(share)
    return int(value or 0)


def _fenceposts(deployment: Object) -> tuple[int, int]:
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    total = replicas_of(deployment)
    surge = scaled(rolling.get("maxSurge", "25%"), total, up=True)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), total, up=False)
    return surge, 1 if surge == unavailable == 0 else unavailable


def max_surge(deployment: Object) -> int:
    """Return how many pods there may be above the wanted number."""
    return _fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    """Return how many of the wanted pods may be missing during a roll-out."""
    total = replicas_of(deployment)
    return min(_fenceposts(deployment)[1], total) if is_rolling(deployment) and total else 0


def by_age(sets: Sequence[Object]) -> list[Object]:
    """Sort ReplicaSets by creation, the oldest first."""
    return sorted(sets, key=lambda rs: (rs["metadata"].get("creationTimestamp", ""), name_of(rs)))


def active(sets: Sequence[Object]) -> list[Object]:
    """Return those that ought to have pods."""
    return [replica_set for replica_set in sets if replicas_of(replica_set) > 0]


def _plain(value: Any) -> Any:
    """Return it without what is null or empty, which is the same as absent."""
    if isinstance(value, Mapping):
        return {key: plain for key, item in value.items() if (plain := _plain(item)) not in (None, {}, [])}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _template(workload: Object) -> Any:
    template = _plain(workload["spec"]["template"])
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def split(deployment: Object, sets: Sequence[Object]) -> tuple[Object | None, list[Object]]:
    """Return the ReplicaSet with the Deployment's template, and all others, the oldest first."""
    ordered, template = by_age(sets), _template(deployment)
    new = next((replica_set for replica_set in ordered if _template(replica_set) == template), None)
    return new, [rs for rs in ordered if new is None or uid_of(rs) != uid_of(new)]


def revision_of(replica_set: Object) -> int:
    """Return its revision, 0 where none can be read."""
    text = annotations_of(replica_set).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def next_revision(old: Sequence[Object]) -> int:
    """Return the revision of the new ReplicaSet."""
    return max((revision_of(replica_set) for replica_set in old), default=0) + 1


def size_annotations(deployment: Object) -> dict[str, str]:
    """Return what a ReplicaSet remembers of its Deployment's size."""
    total = replicas_of(deployment)
    return {DESIRED: str(total), MAXIMUM: str(total + max_surge(deployment))}


def new_annotations(deployment: Object, current: Mapping[str, str], revision: int) -> dict[str, str]:
    """Return the new ReplicaSet's annotations: the Deployment's, and its revision with those it had before."""
    copied = {key: value for key, value in annotations_of(deployment).items() if key not in _NOT_COPIED}
    made = {**current, **copied}
    before = current.get(REVISION)
    if before is None or (before.isdecimal() and int(before) < revision):
        made[REVISION] = str(revision)
        if before is not None:
            made[HISTORY] = _history(current.get(HISTORY, ""), before)
    return made


def _history(known: str, revision: str) -> str:
    parts = [*(known.split(",") if known else ()), revision]
    while len(parts) > 1 and len(",".join(parts)) > _HISTORY_LENGTH:
        parts.pop(0)
    return ",".join(parts)


def new_replicas(deployment: Object, sets: Sequence[Object], new: Object) -> int:
    """Return how many pods the new ReplicaSet may have now; ``sets``: all, the new one too."""
    total = replicas_of(deployment)
    if not is_rolling(deployment):
        return total
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    most = total + scaled(rolling.get("maxSurge", "25%"), total, up=True)
    current, own = sum(replicas_of(rs) for rs in sets), replicas_of(new)
    if current >= most:
        return own
    return own + min(most - current, total - own)


def healthy_scale_down(deployment: Object, old: Sequence[Object], new: Object) -> int:
    """Return how many old pods may go in all, given that the new ones that are not available yet do not count."""
    everything = sum(replicas_of(rs) for rs in (*old, new))
    least = replicas_of(deployment) - max_unavailable(deployment)
    return everything - least - (replicas_of(new) - available_of(new))


def unhealthy_sizes(old: Sequence[Object], most: int) -> list[tuple[Object, int]]:
    """(ReplicaSet, its new size): unavailable old pods go first, the oldest ReplicaSet's before others'."""
    plan: list[tuple[Object, int]] = []
    for replica_set in by_age(old):
        size = replicas_of(replica_set)
        count = min(most, size - available_of(replica_set))
        if most <= 0 or size == 0 or count <= 0:
            continue
        plan.append((replica_set, size - count))
        most -= count
    return plan


def available_sizes(deployment: Object, old: Sequence[Object], new: Object) -> list[tuple[Object, int]]:
    """(ReplicaSet, its new size): what old pods may go without too few being available."""
    least = replicas_of(deployment) - max_unavailable(deployment)
    spare = sum(available_of(rs) for rs in (*old, new)) - least
    plan: list[tuple[Object, int]] = []
    for replica_set in by_age(old):
        size = replicas_of(replica_set)
        if spare <= 0 or size == 0:
            continue
        count = min(size, spare)
        plan.append((replica_set, size - count))
        spare -= count
    return plan


def is_resized(deployment: Object, sets: Sequence[Object]) -> bool:
    """Return whether the Deployment's size was changed since its ReplicaSets were sized."""
    desired = [annotations_of(rs).get(DESIRED, "") for rs in active(sets)]
    return any(text.isdecimal() and int(text) != replicas_of(deployment) for text in desired)


def _is_saturated(deployment: Object, new: Object | None) -> bool:
    total = str(replicas_of(deployment))
    return new is not None and (
        str(replicas_of(new)) == annotations_of(new).get(DESIRED) == str(available_of(new)) == total
    )


def resized(deployment: Object, new: Object | None, old: Sequence[Object]) -> list[tuple[Object, int]]:
    """(ReplicaSet, its new size) after the Deployment's size was changed: in proportion, so that a roll-out goes on."""
    everything = [*old, *([new] if new is not None else [])]
    busy, total = active(everything), replicas_of(deployment)
    if len(busy) <= 1:
        latest = busy[0] if busy else new if new is not None else (by_age(old)[-1] if old else None)
        return [] if latest is None or replicas_of(latest) == total else [(latest, total)]
    if _is_saturated(deployment, new):
        return [(replica_set, 0) for replica_set in active(old)]
    return _in_proportion(deployment, busy) if is_rolling(deployment) else []


def _in_proportion(deployment: Object, busy: Sequence[Object]) -> list[tuple[Object, int]]:
    total = replicas_of(deployment)
    most = total + max_surge(deployment) if total > 0 else 0
    change = most - sum(replicas_of(rs) for rs in busy)
    ordered = by_age(busy)
    if change > 0:
        ordered.reverse()
    ordered.sort(key=lambda rs: -replicas_of(rs))
    sizes, left = [], change
    for replica_set in ordered:
        part = _part(deployment, replica_set, change, left)
        sizes.append(replicas_of(replica_set) + part)
        left -= part
    if change:
        sizes[0] = max(sizes[0] + left, 0)
    return list(zip(ordered, sizes, strict=True))


def _part(deployment: Object, replica_set: Object, change: int, left: int) -> int:
    size, total = replicas_of(replica_set), replicas_of(deployment)
    if change == 0 or left == 0:
        return 0
    before = annotations_of(replica_set).get(MAXIMUM, "")
    base = (
        int(before) if before.isdecimal() and int(before) else int((deployment.get("status") or {}).get("replicas", 0))
    )
    if total == 0:
        share = -size
    elif base == 0:
        share = 0
    else:
        share = _rounded(size * (total + max_surge(deployment)) / base) - size
    return min(share, left) if change > 0 else max(share, left)


def _rounded(value: float) -> int:
    return int(value - 0.5) if value < 0 else int(value + 0.5)


def to_clean_up(deployment: Object, old: Sequence[Object]) -> list[Object]:
    """Old ReplicaSets beyond the history that is kept, as far as they are empty."""
    limit = int(deployment["spec"].get("revisionHistoryLimit", 10))
    alive = [rs for rs in old if not rs["metadata"].get("deletionTimestamp")]
    if limit == NEVER or len(alive) <= limit:
        return []
    ordered = sorted(by_age(alive), key=revision_of)
    return [replica_set for replica_set in ordered[: len(alive) - limit] if _is_empty(replica_set)]


def _is_empty(replica_set: Object) -> bool:
    status = replica_set.get("status") or {}
    seen = int(status.get("observedGeneration", 0)) >= int(replica_set["metadata"].get("generation", 0))
    return seen and not status.get("replicas") and not replicas_of(replica_set)


def deadline_s(deployment: Object) -> int | None:
    """``spec.progressDeadlineSeconds``, None where there is none."""
    value = deployment["spec"].get("progressDeadlineSeconds")
    return None if value is None or value == NEVER else int(value)


def deadline_left_s(deployment: Object, progressing: Mapping[str, Any], now: float) -> float:
    """Return seconds until no progress is too little progress."""
    since = progressing.get("lastUpdateTime")
    return (seconds(since) if since else now) + (deadline_s(deployment) or 0) - now

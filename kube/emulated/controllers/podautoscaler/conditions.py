"""An autoscaler's conditions: in the order in which they first came, as upstream's setConditionInList keeps them. Pure.

Unlike the conditions of workloads, one that changes stays at its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mews.kube.api.objects import timestamp

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
Condition = dict[str, Any]


def with_condition(
    conditions: Sequence[Condition], kind: str, status: bool, reason: str, message: str, *, now: float
) -> list[Condition]:
    """Return the conditions with that one as said; its time of transition is ``now`` (unix seconds) if its status
    changed."""
    word = str(status)
    made = {"type": kind, "status": word, "reason": reason, "message": message}
    for index, known in enumerate(conditions):
        if known["type"] == kind:
            since = known.get("lastTransitionTime") if known["status"] == word else timestamp(now)
            changed = {**made, "lastTransitionTime": since}
            return [*conditions[:index], changed, *conditions[index + 1 :]]
    return [*conditions, {**made, "lastTransitionTime": timestamp(now)}]

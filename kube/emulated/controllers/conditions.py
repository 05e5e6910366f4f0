"""Conditions in the status of workloads. Pure: what is given is not changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Condition = Mapping[str, Any]


def find(conditions: Sequence[Condition], kind: str) -> Condition | None:
    """Return the condition of a type."""
    return next((condition for condition in conditions if condition["type"] == kind), None)


def without(conditions: Sequence[Condition], kind: str) -> list[Condition]:
    """Return all but those of a type."""
    return [condition for condition in conditions if condition["type"] != kind]


def put(conditions: Sequence[Condition], condition: Condition) -> list[Condition]:
    """Return them with that one last; as they are when it says nothing new. The time of transition stays while the
    status does."""
    current = find(conditions, condition["type"])
    if current is not None and current["status"] == condition["status"]:
        if current.get("reason") == condition.get("reason"):
            return list(conditions)
        condition = {**condition, "lastTransitionTime": current.get("lastTransitionTime")}
    return [*without(conditions, condition["type"]), condition]


def nonzero(status: Mapping[str, Any], *kept: str) -> dict[str, Any]:
    """Return a status as Go writes it: what is zero or empty is left out, but for the names kept."""
    return {key: value for key, value in status.items() if key in kept or value not in (None, 0, "", [], {})}

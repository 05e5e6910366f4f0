"""From the replicas that metrics ask for to those that are set: stabilization, rates and bounds. Pure
(pkg/controller/podautoscaler/horizontal.go normalizeDesiredReplicas and what it calls, 1.34)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

Rules = Mapping[str, Any]
"""``scaleUp`` or ``scaleDown`` of an autoscaler's ``behavior``, with the API server's defaults."""

STABILIZATION_S = 300.0
"""``--horizontal-pod-autoscaler-downscale-stabilization``."""
_UP_FACTOR, _UP_LEAST = 2, 4
"""Without a behavior, replicas at most double at a time, or come to four."""
_IN_RANGE = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_READY = ("ReadyForNewScale", "recommended size matches current size")
_UP_STABILIZED = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_STABILIZED = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
Why = tuple[str, str]
"""A condition's reason and message."""


class Moment(Struct, frozen=True):
    """So many replicas, at a time (unix seconds): a recommendation, or a change of the scale."""

    replicas: int
    at_s: float
    outdated: bool = False


class History(Struct, frozen=True):
    """What is remembered of one autoscaler: recommendations before stabilization, and how much was added and taken
    away when."""

    recommendations: tuple[Moment, ...] = ()
    ups: tuple[Moment, ...] = ()
    downs: tuple[Moment, ...] = ()


class ReplicaBounds(Struct, frozen=True):
    """What an autoscaler's spec says: its least and most replicas, and its behavior, None where it has none."""

    least: int
    most: int
    behavior: Mapping[str, Rules] | None = None


class Settled(Struct, frozen=True):
    """The replicas to set; why they are able to change, and what limited them; the history from then on.

    ``passing``: time alone may come to another number, as long as the metrics stay as they are."""

    replicas: int
    able: Why
    limited: bool
    limit: Why
    history: History
    passing: bool


def begun(history: History, current: int, now: float) -> History:
    """Return it with the replicas that are there as the first recommendation, if there is none yet."""
    return history if history.recommendations else replace(history, recommendations=(Moment(current, now),))


def settle(history: History, bounds: ReplicaBounds, *, current: int, wanted: int, now: float) -> Settled:
    """Return what becomes of ``wanted`` replicas where there are ``current``."""
    if bounds.behavior is None:
        stable, recent = _highest_recent(history.recommendations, wanted, now)
        able = _READY if stable == wanted else _DOWN_STABILIZED
        replicas, limit = _within_bounds(bounds, current, stable)
    else:
        stable, recent = _stabilized(history.recommendations, bounds.behavior, current, wanted, now)
        why = _UP_STABILIZED if wanted >= current else _DOWN_STABILIZED
        able = _READY if stable == wanted else why
        replicas, limit = _within_rates(history, bounds, current, stable, now)
    passing = stable != wanted or _is_rate(limit, bounds)
    return Settled(replicas, able, replicas != stable, limit, replace(history, recommendations=recent), passing)


def _is_rate(limit: Why, bounds: ReplicaBounds) -> bool:
    """Return whether it is a rate that limits, which lets more through later; scaling that is disabled never does."""
    direction = {_UP_LIMIT: "scaleUp", _DOWN_LIMIT: "scaleDown"}.get(limit)
    if direction is None:
        return False
    return bounds.behavior is None or bounds.behavior[direction].get("selectPolicy") != "Disabled"


def rescaled(history: History, bounds: ReplicaBounds, *, before: int, after: int, now: float) -> History:
    """Return it with a change of the scale, which the rates of a behavior count; without a behavior nothing counts
    it."""
    if bounds.behavior is None:
        return history
    if after > before:
        return replace(history, ups=_noted(history.ups, bounds.behavior["scaleUp"], after - before, now))
    return replace(history, downs=_noted(history.downs, bounds.behavior["scaleDown"], before - after, now))


def _noted(events: Sequence[Moment], rules: Rules, change: int, now: float) -> tuple[Moment, ...]:
    """Return an event that no policy looks at any more makes room for the new one."""
    longest = max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)
    marked = [replace(event, outdated=event.outdated or event.at_s < now - longest) for event in events]
    return _with(marked, Moment(change, now), [index for index, event in enumerate(marked) if event.outdated])


def _with(moments: Sequence[Moment], new: Moment, old: Sequence[int]) -> tuple[Moment, ...]:
    """The last of the old ones is replaced."""
    if not old:
        return (*moments, new)
    return (*moments[: old[-1]], new, *moments[old[-1] + 1 :])


def _highest_recent(recent: Sequence[Moment], wanted: int, now: float) -> tuple[int, tuple[Moment, ...]]:
    cutoff = now - STABILIZATION_S
    old = [index for index, each in enumerate(recent) if each.at_s < cutoff]
    highest = max([wanted, *(each.replicas for each in recent if each.at_s >= cutoff)])
    return highest, _with(recent, Moment(wanted, now), old)


def _stabilized(
    recent: Sequence[Moment], behavior: Mapping[str, Rules], current: int, wanted: int, now: float
) -> tuple[int, tuple[Moment, ...]]:
    """Return them as near to the current replicas as the recommendations of both windows let it be."""
    up_cutoff = now - behavior["scaleUp"].get("stabilizationWindowSeconds", 0)
    down_cutoff = now - behavior["scaleDown"].get("stabilizationWindowSeconds", STABILIZATION_S)
    lowest = min([wanted, *(each.replicas for each in recent if each.at_s > up_cutoff)])
    highest = max([wanted, *(each.replicas for each in recent if each.at_s > down_cutoff)])
    old = [index for index, each in enumerate(recent) if each.at_s < min(up_cutoff, down_cutoff)]
    return min(max(current, lowest), highest), _with(recent, Moment(wanted, now), old)


def _within_bounds(bounds: ReplicaBounds, current: int, wanted: int) -> tuple[int, Why]:
    fastest = max(_UP_FACTOR * current, _UP_LEAST)
    most, why = (fastest, _UP_LIMIT) if bounds.most > fastest else (bounds.most, _TOO_MANY)
    if wanted < bounds.least:
        return bounds.least, _TOO_FEW
    return (most, why) if wanted > most else (wanted, _IN_RANGE)


def _within_rates(history: History, bounds: ReplicaBounds, current: int, wanted: int, now: float) -> tuple[int, Why]:
    assert bounds.behavior is not None
    if wanted > current:
        fastest = max(_up_limit(history, bounds.behavior["scaleUp"], current, now), current)
        most, why = (fastest, _UP_LIMIT) if bounds.most > fastest else (bounds.most, _TOO_MANY)
        return (most, why) if wanted > most else (wanted, _IN_RANGE)
    if wanted < current:
        fastest = min(_down_limit(history, bounds.behavior["scaleDown"], current, now), current)
        least, why = (fastest, _DOWN_LIMIT) if bounds.least < fastest else (bounds.least, _TOO_FEW)
        return (least, why) if wanted < least else (wanted, _IN_RANGE)
    return wanted, _IN_RANGE


def _up_limit(history: History, rules: Rules, current: int, now: float) -> int:
    """Return the most replicas that the policies let there be now. A share is rounded up, or one pod would stay one."""
    limits = []
    for policy in rules.get("policies") or ():
        began = _at_start(history, policy, current, now)
        if policy["type"] == "Pods":
            limits.append(began + policy["value"])
        else:
            limits.append(math.ceil(began * (1 + policy["value"] / 100)))
    return _selected(limits, rules, current, widest=max, narrowest=min)


def _down_limit(history: History, rules: Rules, current: int, now: float) -> int:
    """Return the least replicas that the policies let there be now."""
    limits = []
    for policy in rules.get("policies") or ():
        began = _at_start(history, policy, current, now)
        if policy["type"] == "Pods":
            limits.append(began - policy["value"])
        else:
            limits.append(int(began * (1 - policy["value"] / 100)))
    return _selected(limits, rules, current, widest=min, narrowest=max)


def _selected(limits: Sequence[int], rules: Rules, current: int, *, widest: Any, narrowest: Any) -> int:
    match rules.get("selectPolicy"):
        case "Disabled":
            return current
        case "Min":
            return int(narrowest(limits))
    return int(widest(limits))


def _at_start(history: History, policy: Mapping[str, Any], current: int, now: float) -> int:
    """Return the replicas that there were when the policy's period began."""
    cutoff = now - policy["periodSeconds"]
    added, removed = (
        sum(event.replicas for event in events if event.at_s > cutoff) for events in (history.ups, history.downs)
    )
    return current - added + removed

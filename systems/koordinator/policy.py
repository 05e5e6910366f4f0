"""Which devices of a node a pod gets, and how good a node is for it: pure decisions (contract koordinator.md 2).

Hints and partitions decide first, then the choice among what is left (``node_choice``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import get_args

from mews.systems.koordinator.allocations import AllocatedFunction, Allocations, DeviceAllocation
from mews.systems.koordinator.devices import DevicePlace, NodeDeviceReport
from mews.systems.koordinator.node_choice import (
    Choice,
    NodeChoice,
    NoDevices,
    Pick,
    PickKey,
    insufficient,
    sized,
    strategy_of,
)
from mews.systems.koordinator.requests import DeviceAsk, DeviceDemand
from mews.systems.koordinator.scoring import DEFAULT_WEIGHTS, Strategy, Weights, normalized, score, weights_for
from mews.systems.koordinator.selection import Bandwidth, DeviceCandidate
from mews.systems.koordinator.usage import NodeUse

__all__ = [
    "CHOICES",
    "JOINT_VIOLATION",
    "Choice",
    "NoDevices",
    "allocate",
    "considered",
    "filtered",
    "insufficient",
    "node_score",
    "normalized",
    "quality",
]

CHOICES: tuple[Choice, ...] = get_args(Choice)
JOINT_VIOLATION = "node(s) Device Joint-Allocate rules violation"
_MOST_ANSWERS = 64


def allocate(
    ask: DeviceAsk, use: NodeUse, *, choice: Choice = "auto", weights: Weights = DEFAULT_WEIGHTS
) -> Allocations | NoDevices:
    """Return the devices that the pod would get on this node now, or why it gets none."""
    key = ask, choice, weights
    answer: Allocations | NoDevices | None = use.memo.get(key)
    if answer is None:
        if len(use.memo) >= _MOST_ANSWERS:
            use.memo.clear()
        answer = use.memo[key] = _allocate(ask, use, choice, weights)
    return answer


def filtered(
    ask: DeviceAsk, use: NodeUse, *, choice: Choice = "auto", weights: Weights = DEFAULT_WEIGHTS
) -> Allocations | NoDevices:
    """Return the devices by which a node is chosen, or why it is left out: those of what is ``considered``.

    Upstream filters without scores. Where devices must be below the same switches, other devices can then be found: a
    node that fails without scores is left out as it is there, whatever Reserve would find.
    """
    decisive = considered(ask, use.report)
    if choice in get_args(Strategy) and len(decisive.demands) > 1 and ask.joint is not None and ask.joint.same_pcie:
        unscored = _picked(NodeChoice(decisive, use, choice, weights, scored=False), decisive)
        if isinstance(unscored, NoDevices):
            return unscored
    return allocate(decisive, use, choice=choice, weights=weights)


def considered(ask: DeviceAsk, report: NodeDeviceReport) -> DeviceAsk:
    """Return what of it decides whether a node is chosen: where its Device says that others are well planned beside the
    first of types that belong together (``names.WELL_PLANNED``), that first type alone. Devices are given for all."""
    kinds = _joint_kinds(ask)
    first = ask.demand(kinds[0]) if report.well_planned and kinds else None
    return ask if first is None else DeviceAsk((first,), ask.hints)


def _joint_kinds(ask: DeviceAsk) -> list[str]:
    """Types that belong together. What is asked of all devices of a type has no choice, and takes no part."""
    kinds = ask.joint.types if ask.joint is not None else ()
    return [kind for kind in kinds if ask.demand(kind) is not None and ask.hint(kind).strategy != "ApplyForAll"]


def _allocate(ask: DeviceAsk, use: NodeUse, choice: Choice, weights: Weights) -> Allocations | NoDevices:
    picks = _picked(NodeChoice(ask, use, choice, weights), ask)
    if isinstance(picks, NoDevices):
        return picks
    return tuple(
        DeviceAllocation(each.device.type, each.minor, each.amounts, each.device.id, _functions(each))
        for pick in picks
        for each in sorted(pick.chosen, key=lambda each: each.minor)
    )


def _picked(node: NodeChoice, ask: DeviceAsk) -> list[Pick] | NoDevices:
    for demand in ask.demands:
        reason = node.shortage(demand)
        if reason is not None:
            return reason
    picks: list[Pick] = []
    together = _jointly(node, ask)
    if together is not None:
        if isinstance(together, NoDevices):
            return together
        picks += together
    for demand in ask.demands:
        if all(pick.demand.type != demand.type for pick in picks):
            pick = node.pick(demand)
            if isinstance(pick, NoDevices):
                return pick
            picks.append(pick)
    return picks


def _functions(candidate: DeviceCandidate) -> tuple[AllocatedFunction, ...]:
    return () if candidate.function is None else (candidate.function,)


# Devices that belong together


def _jointly(node: NodeChoice, ask: DeviceAsk) -> list[Pick] | NoDevices | None:
    """Devices of types that belong together; None where the pod says nothing of the kind.

    Below the same switches: each switch that gives a device of one type gives one of the others, of the others one
    per switch at least. Where they only should be near, the others are as many as the switches that have one.
    """
    kinds = _joint_kinds(ask)
    if ask.joint is None or len(kinds) < 2:
        return None
    demands = [node.sized[kind] for kind in kinds]
    if node.choice in get_args(Strategy):
        return _jointly_as_upstream(node, demands, same=ask.joint.same_pcie)
    if ask.joint.same_pcie:
        return _same_switches(node, demands)
    lead = node.pick(demands[0])
    if isinstance(lead, NoDevices):
        return lead
    near = frozenset(each.group for each in lead.chosen) - {""}
    picks = [lead]
    for demand in demands[1:]:
        each_of = near & {each.group for each in node.candidates[demand.type]}
        other = node.pick(demand, near=near)
        if each_of and len(each_of) >= demand.count:
            other = node.pick(demand, among=each_of)
        if isinstance(other, NoDevices):
            return other
        picks.append(other)
    return picks


def _jointly_as_upstream(node: NodeChoice, demands: Sequence[DeviceDemand], *, same: bool) -> list[Pick] | NoDevices:
    """Return the first type as if it were alone, the others near it (device_allocator.go, jointAllocate); ``same``:
    where they are then not below the very same switches, the node will not do."""
    lead = node.pick(demands[0])
    if isinstance(lead, NoDevices):
        return lead
    switches = _switches(lead)
    picks = [lead]
    for demand in demands[1:]:
        least = max(demand.count, len(switches)) if same else demand.count
        other = node.pick_near(demand, switches, least=least, most=max(least, len(switches)))
        if isinstance(other, NoDevices):
            return other
        if same and _switches(other) != switches:
            return NoDevices(JOINT_VIOLATION)
        picks.append(other)
    return picks


def _switches(pick: Pick) -> frozenset[str]:
    return frozenset(each.group for each in pick.chosen if each.device.place != DevicePlace())


def _same_switches(node: NodeChoice, demands: Sequence[DeviceDemand]) -> list[Pick] | NoDevices:
    groups = [frozenset(each.group for each in node.candidates[demand.type]) - {""} for demand in demands]
    common = sorted(frozenset.intersection(*groups))
    best: tuple[list[PickKey], list[Pick]] | None = None
    for size in range(1, min(len(common), demands[0].count) + 1):
        for switches in combinations(common, size):
            picks = _below(node, demands, frozenset(switches))
            if picks is not None and (best is None or [pick.key for pick in picks] < best[0]):
                best = [pick.key for pick in picks], picks
    return NoDevices(JOINT_VIOLATION) if best is None else best[1]


def _below(node: NodeChoice, demands: Sequence[DeviceDemand], switches: frozenset[str]) -> list[Pick] | None:
    picks: list[Pick] = []
    for demand in demands:
        pick = node.pick(demand, among=switches)
        if isinstance(pick, NoDevices):
            return None
        picks.append(pick)
    return picks


# How good a node is


def quality(given: Allocations, use: NodeUse) -> tuple[int, int]:
    """Slowest pair and sum over the pairs of the devices of the type of which most were given; (0, 0) of one."""
    by_type: dict[str, list[int]] = {}
    for each in given:
        by_type.setdefault(each.type, []).append(each.minor)
    if not by_type:
        return 0, 0
    kind = max(by_type, key=lambda kind: (len(by_type[kind]), kind))
    return Bandwidth(use.report.links, kind).quality(by_type[kind])


def node_score(ask: DeviceAsk, use: NodeUse, *, choice: Choice = "auto", weights: Weights = DEFAULT_WEIGHTS) -> int:
    """Upstream's score of a node (scoring.go, scoreNode): of each type, how full all devices that the pod's selector
    leaves would be with one device's share of what is asked; summed over the types, of what ``considered`` says."""
    total = 0
    for demand in considered(ask, use.report).demands:
        devices = use.report.of_type(demand.type)
        frees = [use.free(device) for device in devices]
        if not any(value for free in frees for value in free.values()):
            continue
        each = sized(ask, demand, use.report).each
        if not any(each.values()):
            continue
        hint = ask.hint(demand.type)
        chosen = [pair for pair in zip(devices, frees, strict=True) if hint.selects(pair[0].labels)]
        there: dict[str, int] = {}
        left: dict[str, int] = {}
        for device, free in chosen:
            if device.health:
                _add(there, device.resources)
                _add(left, free)
        total += score(each, there, left, weights_for(demand.type, there, weights), strategy_of(choice))
    return total


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        sums[name] = sums.get(name, 0) + value

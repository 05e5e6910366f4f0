"""Pods that are placed together or not at all, on one node, with the devices that are best for all of them. Pure.

The seed: a batch of pods gets the GPUs with the fastest transfers among them, on one node. The best set for the whole
gang comes first (slowest pair, sum over its pairs, then the least allocated and minors); it is then divided so that the
slowest pair within a pod is fastest, then the sum over the pairs within pods, then by minors in the order of the pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from mews.systems.koordinator.allocations import Allocations, DeviceAllocation
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.hints import NO_HINT
from mews.systems.koordinator.names import GPU, MIN_AVAILABLE, POD_GROUP, POD_GROUP_NAME
from mews.systems.koordinator.policy import Choice, NoDevices, allocate, insufficient
from mews.systems.koordinator.requests import DeviceAsk, DeviceDemand
from mews.systems.koordinator.scoring import DEFAULT_WEIGHTS, Weights
from mews.systems.koordinator.selection import Bandwidth, DeviceCandidate, bandwidth_of, best_set, loads
from mews.systems.koordinator.selection import Choice as SetChoice
from mews.systems.koordinator.usage import NodeUse, PodUse


class GangLabel(Struct, frozen=True):
    """What a pod's labels say of its gang."""

    name: str
    min_available: int


def gang_of(labels: Mapping[str, str]) -> GangLabel | None:
    """Return the gang that a pod's labels put it into; None for none.

    Raises InvalidRequestError.
    """
    name, text = labels.get(POD_GROUP, ""), labels.get(MIN_AVAILABLE)
    if not name and text is not None and not labels.get(POD_GROUP_NAME):
        raise InvalidRequestError(f"{MIN_AVAILABLE}: must come with the name of a gang, {POD_GROUP}")
    if not name or text is None:
        return None  # by name alone it is a PodGroup's (``mews.systems.koordinator.coscheduling``)
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise InvalidRequestError(f"{MIN_AVAILABLE}: {text!r}: must be a number from 1")
    return GangLabel(name, int(text))


class GangMember(Struct, frozen=True):
    """One pod of a gang; ``order`` is what members are sorted by."""

    uid: str
    order: str
    ask: DeviceAsk


GangPlacement = Mapping[str, Allocations]
"""Uid -> devices."""


def place_gang(
    members: Sequence[GangMember], use: NodeUse, *, choice: Choice = "auto", weights: Weights = DEFAULT_WEIGHTS
) -> GangPlacement | NoDevices:
    """Devices for all of them on this node, or why there are none."""
    ordered = sorted(members, key=lambda member: (member.order, member.uid))
    if _whole_gpus_alone(ordered, use):
        return _divide(ordered, use, choice)
    placed = _one_by_one(sorted(ordered, key=_size, reverse=True), use, choice, weights)
    return NoDevices(insufficient(ordered[0].ask.demands[0].type)) if placed is None else placed


def _whole_gpus_alone(members: Sequence[GangMember], use: NodeUse) -> bool:
    """Return whether each asks for nothing but whole GPUs, of any kind."""
    return not use.report.honours_partitions and all(
        len(member.ask.demands) == 1
        and member.ask.demands[0].type == GPU
        and member.ask.demands[0].whole_devices
        and member.ask.hint(GPU) == NO_HINT
        and member.ask.partition is None
        for member in members
    )


# Whole GPUs, jointly


def _divide(members: Sequence[GangMember], use: NodeUse, choice: Choice) -> GangPlacement | NoDevices:
    demands = [member.ask.demands[0] for member in members]
    counts = [demand.count for demand in demands]
    bandwidth = bandwidth_of(use.report, GPU)
    free = _free_gpus(demands, use)
    how: SetChoice = choice if choice != "auto" else "bandwidth" if bandwidth and sum(counts) > 1 else "leastAllocated"
    union = best_set(free, sum(counts), how, bandwidth)
    if union is None:
        return NoDevices(insufficient(GPU), hopeless=len(use.report.of_type(GPU)) < sum(counts))
    shares = _Division(union, counts, bandwidth).best() if how == "bandwidth" else _in_turn(union, counts)
    return {
        member.uid: tuple(_given(demand, each) for each in share)
        for member, demand, share in zip(members, demands, shares, strict=True)
    }


def _free_gpus(demands: Sequence[DeviceDemand], use: NodeUse) -> list[DeviceCandidate]:
    """GPUs on which any of the pods could have its share."""
    found = []
    for device in use.report.of_type(GPU):
        amounts = [demand.on(device) for demand in demands]
        free = use.free(device)
        if not device.health or use.exclusive(device):
            continue
        if all(each is not None and all(free.get(n, 0) >= v for n, v in each.items()) for each in amounts):
            asked = amounts[0] or {}
            found.append(DeviceCandidate(device, asked, loads(asked, device, use.used.get((GPU, device.minor), {}))))
    return found


def _given(demand: DeviceDemand, candidate: DeviceCandidate) -> DeviceAllocation:
    amounts = demand.on(candidate.device)
    assert amounts is not None, "it was asked of every GPU of the set"
    return DeviceAllocation(GPU, candidate.minor, amounts, candidate.device.id)


def _in_turn(union: Sequence[DeviceCandidate], counts: Sequence[int]) -> list[tuple[DeviceCandidate, ...]]:
    shares, start = [], 0
    for count in counts:
        shares.append(tuple(union[start : start + count]))
        start += count
    return shares


class _Division:
    """The best division of a set among pods, by branch and bound."""

    def __init__(self, union: Sequence[DeviceCandidate], counts: Sequence[int], bandwidth: Bandwidth) -> None:
        self._devices = sorted(union, key=lambda each: each.minor)
        self._counts, self._bandwidth = counts, bandwidth
        minors = [each.minor for each in self._devices]
        self._fastest = max((bandwidth.between(a, b) for a, b in combinations(minors, 2)), default=0)
        self._pairs_from = [sum(n * (n - 1) // 2 for n in counts[i:]) for i in range(len(counts) + 1)]
        self._best: list[tuple[int, ...]] | None = None
        self._best_key = (-1, -1)

    def best(self) -> list[tuple[DeviceCandidate, ...]]:
        self._give([], tuple(range(len(self._devices))), None, 0)
        assert self._best is not None, "the first division is one"
        return [tuple(self._devices[index] for index in share) for share in self._best]

    def _give(self, shares: list[tuple[int, ...]], left: tuple[int, ...], slowest: int | None, total: int) -> None:
        done = len(shares)
        if done == len(self._counts):
            key = (self._fastest if slowest is None else slowest), total
            if key > self._best_key:
                self._best, self._best_key = list(shares), key
            return
        most = (self._fastest if slowest is None else slowest), total + self._pairs_from[done] * self._fastest
        if most <= self._best_key:
            return
        for share in combinations(left, self._counts[done]):
            if done and self._counts[done] == self._counts[done - 1] and share[0] < shares[-1][0]:
                continue  # pods that ask for as many are alike: the first gets the lower minors
            minimum, more = self._bandwidth.quality([self._devices[index].minor for index in share])
            now = slowest if len(share) < 2 else minimum if slowest is None else min(slowest, minimum)
            rest = tuple(index for index in left if index not in share)
            self._give([*shares, share], rest, now, total + more)


# Anything else


def _size(member: GangMember) -> tuple[int, int]:
    return (
        sum(demand.count for demand in member.ask.demands),
        sum(value for demand in member.ask.demands for value in demand.each.values()),
    )


def _one_by_one(members: Sequence[GangMember], use: NodeUse, choice: Choice, weights: Weights) -> GangPlacement | None:
    """Return the largest first, going back where one finds nothing; complete for pods that ask for part of one device
    each."""
    if not members:
        return {}
    first, *rest = members
    for given in _ways(first.ask, use, choice, weights):
        exclusive = {kind: first.ask.hint(kind).exclusive for kind in {each.type for each in given}}
        placed = _one_by_one(rest, use.plus(PodUse(first.uid, first.order, given, exclusive)), choice, weights)
        if placed is not None:
            return {first.uid: given, **placed}
    return None


def _ways(ask: DeviceAsk, use: NodeUse, choice: Choice, weights: Weights) -> Iterator[Allocations]:
    """Yield how a pod could be served: as it would be alone, then on each other device that is not like one tried."""
    best = allocate(ask, use, choice=choice, weights=weights)
    if isinstance(best, NoDevices):
        return
    yield best
    if len(best) != 1 or len(ask.demands) != 1:
        return
    kind, tried = ask.demands[0].type, {_state(best[0], use)}
    for device in use.report.of_type(kind):
        only = replace(use.report, devices=tuple(d for d in use.report.devices if d == device or d.type != kind))
        given = allocate(ask, NodeUse(only, use.pods, use.used, use.users), choice=choice, weights=weights)
        if not isinstance(given, NoDevices) and _state(given[0], use) not in tried:
            tried.add(_state(given[0], use))
            yield given


def _state(allocation: DeviceAllocation, use: NodeUse) -> tuple[tuple[str, int], ...]:
    """Return what is free of the device: two devices of which as much is free are alike."""
    device = next(d for d in use.report.of_type(allocation.type) if d.minor == allocation.minor)
    return tuple(sorted(use.free(device).items()))

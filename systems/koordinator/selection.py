"""Which set of devices is best: the choice alone, among devices of which each would do. Pure.

Four ways (contract koordinator.md section 2): by minor as the seed says; the least or the most allocated first, then
by minor; by bandwidth: the set whose slowest pair is fastest, of those the one with the largest sum over its pairs, of
those the least allocated, then by minor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from mews.systems.koordinator.allocations import AllocatedFunction
from mews.systems.koordinator.devices import Amounts, DeviceLink, DevicePlace, NodeDevice, NodeDeviceReport
from mews.systems.koordinator.names import GPU

Choice = Literal["minor", "leastAllocated", "mostAllocated", "bandwidth"]


@dataclass(frozen=True, slots=True)
class DeviceCandidate:
    """A device that would do. ``load``: how much of it is used, in millionths, of what is asked; ``group``: the switch
    that it is below, "" for none."""

    device: NodeDevice
    amounts: Amounts = field(default_factory=dict, hash=False)
    load: int = 0
    function: AllocatedFunction | None = None

    @property
    def minor(self) -> int:
        """The device's."""
        return self.device.minor

    @property
    def group(self) -> str:
        """The switch that it is below."""
        return self.device.place.pcie


SetKey = tuple[int, int, tuple[tuple[int, int], ...]]
"""What sets of devices are compared by, the smaller the better: slowest pair and sum of pairs, both negative (0 where
they do not count), then (load, minor) in order."""


class Bandwidth:
    """MB/s between the devices of one type; 0 of a pair that no link names."""

    def __init__(self, links: Sequence[DeviceLink], kind: str) -> None:
        self._of = {link.minors: link.bandwidth for link in links if link.type == kind}

    def __bool__(self) -> bool:
        return bool(self._of)

    def between(self, one: int, other: int) -> int:
        """Return that of a pair of minors."""
        return self._of.get((one, other) if one < other else (other, one), 0)

    def quality(self, minors: Sequence[int]) -> tuple[int, int]:
        """Return those of a set: its slowest pair, and the sum over its pairs; (0, 0) of a single device."""
        pairs = [self.between(a, b) for a, b in combinations(minors, 2)]
        return (min(pairs), sum(pairs)) if pairs else (0, 0)


def bandwidth_of(report: NodeDeviceReport, kind: str) -> Bandwidth:
    """Between the devices of one type, as their links say; between GPUs without any, by their places, where all of them
    are known: below one switch, on one NUMA node, or neither. Only the order of these three means something."""
    found = Bandwidth(report.links, kind)
    devices = report.of_type(kind)
    if found or kind != GPU or not all(device.place.pcie for device in devices):
        return found
    pairs = combinations(devices, 2)
    return Bandwidth([DeviceLink(kind, (a.minor, b.minor), _nearness(a.place, b.place)) for a, b in pairs], kind)


def _nearness(one: DevicePlace, other: DevicePlace) -> int:
    if one.numa != other.numa:
        return 1
    return 3 if one.pcie == other.pcie else 2


def set_key(chosen: Sequence[DeviceCandidate], choice: Choice, bandwidth: Bandwidth) -> SetKey:
    """Return what this set is compared by."""
    order = tuple(sorted(_order(each, choice) for each in chosen))
    if choice != "bandwidth":
        return 0, 0, order
    slowest, total = bandwidth.quality([each.minor for each in chosen])
    return -slowest, -total, order


def _order(candidate: DeviceCandidate, choice: Choice) -> tuple[int, int]:
    load = {"minor": 0, "mostAllocated": -candidate.load}.get(choice, candidate.load)
    return load, candidate.minor


def best_set(
    candidates: Sequence[DeviceCandidate],
    count: int,
    choice: Choice,
    bandwidth: Bandwidth,
    cover: Collection[str] = (),
) -> tuple[DeviceCandidate, ...] | None:
    """Return the best set of so many; each switch of ``cover`` must have one of it. None where there is none."""
    if count < max(len(cover), 1) or len(candidates) < count:
        return None
    ordered = sorted(candidates, key=lambda each: _order(each, choice))
    if choice == "bandwidth" and count > 1:
        return _fastest(ordered, count, bandwidth, frozenset(cover))
    # Sets with a member of each switch are the bases of a matroid: taking the best of each, then the best of the rest,
    # is optimal.
    first = {}
    for each in ordered:
        if each.group in cover and each.group not in first:
            first[each.group] = each
    if len(first) < len(frozenset(cover)):
        return None
    chosen = list(first.values())
    chosen += [each for each in ordered if each not in chosen][: count - len(chosen)]
    return tuple(sorted(chosen, key=lambda each: _order(each, choice)))


def _fastest(
    ordered: Sequence[DeviceCandidate], count: int, bandwidth: Bandwidth, cover: frozenset[str]
) -> tuple[DeviceCandidate, ...] | None:
    """Return the best set by bandwidth: with links slower than a bound left out, the bound as high as leaves any
    set."""
    size = len(ordered)
    speed = [[bandwidth.between(a.minor, b.minor) for b in ordered] for a in ordered]
    bounds = sorted({speed[a][b] for a in range(size) for b in range(a)}, reverse=True)
    for bound in bounds:
        search = _CliqueSearch(speed, bound, count, [cover & {each.group} for each in ordered], cover)
        found = search.best()
        if found is not None:
            return tuple(ordered[index] for index in found)
    return None


class _CliqueSearch:
    """Sets of so many devices with no pair slower than the bound: that with the largest sum, of equals the first in
    lexical order."""

    def __init__(
        self,
        speed: Sequence[Sequence[int]],
        bound: int,
        count: int,
        groups: Sequence[frozenset[str]],
        cover: frozenset[str],
    ) -> None:
        size = len(speed)
        self._speed, self._count, self._groups, self._cover = speed, count, groups, cover
        self._near = [sum(1 << b for b in range(size) if b != a and speed[a][b] >= bound) for a in range(size)]
        self._fastest = [max((s for b, s in enumerate(row) if b != a), default=0) for a, row in enumerate(speed)]
        self._best: tuple[int, ...] | None = None
        self._best_sum = -1

    def best(self) -> tuple[int, ...] | None:
        self._extend((), (1 << len(self._speed)) - 1, [0] * len(self._speed), 0, frozenset())
        return self._best

    def _extend(
        self, chosen: tuple[int, ...], open_: int, gain: Sequence[int], total: int, covered: frozenset[str]
    ) -> None:
        """``open_``: devices after the last chosen one that are near all of them; ``gain``: what each would add."""
        missing = self._count - len(chosen)
        if not missing:
            if total > self._best_sum and covered >= self._cover:
                self._best, self._best_sum = chosen, total
            return
        left = [index for index in range(len(self._speed)) if open_ >> index & 1]
        if len(left) < missing or len(self._cover - covered) > missing:
            return
        # No set from here can have more than: the best gains, and half of the fastest link to each other new one.
        halves = sorted((2 * gain[i] + (missing - 1) * self._fastest[i] for i in left), reverse=True)
        if 2 * total + sum(halves[:missing]) <= 2 * self._best_sum:
            return
        for index in left:
            above = self._near[index] & ~((2 << index) - 1) & open_
            row = self._speed[index]
            more = [value + row[other] for other, value in enumerate(gain)]
            self._extend((*chosen, index), above, more, total + gain[index], covered | self._groups[index])


def loads(amounts: Amounts, device: NodeDevice, used: Mapping[str, int]) -> int:
    """Return how much of what is asked of a device is used already: the mean over the resources asked, in
    millionths."""
    names = [name for name, value in amounts.items() if value and device.resources.get(name)]
    if not names:
        return 0
    return sum(min(used.get(n, 0), device.resources[n]) * 1_000_000 // device.resources[n] for n in names) // len(names)

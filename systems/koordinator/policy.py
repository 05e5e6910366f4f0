"""Which devices of a node a pod gets: pure decisions (contract koordinator.md section 2).

Hints and partitions decide first, then the choice among what is left (``selection``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal, get_args

from msgspec import Struct

from mews.systems.koordinator.allocations import AllocatedFunction, Allocations, DeviceAllocation
from mews.systems.koordinator.devices import GpuPartition, NodeDevice
from mews.systems.koordinator.hints import DeviceHint
from mews.systems.koordinator.names import GPU
from mews.systems.koordinator.requests import DeviceAsk, DeviceDemand
from mews.systems.koordinator.selection import (
    Bandwidth,
    DeviceCandidate,
    SetKey,
    bandwidth_of,
    best_set,
    loads,
    set_key,
)
from mews.systems.koordinator.selection import Choice as SetChoice
from mews.systems.koordinator.usage import NodeUse

Choice = Literal["auto", "minor", "leastAllocated", "bandwidth"]
"""How one of several sets is chosen. auto: by bandwidth more than one device of a type whose links are known, or GPUs
whose places are, the least allocated otherwise."""
_MOST_ANSWERS = 64
CHOICES: tuple[Choice, ...] = get_args(Choice)

JOINT_VIOLATION = "node(s) Device Joint-Allocate rules violation"
NO_PARTITIONS = "node(s) missing GPU Partition Table"
NO_SUCH_PARTITION = "node(s) Unsupported number of GPU requests"
NO_PARTITION = "Insufficient Partitioned GPU Devices"


def insufficient(kind: str) -> str:
    """Why a node is left out that has too few devices of a type."""
    return f"Insufficient {kind} devices"


class NoDevices(Struct, frozen=True):
    """Why a node cannot serve a pod. ``hopeless``: not if all other pods went, either."""

    reason: str
    hopeless: bool = False


PickKey = tuple[int, tuple[int, ...], SetKey]
"""How good a partition it is (0: none at all), what partitions it leaves, and what sets are compared by."""


class _Pick(Struct, frozen=True):
    """The devices for one demand, and what they are compared by."""

    demand: DeviceDemand
    chosen: tuple[DeviceCandidate, ...]
    key: PickKey
    """The smaller the better."""


def allocate(ask: DeviceAsk, use: NodeUse, *, choice: Choice = "auto") -> Allocations | NoDevices:
    """The devices that the pod would get on this node now, or why it gets none."""
    answer: Allocations | NoDevices | None = use.memo.get((ask, choice))
    if answer is None:
        if len(use.memo) >= _MOST_ANSWERS:
            use.memo.clear()
        answer = use.memo[ask, choice] = _allocate(ask, use, choice)
    return answer


def _allocate(ask: DeviceAsk, use: NodeUse, choice: Choice) -> Allocations | NoDevices:
    node = _NodeChoice(ask, use, choice)
    for demand in ask.demands:
        reason = node.shortage(demand)
        if reason is not None:
            return reason
    picks: list[_Pick] = []
    together = node.jointly()
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
    return tuple(
        DeviceAllocation(each.device.type, each.minor, each.amounts, each.device.id, _functions(each))
        for pick in picks
        for each in sorted(pick.chosen, key=lambda each: each.minor)
    )


def _functions(candidate: DeviceCandidate) -> tuple[AllocatedFunction, ...]:
    return () if candidate.function is None else (candidate.function,)


class _NodeChoice:
    """One pod's look at one node."""

    def __init__(self, ask: DeviceAsk, use: NodeUse, choice: Choice) -> None:
        self._ask, self._use, self._choice = ask, use, choice
        self._sized = {demand.type: self._size(demand) for demand in ask.demands}
        self._candidates = {kind: self._eligible(demand) for kind, demand in self._sized.items()}
        self._bandwidth = {kind: bandwidth_of(use.report, kind) for kind in self._sized}

    def _applies_to_all(self, demand: DeviceDemand | None) -> bool:
        """Whether so much is asked of every device of the type."""
        return (
            demand is not None
            and (demand.total <= 100 or demand.type == GPU)
            and self._ask.hint(demand.type).strategy == "ApplyForAll"
        )

    def _size(self, demand: DeviceDemand) -> DeviceDemand:
        """How many devices a hint makes of an amount."""
        hint = self._ask.hint(demand.type)
        if demand.total > 100 and demand.type != GPU:
            return demand
        if self._applies_to_all(demand):
            all_of = [d for d in self._use.report.of_type(demand.type) if d.health and hint.selects(d.labels)]
            return replace(demand, count=len(all_of))
        if hint.strategy == "RequestsAsCount":
            amount = 100 if hint.exclusive == "DeviceLevel" else 1
            return replace(demand, count=demand.total, each=dict.fromkeys(demand.each, amount))
        return demand

    def _eligible(self, demand: DeviceDemand) -> tuple[DeviceCandidate, ...]:
        hint = self._ask.hint(demand.type)
        found = (self._candidate(demand, hint, device) for device in self._use.report.of_type(demand.type))
        return tuple(each for each in found if each is not None)

    def _candidate(self, demand: DeviceDemand, hint: DeviceHint, device: NodeDevice) -> DeviceCandidate | None:
        if not device.health or not hint.selects(device.labels) or not self._may_share(hint, device):
            return None
        amounts = demand.on(device)
        free = self._use.free(device)
        if amounts is None or any(free.get(name, 0) < value for name, value in amounts.items()):
            return None
        function = None
        if hint.vf_selector is not None:
            function = self._free_function(hint, device)
            if function is None:
                return None
        return DeviceCandidate(
            device, amounts, loads(amounts, device, self._use.used.get((device.type, device.minor), {})), function
        )

    def _may_share(self, hint: DeviceHint, device: NodeDevice) -> bool:
        """Whether nobody's wish to be alone is in the way, this pod's or another's."""
        if self._use.exclusive(device) or (hint.exclusive and self._used(device)):
            return False
        if not device.place.pcie:
            return hint.exclusive != "PCIeLevel"  # nobody knows who is near
        near = [d for d in self._use.report.of_type(device.type) if d.place.pcie == device.place.pcie]
        if any("PCIeLevel" in self._use.exclusive(other) for other in near):
            return False
        return hint.exclusive != "PCIeLevel" or not any(self._used(other) for other in near)

    def _used(self, device: NodeDevice) -> bool:
        return (device.type, device.minor) in self._use.users

    def _free_function(self, hint: DeviceHint, device: NodeDevice) -> AllocatedFunction | None:
        taken = self._use.functions(device)
        free = (f for f in device.functions if not {f.bus or f.minor, f.minor} & taken)
        first = min((f for f in free if hint.selects_function(f.labels)), key=lambda f: (f.bus, f.minor), default=None)
        return None if first is None else AllocatedFunction(first.minor, first.bus)

    # ------------------------------------------------------------------------------------------------------ choosing

    def shortage(self, demand: DeviceDemand) -> NoDevices | None:
        """Why there are too few devices of a type, whatever the choice."""
        sized = self._sized[demand.type]
        if sized.count and len(self._candidates[demand.type]) >= sized.count:
            return None
        hint = self._ask.hint(demand.type)
        there = [d for d in self._use.report.of_type(demand.type) if d.health and hint.selects(d.labels)]
        return NoDevices(insufficient(demand.type), hopeless=len(there) < max(sized.count, 1))

    def choice_of(self, kind: str, count: int) -> SetChoice:
        """How devices of that type are chosen."""
        if self._choice != "auto":
            return self._choice
        return "bandwidth" if count > 1 and self._bandwidth[kind] else "leastAllocated"

    def pick(
        self, demand: DeviceDemand, *, among: frozenset[str] | None = None, near: frozenset[str] = frozenset()
    ) -> _Pick | NoDevices:
        """The devices for one demand. ``among``: only below these switches, and some below each; ``near``: rather below
        these."""
        sized = self._sized[demand.type]
        candidates = self._candidates[demand.type]
        count = sized.count
        cover: frozenset[str] = frozenset()
        if among is not None:
            candidates = tuple(each for each in candidates if each.group in among)
            count, cover = max(count, len(among)), among
        if demand.type == GPU and sized.whole_devices:
            picked = self._by_partition(sized, candidates, cover)
            if picked is not None:
                return picked
        choice = self.choice_of(demand.type, count)
        bandwidth = self._bandwidth[demand.type]
        best: tuple[SetKey, tuple[DeviceCandidate, ...]] | None = None
        for scope in self._scopes(self._ask.hint(demand.type), candidates):
            found = self._nearest(scope, count, choice, bandwidth, cover, near)
            if found is not None and (best is None or set_key(found, choice, bandwidth) < best[0]):
                best = set_key(found, choice, bandwidth), found
        if best is None:
            return NoDevices(insufficient(demand.type))
        return _Pick(sized, best[1], (0, (), best[0]))

    @staticmethod
    def _nearest(
        scope: Sequence[DeviceCandidate],
        count: int,
        choice: SetChoice,
        bandwidth: Bandwidth,
        cover: frozenset[str],
        near: frozenset[str],
    ) -> tuple[DeviceCandidate, ...] | None:
        close = [each for each in scope if each.group in near]
        if not close or cover:
            return best_set(scope, count, choice, bandwidth, cover)
        if len(close) >= count:
            return best_set(close, count, choice, bandwidth)
        rest = best_set([each for each in scope if each.group not in near], count - len(close), choice, bandwidth)
        return None if rest is None else (*close, *rest)

    def _scopes(self, hint: DeviceHint, candidates: Sequence[DeviceCandidate]) -> Iterator[Sequence[DeviceCandidate]]:
        """The sets within one of which all devices must be."""
        if hint.scope not in ("Device", "PCIe", "NUMANode"):
            yield candidates
            return
        groups: dict[tuple[str, int], list[DeviceCandidate]] = {}
        for each in candidates:
            place = each.device.place
            if hint.scope == "Device":
                groups[each.device.type, each.minor] = [each]
            elif hint.scope == "PCIe" and place.pcie:
                groups.setdefault((place.pcie, 0), []).append(each)
            elif hint.scope == "NUMANode" and place.numa >= 0:
                groups.setdefault(("", place.numa), []).append(each)
        yield from (groups[name] for name in sorted(groups))

    # ---------------------------------------------------------------------------------------------------- partitions

    def _by_partition(
        self, demand: DeviceDemand, candidates: Sequence[DeviceCandidate], cover: frozenset[str]
    ) -> _Pick | NoDevices | None:
        """The best partition, by score first; None where partitions do not decide."""
        report, spec = self._use.report, self._ask.partition
        must = spec is not None or report.honours_partitions
        if not report.partitions:
            return NoDevices(NO_PARTITIONS, hopeless=True) if must else None
        fitting = [each for each in report.partitions if len(each.minors) == demand.count]
        if spec is not None and spec.restricted and fitting:
            highest = max(each.score for each in fitting)
            fitting = [each for each in fitting if each.score == highest]
        by_minor = {each.minor: each for each in candidates if not self._used(each.device)}
        bandwidth = self._bandwidth[GPU]
        choice = self.choice_of(GPU, demand.count)
        best: tuple[PickKey, tuple[DeviceCandidate, ...]] | None = None
        unused = {d.minor for d in report.of_type(GPU) if d.health and not self._used(d)}
        for partition in fitting:
            chosen = self._of_partition(partition, by_minor, cover)
            if chosen is None:
                continue
            left = _left(report.partitions, unused - set(partition.minors), demand.count)
            key = -1 - max(partition.score, 0), left, set_key(chosen, choice, bandwidth)
            if best is None or key < best[0]:
                best = key, chosen
        if best is not None:
            return _Pick(demand, best[1], best[0])
        return NoDevices(NO_PARTITION if fitting else NO_SUCH_PARTITION, hopeless=not fitting) if must else None

    def _of_partition(
        self, partition: GpuPartition, by_minor: Mapping[int, DeviceCandidate], cover: frozenset[str]
    ) -> tuple[DeviceCandidate, ...] | None:
        spec = self._ask.partition
        if spec is not None and spec.bandwidth > partition.bandwidth:
            return None
        if not all(minor in by_minor for minor in partition.minors):
            return None
        chosen = tuple(by_minor[minor] for minor in partition.minors)
        if not cover <= {each.group for each in chosen}:
            return None
        scopes = self._scopes(self._ask.hint(GPU), chosen)
        return chosen if any(len(scope) == len(chosen) for scope in scopes) else None

    # --------------------------------------------------------------------------------------------------------- joint

    def jointly(self) -> list[_Pick] | NoDevices | None:
        """Devices of types that belong together; None where the pod says nothing of the kind.

        Below the same switches: each switch that gives a device of one type gives one of the others, of the others one
        per switch at least. Where they only should be near, the others are as many as the switches that have one. What
        is asked of all devices of a type has no choice, and takes no part.
        """
        joint = self._ask.joint
        kinds = [kind for kind in (joint.types if joint else ()) if kind in self._sized]
        demands = [self._sized[kind] for kind in kinds if not self._applies_to_all(self._ask.demand(kind))]
        if joint is None or len(demands) < 2:
            return None
        if joint.same_pcie:
            return self._same_switches(demands)
        lead = self.pick(demands[0])
        if isinstance(lead, NoDevices):
            return lead
        near = frozenset(each.group for each in lead.chosen) - {""}
        picks = [lead]
        for demand in demands[1:]:
            each_of = near & {each.group for each in self._candidates[demand.type]}
            other = self.pick(demand, near=near)
            if each_of and len(each_of) >= demand.count:
                other = self.pick(demand, among=each_of)
            if isinstance(other, NoDevices):
                return other
            picks.append(other)
        return picks

    def _same_switches(self, demands: Sequence[DeviceDemand]) -> list[_Pick] | NoDevices:
        groups = [frozenset(each.group for each in self._candidates[demand.type]) - {""} for demand in demands]
        common = sorted(frozenset.intersection(*groups))
        best: tuple[list[PickKey], list[_Pick]] | None = None
        for size in range(1, min(len(common), demands[0].count) + 1):
            for switches in combinations(common, size):
                picks = self._below(demands, frozenset(switches))
                if picks is not None and (best is None or [pick.key for pick in picks] < best[0]):
                    best = [pick.key for pick in picks], picks
        return NoDevices(JOINT_VIOLATION) if best is None else best[1]

    def _below(self, demands: Sequence[DeviceDemand], switches: frozenset[str]) -> list[_Pick] | None:
        picks: list[_Pick] = []
        for demand in demands:
            pick = self.pick(demand, among=switches)
            if isinstance(pick, NoDevices):
                return None
            picks.append(pick)
        return picks


def _left(partitions: Sequence[GpuPartition], unused: set[int], count: int) -> tuple[int, ...]:
    """What partitions of as many GPUs and more are still whole among these, the largest first, negative: by the sum of
    their scores, then by their number. Small pods go where large ones could not any more."""
    found: list[int] = []
    for size in sorted({len(each.minors) for each in partitions if len(each.minors) >= max(count, 2)}, reverse=True):
        whole = [each.score for each in partitions if len(each.minors) == size and unused >= set(each.minors)]
        found += [-sum(whole), -len(whole)]
    return tuple(found)


ALL_FREE = 100
"""The most that ``free_share`` says."""


def quality(given: Allocations, use: NodeUse) -> tuple[int, int]:
    """Slowest pair and sum over the pairs of the devices of the type of which most were given; (0, 0) of one."""
    by_type: dict[str, list[int]] = {}
    for each in given:
        by_type.setdefault(each.type, []).append(each.minor)
    if not by_type:
        return 0, 0
    kind = max(by_type, key=lambda kind: (len(by_type[kind]), kind))
    return Bandwidth(use.report.links, kind).quality(by_type[kind])


def free_share(given: Allocations, use: NodeUse) -> int:
    """How much of the node's healthy devices of the types that were given stays free after it: 0 to 100."""
    shares = []
    for kind in sorted({each.type for each in given}):
        for device in use.report.of_type(kind):
            if not device.health:
                continue
            more = [each.resources for each in given if (each.type, each.minor) == (kind, device.minor)]
            free = use.free(device)
            shares += [
                max(free.get(name, 0) - sum(one.get(name, 0) for one in more), 0) * ALL_FREE // total
                for name, total in device.resources.items()
                if total
            ]
    return sum(shares) // len(shares) if shares else 0

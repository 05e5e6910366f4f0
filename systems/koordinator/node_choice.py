"""Which devices of one type a pod gets on one node: pure decisions (contract koordinator.md section 2).

With ``leastAllocated`` and ``mostAllocated`` they are upstream's (v1.6.0, pkg/scheduler/plugins/deviceshare:
device_allocator.go, allocator_gpu.go): partitions, then the tree of the node with partly used parts first, then scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from msgspec import Struct

from mews.systems.koordinator.allocations import AllocatedFunction
from mews.systems.koordinator.devices import GpuPartition, NodeDevice, NodeDeviceReport
from mews.systems.koordinator.hints import DeviceHint
from mews.systems.koordinator.names import GPU
from mews.systems.koordinator.partition_tables import left_whole
from mews.systems.koordinator.requests import DeviceAsk, DeviceDemand
from mews.systems.koordinator.scoring import Strategy, Weights, score, weights_for
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
from mews.systems.koordinator.topology import LEVELS, GpuNeed, minors_in, tree_of
from mews.systems.koordinator.usage import NodeUse

Choice = Literal["auto", "minor", "leastAllocated", "mostAllocated", "bandwidth"]
"""How one of several sets is chosen. auto: by bandwidth more than one device of a type whose links are known, or GPUs
whose places are, the least allocated otherwise."""

NO_PARTITIONS = "node(s) missing GPU Partition Table"
NO_SUCH_PARTITION = "node(s) Unsupported number of GPU requests"
NO_PARTITION = "Insufficient Partitioned GPU Devices"
NO_TREE = "node(s) missing GPU Device Topology Tree"
NO_SCOPE = "Insufficient Topology Scoped GPU Devices"
SEVERAL_PARTS = "node(s) Unsupported Multi-Shared GPU"


def insufficient(kind: str) -> str:
    """Return why a node is left out that has too few devices of a type."""
    return f"Insufficient {kind} devices"


class NoDevices(Struct, frozen=True):
    """Why a node cannot serve a pod. ``hopeless``: not if all other pods went, either."""

    reason: str
    hopeless: bool = False


PickKey = tuple[int, int, SetKey]
"""How good a partition it is (0: none at all), what partitions it leaves, and what sets are compared by."""


class Pick(Struct, frozen=True):
    """The devices for one demand, and what they are compared by."""

    demand: DeviceDemand
    chosen: tuple[DeviceCandidate, ...]
    key: PickKey
    """The smaller the better."""


def strategy_of(choice: Choice) -> Strategy:
    """Return it by what a choice scores devices and nodes; upstream's default where it says nothing of it."""
    return "mostAllocated" if choice == "mostAllocated" else "leastAllocated"


def sized(ask: DeviceAsk, demand: DeviceDemand, report: NodeDeviceReport) -> DeviceDemand:
    """Return how many devices a hint makes of an amount. All devices of a type are those that are ill, too, as
    upstream."""
    hint = ask.hint(demand.type)
    if demand.total > 100 and demand.type != GPU:
        return demand
    if hint.strategy == "ApplyForAll":
        all_of = [device for device in report.of_type(demand.type) if hint.selects(device.labels)]
        return replace(demand, count=len(all_of))
    if hint.strategy == "RequestsAsCount":
        amount = 100 if hint.exclusive == "DeviceLevel" else 1
        return replace(demand, count=demand.total, each=dict.fromkeys(demand.each, amount))
    return demand


class NodeChoice:
    """One pod's look at one node. ``scored``: whether scores of devices count, as they do not in upstream's Filter."""

    def __init__(self, ask: DeviceAsk, use: NodeUse, choice: Choice, weights: Weights, *, scored: bool = True) -> None:
        self._ask, self._use, self.choice = ask, use, choice
        self._weights, self._scored = weights, scored
        self.sized = {demand.type: sized(ask, demand, use.report) for demand in ask.demands}
        self.candidates = {kind: self._eligible(demand) for kind, demand in self.sized.items()}
        self.bandwidth = {kind: bandwidth_of(use.report, kind) for kind in self.sized}

    def _eligible(self, demand: DeviceDemand) -> tuple[DeviceCandidate, ...]:
        hint = self._ask.hint(demand.type)
        found = (self._candidate(demand, hint, device) for device in self._use.report.of_type(demand.type))
        return tuple(each for each in found if each is not None)

    def _candidate(self, demand: DeviceDemand, hint: DeviceHint, device: NodeDevice) -> DeviceCandidate | None:
        if not device.health or not hint.selects(device.labels) or not self._may_share(hint, device):
            return None
        amounts = demand.on(device)
        free = self._use.free(device)
        if (
            amounts is None
            or not any(free.values())
            or any(free.get(name, 0) < value for name, value in amounts.items())
        ):
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
        """Return whether nobody's wish to be alone is in the way, this pod's or another's."""
        if self._use.exclusive(device) or (hint.exclusive and self._used(device)):
            return False
        near = [each for each in self._use.report.of_type(device.type) if each.place.may_be_near(device.place)]
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

    # Choosing

    def shortage(self, demand: DeviceDemand) -> NoDevices | None:
        """Return why there are too few devices of a type, whatever the choice."""
        wanted = self.sized[demand.type]
        if wanted.count and len(self.candidates[demand.type]) >= wanted.count:
            return None
        hint = self._ask.hint(demand.type)
        there = [d for d in self._use.report.of_type(demand.type) if d.health and hint.selects(d.labels)]
        return NoDevices(insufficient(demand.type), hopeless=len(there) < max(wanted.count, 1))

    def choice_of(self, kind: str, count: int) -> SetChoice:
        """Return how devices of that type are chosen."""
        if self.choice != "auto":
            return self.choice
        return "bandwidth" if count > 1 and self.bandwidth[kind] else "leastAllocated"

    def pick(
        self, demand: DeviceDemand, *, among: frozenset[str] | None = None, near: frozenset[str] = frozenset()
    ) -> Pick | NoDevices:
        """Return the devices for one demand. ``among``: only below these switches, and some below each; ``near``:
        rather below these."""
        wanted = self.sized[demand.type]
        candidates = self.candidates[demand.type]
        count = wanted.count
        cover: frozenset[str] = frozenset()
        if among is not None:
            candidates = tuple(each for each in candidates if each.group in among)
            count, cover = max(count, len(among)), among
        if demand.type == GPU and wanted.whole_devices:
            picked = self._by_partition(wanted, candidates, cover)
            if picked is not None:
                return picked
        choice = self.choice_of(demand.type, count)
        if choice in get_args(Strategy) and not cover and not near:
            by_tree = self._by_tree(wanted, candidates) if demand.type == GPU else None
            if by_tree is not None:
                return by_tree
            return self._by_score(wanted, candidates, frozenset(), least=count, most=count)
        bandwidth = self.bandwidth[demand.type]
        best: tuple[SetKey, tuple[DeviceCandidate, ...]] | None = None
        for scope in self._scopes(self._ask.hint(demand.type), candidates):
            found = self._nearest(scope, count, choice, bandwidth, cover, near)
            if found is not None and (best is None or set_key(found, choice, bandwidth) < best[0]):
                best = set_key(found, choice, bandwidth), found
        if best is None:
            return NoDevices(insufficient(demand.type))
        return Pick(wanted, best[1], (0, 0, best[0]))

    def pick_near(self, demand: DeviceDemand, switches: frozenset[str], *, least: int, most: int) -> Pick | NoDevices:
        """Return it as upstream finds the devices that go with others: those below ``switches`` first, ``least`` at
        least and up to ``most``. GPUs are found as if they were alone, but by ``most`` where their tree does not
        decide."""
        if demand.type != GPU:
            return self._by_score(demand, self.candidates[demand.type], switches, least=least, most=most)
        if demand.whole_devices:
            picked = self._by_partition(demand, self.candidates[GPU], frozenset())
            if picked is not None:
                return picked
        by_tree = self._by_tree(demand, self.candidates[GPU])
        if by_tree is not None:
            return by_tree
        return self._by_score(demand, self.candidates[GPU], frozenset(), least=least, most=most)

    def _by_score(
        self,
        demand: DeviceDemand,
        candidates: Sequence[DeviceCandidate],
        near: frozenset[str],
        *,
        least: int,
        most: int,
    ) -> Pick | NoDevices:
        for scope in self._scopes(self._ask.hint(demand.type), candidates):
            ordered = sorted(scope, key=lambda each: (each.group not in near, -self._score(demand, each), each.minor))
            if len(ordered) >= least:
                chosen = tuple(ordered[:most])
                return Pick(demand, chosen, (0, 0, set_key(chosen, "minor", self.bandwidth[demand.type])))
        return NoDevices(insufficient(demand.type))

    def _by_tree(self, demand: DeviceDemand, candidates: Sequence[DeviceCandidate]) -> Pick | NoDevices | None:
        """Return None where the tree does not decide and need not."""
        hint = self._ask.hint(GPU)
        need = GpuNeed(demand.count, not demand.whole_devices, LEVELS[hint.scope])
        tree = tree_of(self._use.report.of_type(GPU))
        several_parts = need.shared and need.count > 1
        if tree is None or several_parts:
            if not hint.scope:
                return None
            return NoDevices(SEVERAL_PARTS if tree is not None else NO_TREE, hopeless=True)
        by_minor = {each.minor: each for each in candidates}
        if hint.scope == "Device" and need.count > 1:
            return NoDevices(NO_SCOPE, hopeless=True)
        minors = minors_in(tree, need, fitting=by_minor, used=self._occupied())
        if not minors:
            return NoDevices(NO_SCOPE if hint.scope else insufficient(GPU))
        chosen = tuple(by_minor[minor] for minor in minors)
        return Pick(demand, chosen, (0, 0, set_key(chosen, "minor", self.bandwidth[GPU])))

    def _score(self, demand: DeviceDemand, candidate: DeviceCandidate) -> int:
        if not self._scored:
            return 0
        device = candidate.device
        weights = weights_for(demand.type, device.resources, self._weights)
        return score(demand.each, device.resources, self._use.free(device), weights, strategy_of(self.choice))

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
        """Yield the sets within one of which all devices must be."""
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

    # Partitions

    def _by_partition(
        self, demand: DeviceDemand, candidates: Sequence[DeviceCandidate], cover: frozenset[str]
    ) -> Pick | NoDevices | None:
        """Return the best partition, by score first; None where partitions do not decide."""
        report, spec = self._use.report, self._ask.partition
        must = spec is not None or report.honours_partitions
        if not report.partitions:
            return NoDevices(NO_PARTITIONS, hopeless=True) if must else None
        fitting = [each for each in report.partitions if len(each.minors) == demand.count]
        if spec is not None and spec.restricted and fitting:
            highest = max(each.score for each in fitting)
            fitting = [each for each in fitting if each.score == highest]
        used = self._occupied()
        by_minor = {each.minor: each for each in candidates if each.minor not in used}
        bandwidth = self.bandwidth[GPU]
        choice = self.choice_of(GPU, demand.count)
        best: tuple[PickKey, tuple[DeviceCandidate, ...]] | None = None
        for number, partition in enumerate(fitting):
            chosen = self._of_partition(partition, by_minor, cover)
            if chosen is None:
                continue
            left = left_whole(report.partitions, used | set(partition.minors), demand.count)
            rank: SetKey = 0, 0, ((number, 0),)
            if choice not in get_args(Strategy):
                rank = set_key(chosen, choice, bandwidth)
            key = -1 - max(partition.score, 0), -left, rank
            if best is None or key < best[0]:
                best = key, chosen
        if best is not None:
            return Pick(demand, best[1], best[0])
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

    def _occupied(self) -> set[int]:
        """Minors of GPUs that are not wholly free, as upstream counts them: of healthy ones that the pod's selector
        leaves, those of which something is used; of others those that pods have."""
        use, hint = self._use, self._ask.hint(GPU)
        listed = {device.minor: device for device in use.report.of_type(GPU)}
        found = set()
        for kind, minor in use.users:
            if kind != GPU:
                continue
            device = listed.get(minor)
            if device is not None and hint.selects(device.labels):
                free = use.free(device)
                if not device.health or all(free[name] == value for name, value in device.resources.items()):
                    continue
            found.add(minor)
        return found

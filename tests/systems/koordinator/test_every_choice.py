"""Generated pods on generated nodes: what they get is the best of all that they could get, by looking at everything."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import pytest

from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import AllocatedFunction, Allocations, DeviceAllocation
from mews.systems.koordinator.devices import (
    DevicePlace,
    GpuPartition,
    NodeDevice,
    NodeDeviceReport,
    NodeVirtualFunction,
)
from mews.systems.koordinator.names import CORE, HINT, JOINT, MEMORY, PARTITION_SPEC, RATIO, RDMA_RESOURCE
from mews.systems.koordinator.requests import ask_of
from mews.systems.koordinator.usage import NodeUse, PodUse

GIB = 2**30
SIZES = (8 * GIB, 16 * GIB, 46068 * 2**20)
ASKS: tuple[dict[str, int], ...] = (
    {"nvidia.com/gpu": 1},
    {"nvidia.com/gpu": 2},
    {"nvidia.com/gpu": 4},
    {"koordinator.sh/gpu": 50},
    {"koordinator.sh/gpu": 200},
    {MEMORY: 5 * GIB},
    {MEMORY: 12 * GIB},
    {RATIO: 70},
    {RATIO: 300},
    {CORE: 40, RATIO: 60},
    {CORE: 100, RATIO: 200},
    {CORE: 30, MEMORY: 6 * GIB},
    {"koordinator.sh/gpu.shared": 2, RATIO: 100},
    {"koordinator.sh/gpu.shared": 2, MEMORY: 8 * GIB, CORE: 60},
)


@dataclass
class Case:
    """``count`` GPUs and ``each`` of one, worked out anew from what is asked."""

    rng: random.Random
    use: NodeUse = field(init=False)
    asked: dict[str, int] = field(init=False)
    annotations: dict[str, str] = field(init=False)
    hint: dict[str, Any] = field(init=False)
    spec: dict[str, Any] | None = None
    joint: str = ""
    vfs: bool = False

    def __post_init__(self) -> None:
        rng = self.rng
        gpus, self.hint = self._gpus(), {}
        nics = tuple(
            NodeDevice(
                "rdma", minor, f"N{minor}", rng.random() < 0.9, {RDMA_RESOURCE: 100},
                DevicePlace(0, minor // 2, f"p{minor}"),
                tuple(NodeVirtualFunction(n, f"0000:{minor}:00.{n}", {"t": rng.choice("ab")}) for n in range(2)),
            )
            for minor in range(rng.randint(1, 4))
        )  # fmt: skip
        partitions = self._partitions(len(gpus)) if rng.random() < 0.4 else ()
        report = NodeDeviceReport("n", (*gpus, *nics), (), partitions, bool(partitions) and rng.random() < 0.5)
        self.use = NodeUse.of(report)
        for number in range(rng.randint(0, 5)):
            self._occupy(number, rng.choice((*gpus, *nics)))
        self.asked = dict(rng.choice(ASKS))
        self.annotations = {}
        self._wish()

    def _gpus(self) -> tuple[NodeDevice, ...]:
        rng, size = self.rng, self.rng.choice(SIZES)
        mixed = rng.random() < 0.2
        return tuple(
            NodeDevice(
                "gpu", minor, f"G{minor}", rng.random() < 0.9,
                {CORE: 100, MEMORY: rng.choice(SIZES) if mixed else size, RATIO: 100},
                DevicePlace(0, minor // 4, f"p{minor // 2}"), labels={"k": rng.choice("xy")},
            )
            for minor in range(rng.choice((4, 8)))
        )  # fmt: skip

    def _partitions(self, gpus: int) -> tuple[GpuPartition, ...]:
        sets = [tuple(range(start, start + size)) for size in (1, 2, 4) for start in range(0, gpus, size)]
        chosen = [each for each in sets if self.rng.random() < 0.8]
        return tuple(GpuPartition(each, self.rng.randint(0, 2), self.rng.choice((0, 100, 200))) for each in chosen)

    def _occupy(self, number: int, device: NodeDevice) -> None:
        share = self.rng.choice((10, 50, 100))
        amounts = {name: total * share // 100 for name, total in device.resources.items()}
        functions: tuple[AllocatedFunction, ...] = ()
        if device.functions and self.rng.random() < 0.5:
            functions = (AllocatedFunction(device.functions[0].minor, device.functions[0].bus),)
        free = self.use.free(device)
        if device.health and all(free[name] >= value for name, value in amounts.items()):
            given = DeviceAllocation(device.type, device.minor, amounts, device.id, functions)
            exclusive: dict[str, Any] = {}
            if self.rng.random() < 0.2 and (device.type, device.minor) not in self.use.users:
                exclusive = {device.type: "DeviceLevel"}
            self.use = self.use.plus(PodUse(f"u{number}", f"d/u{number}", (given,), exclusive))

    # Complex: one branch for each drawn field.
    def _wish(self) -> None:  # noqa: C901
        rng, hints = self.rng, dict[str, Any]()
        if rng.random() < 0.3:
            self.hint["selector"] = {"matchLabels": {"k": "x"}}
        if rng.random() < 0.3:
            self.hint["requiredTopologyScope"] = rng.choice(("PCIe", "NUMANode", "Node"))
        if rng.random() < 0.2:
            self.hint["exclusivePolicy"] = "DeviceLevel"
        if self.hint:
            hints["gpu"] = self.hint
        if rng.random() < 0.3:
            self.spec = {"allocatePolicy": rng.choice(("Restricted", "BestEffort"))}
            if rng.random() < 0.5:
                self.spec["ringBusBandwidth"] = "150"
            self.annotations[PARTITION_SPEC] = json.dumps(self.spec)
        if rng.random() < 0.5:
            self.asked[RDMA_RESOURCE] = rng.choice((50, 100))
            self.vfs = rng.random() < 0.5
            if self.vfs:
                hints["rdma"] = {"vfSelector": {"matchLabels": {"t": "a"}}}
            if rng.random() < 0.6:
                self.joint = rng.choice(("SamePCIe", "near"))
                wish = {"deviceTypes": ["gpu", "rdma"]} | (
                    {} if self.joint == "near" else {"requiredScope": "SamePCIe"}
                )
                self.annotations[JOINT] = json.dumps(wish)
        if hints:
            self.annotations[HINT] = json.dumps(hints)

    # What is asked, worked out anew

    def wanted(self) -> tuple[int, dict[str, int]]:
        """Count, and of each: core, and memory or ratio."""
        a = self.asked
        if "nvidia.com/gpu" in a:
            return a["nvidia.com/gpu"], {CORE: 100, RATIO: 100}
        if "koordinator.sh/gpu" in a:
            count = max(a["koordinator.sh/gpu"] // 100, 1)
            return count, {CORE: a["koordinator.sh/gpu"] // count, RATIO: a["koordinator.sh/gpu"] // count}
        count = a.get("koordinator.sh/gpu.shared") or max(a.get(RATIO, 0) // 100, 1)
        return count, {name: a[name] // count for name in (CORE, MEMORY, RATIO) if name in a}

    def amounts(self, gpu: NodeDevice) -> dict[str, int]:
        _, each = self.wanted()
        total = gpu.resources[MEMORY]
        memory = each[MEMORY] if MEMORY in each else each[RATIO] * total // 100
        ratio = each[RATIO] if RATIO in each else each[MEMORY] * 100 // total
        return {name: each[name] for name in (CORE,) if name in each} | {MEMORY: memory, RATIO: ratio}

    # All that could be given

    def may(self, device: NodeDevice, amounts: dict[str, int]) -> bool:
        slot = (device.type, device.minor)
        users = [self.use.pods[uid] for uid in self.use.users.get(slot, ())]
        if not device.health or any(user.exclusive for user in users):
            return False
        if device.type == "gpu":
            if "selector" in self.hint and device.labels["k"] != "x":
                return False
            if "exclusivePolicy" in self.hint and users:
                return False
        used = self.use.used.get(slot, {})
        return all(device.resources[name] - used.get(name, 0) >= value for name, value in amounts.items())

    def gpu_sets(self) -> Iterator[tuple[NodeDevice, ...]]:
        count, each = self.wanted()
        fitting = [gpu for gpu in self.use.report.of_type("gpu") if self.may(gpu, self.amounts(gpu))]
        whole = each.get(RATIO, 0) >= 100
        must = whole and (self.spec is not None or self.use.report.honours_partitions)
        for chosen in combinations(fitting, count):
            scope = self.hint.get("requiredTopologyScope")
            if scope == "PCIe" and len({gpu.place.pcie for gpu in chosen}) > 1:
                continue
            if scope == "NUMANode" and len({gpu.place.numa for gpu in chosen}) > 1:
                continue
            if not must or self.score(chosen) is not None:
                yield chosen

    def score(self, chosen: Sequence[NodeDevice]) -> int | None:
        """Of the partition that these are; None where they are none that would do."""
        minors = tuple(gpu.minor for gpu in chosen)
        sized = [each for each in self.use.report.partitions if len(each.minors) == len(minors)]
        found = [each for each in sized if each.minors == minors]
        if not found or any(("gpu", minor) in self.use.users for minor in minors):
            return None
        (partition,) = found
        if self.spec and "ringBusBandwidth" in self.spec and partition.bandwidth < 150:
            return None
        if self.spec and self.spec["allocatePolicy"] == "Restricted" and partition.score < max(e.score for e in sized):
            return None
        return partition.score

    def nics(self) -> list[NodeDevice]:
        asked = self.asked[RDMA_RESOURCE]
        found = [nic for nic in self.use.report.of_type("rdma") if self.may(nic, {RDMA_RESOURCE: asked})]
        return [nic for nic in found if not self.vfs or self.functions(nic)]

    def functions(self, nic: NodeDevice) -> list[str]:
        taken = {
            function.bus
            for uid in self.use.users.get(("rdma", nic.minor), ())
            for each in self.use.pods[uid].allocations
            for function in each.functions
        }
        return [each.bus for each in nic.functions if each.bus not in taken and each.labels["t"] == "a"]

    def everything(self) -> Iterator[tuple[tuple[NodeDevice, ...], tuple[NodeDevice, ...]]]:
        """GPUs and adapters together."""
        adapters: list[tuple[NodeDevice, ...]] = [()]
        if RDMA_RESOURCE in self.asked:
            there = self.nics()
            most = len(there) if self.joint else 1
            adapters = [each for size in range(1, most + 1) for each in combinations(there, size)]
        for gpus, nics in product(self.gpu_sets(), adapters):
            switches = {gpu.place.pcie for gpu in gpus}
            if self.joint == "SamePCIe" and {nic.place.pcie for nic in nics} != switches:
                continue
            yield gpus, nics


def given(case: Case) -> Allocations | policy.NoDevices:
    ask = ask_of(case.asked, case.annotations)
    assert ask is not None
    return policy.allocate(ask, case.use)


def quality(gpus: Sequence[NodeDevice]) -> tuple[int, int]:
    """Slowest pair and sum by the places: below one switch 3, on one NUMA node 2, else 1."""
    pairs = [nearness(a, b) for a, b in combinations(gpus, 2)]
    return (min(pairs), sum(pairs)) if pairs else (0, 0)


def nearness(a: NodeDevice, b: NodeDevice) -> int:
    if a.place.numa != b.place.numa:
        return 1
    return 3 if a.place.pcie == b.place.pcie else 2


@pytest.mark.parametrize("block", range(10))
def test_what_is_given_is_possible_and_the_best_there_is(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        case = Case(random.Random(seed))
        answer, possible = given(case), list(case.everything())
        where = f"seed {seed}: {case.asked} {case.annotations}"
        if isinstance(answer, policy.NoDevices):
            assert not possible, f"{where}: {answer.reason}"
            continue
        devices = {(device.type, device.minor): device for device in case.use.report.devices}
        gpus = tuple(devices["gpu", each.minor] for each in answer if each.type == "gpu")
        nics = tuple(devices["rdma", each.minor] for each in answer if each.type == "rdma")
        assert (gpus, nics) in possible, f"{where}: {gpus} {nics}"
        assert all(each.resources == case.amounts(devices["gpu", each.minor]) for each in answer if each.type == "gpu")
        check_best(case, gpus, possible, where)
        for each in answer:
            if each.type == "rdma" and case.vfs:
                (function,) = each.functions
                assert function.bus == min(case.functions(devices["rdma", each.minor])), where


def check_best(case: Case, gpus: tuple[NodeDevice, ...], possible: Sequence[Any], where: str) -> None:
    _, each = case.wanted()
    sets = [chosen for chosen, _ in possible]
    if each.get(RATIO, 0) >= 100 and case.use.report.partitions:
        scores = [score for score in map(case.score, sets) if score is not None]
        if scores:
            assert case.score(gpus) == max(scores), where
            return
    if len(gpus) > 1:
        assert quality(gpus) == max(map(quality, sets)), where


def test_the_cases_are_not_all_of_one_kind() -> None:
    answers = [(case, given(case)) for case in (Case(random.Random(seed)) for seed in range(600))]
    fitting = [case for case, answer in answers if not isinstance(answer, policy.NoDevices)]
    assert 200 < len(fitting) < 500
    assert sum(bool(case.joint) for case in fitting) > 30
    assert sum(case.spec is not None for case in fitting) > 10
    assert sum(case.vfs for case in fitting) > 20

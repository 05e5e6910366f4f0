"""Nodes and pods of chance, as documents that upstream's program and ours both read."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

MIB = 2**20
CORE, MEMORY, RATIO, SHARED, WHOLE, NVIDIA, RDMA, FPGA = (
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/gpu.shared",
    "koordinator.sh/gpu",
    "nvidia.com/gpu",
    "koordinator.sh/rdma",
    "koordinator.sh/fpga",
)
_SCHEDULING, _NODE = "scheduling.koordinator.sh", "node.koordinator.sh"
HINT, JOINT = f"{_SCHEDULING}/device-allocate-hint", f"{_SCHEDULING}/device-joint-allocate"
SPEC, TABLE = f"{_SCHEDULING}/gpu-partition-spec", f"{_SCHEDULING}/gpu-partitions"
POLICY, WELL_PLANNED = f"{_NODE}/gpu-partition-policy", f"{_NODE}/secondary-device-well-planned"
MODEL = f"{_NODE}/gpu-model"
STRATEGIES = ("LeastAllocated", "MostAllocated")
DEFAULT_WEIGHTS = {RATIO: 1, RDMA: 1, FPGA: 1}
Case = Mapping[str, Any]


def drawn(seed: int) -> Case:
    """A case: a node's Device and labels, what is used of it, and what a pod asks."""
    return _Draw(random.Random(seed)).case()


class _Draw:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.free: dict[tuple[str, int], dict[str, int]] = {}
        self.functions: dict[int, list[str]] = {}
        self.sizes: dict[int, int] = {}
        self.adapters: list[dict[str, Any]] = []
        self.fpgas: list[dict[str, Any]] = []

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> Case:
        rng = self.rng
        gpus, self.adapters, self.fpgas = self._gpus(), self._adapters(), self._fpgas()
        devices = [*gpus, *self.adapters, *self.fpgas]
        count = len(gpus)
        labels, notes, node_labels = self._labels(), dict[str, str](), dict[str, str]()
        if self.chance(0.3):
            notes[TABLE] = json.dumps(self._table(count))
        elif self.chance(0.2):
            node_labels[MODEL] = rng.choice(("H100", "H800", "A100"))
        if self.chance(0.2):
            node_labels[POLICY] = rng.choice(("Honor", "Prefer"))
        used = [each for each in (self._holder(devices) for _ in range(rng.randint(0, 6))) if each]
        requests = self._odd() if self.chance(0.12) else self._requests(count)
        return {
            "device": {
                "apiVersion": f"{_SCHEDULING}/v1alpha1", "kind": "Device",
                "metadata": {"name": "n", "labels": labels, "annotations": notes}, "spec": {"devices": devices},
            },
            "nodeLabels": node_labels,
            "used": used,
            "requests": {name: str(value) for name, value in requests.items()},
            "annotations": self._annotations(requests),
            "strategy": rng.choice(STRATEGIES),
            "weights": self._weights(),
        }  # fmt: skip

    # The node

    def _labels(self) -> dict[str, str]:
        labels = {}
        if self.chance(0.25):
            labels[POLICY] = self.rng.choice(("Honor", "Prefer"))
        if self.chance(0.15):
            labels[WELL_PLANNED] = self.rng.choice(("true", "true", "false"))
        return labels

    def _place(self, minor: int, below: int, per_node: int) -> dict[str, Any]:
        switch = minor // below
        return {"socketID": 0, "nodeID": minor // per_node, "pcieID": f"p{switch}", "busID": f"0000:{minor:02x}:00.0"}

    def _device(self, kind: str, minor: int, resources: Mapping[str, int], **more: Any) -> dict[str, Any]:
        health = self.chance(0.95)
        self.free[kind, minor] = dict(resources) if health else {}
        return {
            "type": kind, "minor": minor, "id": f"{kind}-{minor}", "health": health,
            "resources": {name: str(value) for name, value in resources.items()},
            "labels": {"k": self.rng.choice("xy")}, **more,
        }  # fmt: skip

    def _gpus(self) -> list[dict[str, Any]]:
        rng = self.rng
        count, memory = rng.choice((0, 1, 2, 4, 4, 8, 8, 8, 8)), rng.choice((8192, 16384, 81920, 46068)) * MIB
        below, per_node, known = rng.choice((1, 2, 2, 4)), rng.choice((4, 4, 8)), rng.random()
        made = []
        for minor in range(count):
            more: dict[str, Any] = {}
            if known < 0.75 or (known < 0.85 and minor):
                more["topology"] = self._place(minor, below, per_node)
            size = rng.choice((8192, 16384)) * MIB if self.chance(0.05) else memory
            self.sizes[minor] = size
            core = {CORE: 100} if self.chance(0.99) else {}
            made.append(self._device("gpu", minor, {**core, MEMORY: size, RATIO: 100}, **more))
        self.rng.shuffle(made)
        return made

    def _adapters(self) -> list[dict[str, Any]]:
        rng = self.rng
        count, with_functions = rng.choice((0, 1, 2, 4, 4, 4)), self.chance(0.7)
        made = []
        below = rng.choice((1, 1, 2))
        for minor in range(count):
            more: dict[str, Any] = {"topology": self._place(minor, below, 2)}
            if with_functions:
                vfs = [{"minor": n, "busID": f"0000:{minor + 16:02x}:00.{n}"} for n in range(rng.randint(1, 3))]
                self.functions[minor] = [each["busID"] for each in vfs]
                more["vfGroups"] = [{"labels": {"t": rng.choice("ab")}, "vfs": vfs}]
            made.append(self._device("rdma", minor, {RDMA: 100}, **more))
        return made

    def _fpgas(self) -> list[dict[str, Any]]:
        return [self._device("fpga", minor, {FPGA: 100}) for minor in range(self.rng.choice((0, 0, 1, 2)))]

    def _table(self, count: int) -> dict[str, Any]:
        rng, varied = self.rng, self.chance(0.15)
        table: dict[str, list[dict[str, Any]]] = {}
        for size in (1, 2, 4, 8):
            for start in range(0, count, size):
                if start + size > count or self.chance(0.05):
                    continue
                each: dict[str, Any] = {"minors": list(range(start, start + size))}
                each["allocationScore"] = rng.randint(1, 3) if varied else 1
                if self.chance(0.5):
                    each["ringBusBandwidth"] = rng.choice(("100Gi", "200Gi"))
                table.setdefault(str(size), []).append(each)
        return table

    def _holder(self, devices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What another pod has: parts of one device, or some whole ones."""
        if not devices:
            return {}
        kind = self.rng.choice(devices)["type"]
        share = self.rng.choice((10, 25, 50, 100, 100))
        there = [minor for (each, minor), free in self.free.items() if each == kind and free]
        wanted = self.rng.choice((1, 1, 2)) if share == 100 else 1
        given = []
        for minor in self.rng.sample(there, min(wanted, len(there))):
            free = self.free[kind, minor]
            amounts = self._share(kind, minor, share)
            if any(free[name] < value for name, value in amounts.items()):
                continue
            self.free[kind, minor] = {name: value - amounts.get(name, 0) for name, value in free.items()}
            entry: dict[str, Any] = {"minor": minor, "id": f"{kind}-{minor}"}
            entry["resources"] = {name: str(value) for name, value in amounts.items()}
            if kind == "rdma" and self.functions.get(minor) and self.chance(0.7):
                entry["extension"] = {"vfs": [{"minor": 0, "busID": self.functions[minor].pop(0)}]}
            given.append(entry)
        return {kind: given} if given else {}

    def _share(self, kind: str, minor: int, share: int) -> dict[str, int]:
        if kind != "gpu":
            return {RDMA if kind == "rdma" else FPGA: share}
        whole = self.sizes[minor]
        memory = whole * share // 100
        if share < 100 and self.chance(0.2):
            memory = self.rng.randint(1, whole)
        core = {CORE: share} if CORE in self.free[kind, minor] and self.chance(0.8) else {}
        return {**core, MEMORY: memory, RATIO: memory * 100 // whole if memory != whole * share // 100 else share}

    # The pod

    def _requests(self, count: int) -> dict[str, int]:
        rng = self.rng
        several = min(rng.choice((1, 1, 2, 2, 3, 4, 8)), max(count, 1) if self.chance(0.95) else 8)
        memory = rng.choice((1, 2, 2, 4, 6, 8, 20)) * 1024 * MIB
        gpu: dict[str, int] = rng.choice(
            (
                {NVIDIA: several},
                {NVIDIA: several},
                {WHOLE: rng.choice((10, 30, 50, 75))},
                {WHOLE: 100 * several},
                {MEMORY: memory},
                {RATIO: rng.choice((10, 33, 50, 100))},
                {CORE: rng.choice((0, 20, 50)), RATIO: rng.choice((20, 40, 60))},
                {CORE: 100 * several, RATIO: 100 * several},
                {CORE: rng.choice((10, 50)), MEMORY: memory},
                {SHARED: several, RATIO: several * rng.choice((20, 50, 100))},
                {SHARED: several, CORE: several * 30, RATIO: several * 40},
                {SHARED: several, MEMORY: memory},
            )
        )
        asked = dict(gpu) if count and self.chance(0.85) else {}
        if not asked or (self.adapters and self.chance(0.5)):
            asked[RDMA] = rng.choice((1, 1, 2, 30, 50, 100, 200))
        if self.fpgas and self.chance(0.2):
            asked[FPGA] = rng.choice((50, 100, 200))
        return asked

    def _odd(self) -> dict[str, int]:
        """Any of the names with any of the amounts."""
        rng = self.rng
        names = rng.sample((CORE, MEMORY, RATIO, SHARED, WHOLE, NVIDIA, RDMA, FPGA), rng.choice((1, 2, 2, 3)))
        return {name: rng.choice((0, 1, 2, 3, 50, 99, 100, 101, 150, 200, 250, 300)) for name in names}

    def _annotations(self, requests: Mapping[str, int]) -> dict[str, str]:
        rng, notes = self.rng, dict[str, str]()
        hints = {kind: hint for kind in ("gpu", "rdma", "fpga") if (hint := self._hint(kind))}
        if hints:
            notes[HINT] = json.dumps(hints)
        if self.chance(0.12):
            spec: dict[str, Any] = {}
            if self.chance(0.6):
                spec["allocatePolicy"] = rng.choice(("Restricted", "BestEffort"))
            if self.chance(0.4):
                spec["ringBusBandwidth"] = rng.choice(("100Gi", "150Gi"))
            notes[SPEC] = json.dumps(spec)
        if len(requests) > 1 and self.chance(0.5):
            kinds = rng.choice(
                (["gpu", "rdma"], ["gpu", "rdma"], ["gpu", "rdma"], ["rdma", "gpu"], ["gpu", "rdma", "fpga"])
            )
            joint: dict[str, Any] = {"deviceTypes": kinds}
            if self.chance(0.5):
                joint["requiredScope"] = "SamePCIe"
            notes[JOINT] = json.dumps(joint)
        return notes

    def _hint(self, kind: str) -> dict[str, Any]:
        rng, hint = self.rng, dict[str, Any]()
        if self.chance(0.07):
            hint["selector"] = {"matchLabels": {"k": rng.choice("xy")}}
        if kind == "rdma" and self.functions and self.chance(0.3):
            hint["vfSelector"] = {"matchLabels": {"t": "a"}} if self.chance(0.5) else {}
        if (kind == "rdma" and self.chance(0.12)) or self.chance(0.01):
            hint["allocateStrategy"] = rng.choice(("ApplyForAll", "RequestsAsCount"))
        if self.chance(0.2 if kind == "gpu" else 0.01):
            hint["requiredTopologyScope"] = rng.choice(("PCIe", "NUMANode", "NUMANode", "Node", "Node"))
            if self.chance(0.05):
                hint["requiredTopologyScope"] = "Device"
        if self.chance(0.03):
            hint["exclusivePolicy"] = rng.choice(("DeviceLevel", "PCIeLevel"))
        return hint

    def _weights(self) -> dict[str, int]:
        if self.chance(0.6):
            return dict(DEFAULT_WEIGHTS)
        names = self.rng.sample((CORE, MEMORY, RATIO, RDMA, FPGA), self.rng.randint(1, 5))
        return {name: self.rng.choice((1, 2, 3, 10, 100)) for name in names}

"""The situations of upstream's own unit tables (v1.6.0, pkg/scheduler/plugins/deviceshare, ``*_test.go``) as data: a
server, what is used of it, what a pod asks, and what upstream expects that it gets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.systems.koordinator.upstream.drawing import (
    CORE,
    DEFAULT_WEIGHTS,
    FPGA,
    HINT,
    JOINT,
    MEMORY,
    MODEL,
    NVIDIA,
    POLICY,
    RATIO,
    RDMA,
    SHARED,
    WELL_PLANNED,
    WHOLE,
    Case,
)

GPU_BYTES = 85198045184
GIB = 2**30
SAME = "SamePCIe"


def _bus(minor: int, function: int) -> str:
    return f"0000:{minor:02x}:{function // 8:02x}.{function % 8}"


@dataclass(frozen=True)
class Server:
    """Eight GPUs and adapters (minor -> switch), with functions by the label of their group."""

    name: str
    switch_of_gpu: tuple[str, ...] = ("0", "0", "1", "1", "2", "2", "3", "3")
    adapters: Mapping[int, str] = field(default_factory=lambda: {1: "0", 2: "1", 3: "2", 4: "3"})
    functions: Mapping[str, Iterable[int]] = field(default_factory=lambda: {"general": range(4)})
    with_functions: frozenset[int] = frozenset(range(1, 9))
    places: bool = True

    def devices(self) -> list[dict[str, Any]]:
        """As a Device lists them."""
        gpus = [
            {"type": "gpu", "minor": n, "id": f"G{n}", "health": True} | self._place(switch)
            | {"resources": {CORE: "100", MEMORY: str(GPU_BYTES), RATIO: "100"}}
            for n, switch in enumerate(self.switch_of_gpu)
        ]  # fmt: skip
        return [*gpus, *(self._adapter(minor, switch) for minor, switch in self.adapters.items())]

    def _adapter(self, minor: int, switch: str) -> dict[str, Any]:
        made = {"type": "rdma", "minor": minor, "id": f"N{minor}", "health": True, "resources": {RDMA: "100"}}
        if self.places:
            made |= {"labels": {"type": "fakeW"}} | self._place(switch)
        if self.places and minor in self.with_functions:
            made["vfGroups"] = [
                {"labels": {"type": label}, "vfs": [{"minor": n, "busID": _bus(minor, n)} for n in numbers]}
                for label, numbers in self.functions.items()
            ]
        return made

    def _place(self, switch: str) -> dict[str, Any]:
        numa = {"0": 0, "1": 0, "": 0, "a": 0, "b": 0}.get(switch, 1)
        return {"topology": {"socketID": numa, "nodeID": numa, "pcieID": switch}} if self.places else {}


PAIRS = Server("two GPUs and an adapter below each of four switches")
TWICE = Server("two adapters below each switch", adapters={n: str((n - 1) % 4) for n in range(1, 9)})
ONE_WITH_FUNCTIONS = Server("one adapter with functions", with_functions=frozenset({1}))
ONE_SWITCH_UNKNOWN = Server(
    "switches that are not known", ("",) * 8, dict.fromkeys(range(1, 5), ""), with_functions=frozenset({1})
)
WITHOUT_FUNCTIONS = Server("adapters without functions", with_functions=frozenset())
WITHOUT_PLACES = Server("devices without places", places=False)
_SINGLE = ("0", "1", "a", "b", "5", "6", "7", "8")
SINGLE = Server(
    "a GPU and an adapter below each of eight switches", _SINGLE, dict(enumerate(_SINGLE, 1)),
    {"fakeS": (0,), "fakeG": range(1, 5), "fakeC": range(16, 20)},
)  # fmt: skip


@dataclass(frozen=True)
class Placement:
    """``used`` and ``nics``: minor of an adapter -> its function, None for none. ``gpus`` None: it is refused.
    ``exclusive``: of adapters; of GPUs as well if they are to be ``alone``."""

    server: Server
    asks: Mapping[str, int]
    gpus: tuple[int, ...] | None = ()
    nics: Mapping[int, int | None] = field(default_factory=dict)
    used_gpus: tuple[int, ...] = ()
    used_nics: Mapping[int, int] = field(default_factory=dict)
    used_share: int = 1
    scope: str = ""
    same: bool = False
    exclusive: str = ""
    alone: bool = False
    all_adapters: bool = False
    model: str = ""
    policy: str = "Honor"
    planned: bool = False

    def case(self) -> Case:
        """As a document for upstream's program and ours."""
        gpu = {CORE: "100", MEMORY: str(GPU_BYTES), RATIO: "100"}
        given: dict[str, Any] = {"gpu": [{"minor": n, "id": f"G{n}", "resources": gpu} for n in self.used_gpus]}
        given["rdma"] = [
            {"minor": minor, "id": f"N{minor}", "resources": {RDMA: str(self.used_share)},
             "extension": {"vfs": [{"minor": function, "busID": _bus(minor, function)}]}}
            for minor, function in self.used_nics.items()
        ]  # fmt: skip
        labels = {WELL_PLANNED: "true"} if self.planned else {}
        return {
            "device": {
                "metadata": {"name": "n", "labels": labels, "annotations": {}},
                "spec": {"devices": self.server.devices()},
            },
            "nodeLabels": {MODEL: self.model, POLICY: self.policy} if self.model else {},
            "used": [{kind: entries for kind, entries in given.items() if entries}],
            "requests": {name: str(value) for name, value in self.asks.items()},
            "annotations": self._annotations(),
            "strategy": "LeastAllocated",
            "weights": DEFAULT_WEIGHTS,
        }

    def _annotations(self) -> dict[str, str]:
        gpus = any(name not in (RDMA, FPGA) for name in self.asks)
        adapters: dict[str, Any] = {"selector": {"matchLabels": {"type": "fakeW"}}}
        if self.all_adapters:
            adapters["allocateStrategy"] = "ApplyForAll"
        else:
            kinds = ["general", "fakeG" if gpus else "fakeC"]
            adapters["vfSelector"] = {"matchExpressions": [{"key": "type", "operator": "In", "values": kinds}]}
        hints = {"rdma": adapters | self._exclusive()}
        if gpus and (self.scope or self.alone):
            scope = {"requiredTopologyScope": self.scope} if self.scope else {}
            hints["gpu"] = scope | (self._exclusive() if self.alone else {})
        joint = {"deviceTypes": ["gpu", "rdma"]} | ({"requiredScope": SAME} if self.same else {})
        return {HINT: json.dumps(hints)} | ({JOINT: json.dumps(joint)} if gpus else {})

    def _exclusive(self) -> dict[str, str]:
        return {"exclusivePolicy": self.exclusive} if self.exclusive else {}


def _n(gpus: int, rdma: int = 1) -> dict[str, int]:
    return {NVIDIA: gpus, RDMA: rdma} if gpus else {RDMA: rdma}


def _upto(last: int, first: int = 0) -> tuple[int, ...]:
    return tuple(range(first, last))


_ONES = dict.fromkeys
_ALONE: dict[str, Any] = {"same": True, "exclusive": "PCIeLevel", "alone": True}
_BEFORE: dict[str, Any] = {"used_gpus": (0,), "used_nics": {1: 0}}
_H800: dict[str, Any] = {"model": "H800"}
_FIVE: dict[str, Any] = {"used_gpus": (5,), "used_nics": {3: 0}, "same": True, "exclusive": "PCIeLevel"}
PLACEMENTS: Mapping[str, Placement] = {
    "near: no places, a GPU and a function": Placement(WITHOUT_PLACES, _n(1), None),
    "near: no places, a function": Placement(WITHOUT_PLACES, _n(0), None),
    "near: a function": Placement(PAIRS, _n(0), nics={1: 0}),
    "near: a GPU": Placement(PAIRS, _n(1), (0,), {1: 0}),
    "near: two": Placement(PAIRS, _n(2), (0, 1), {1: 0}),
    "near: three": Placement(PAIRS, _n(3), _upto(3), {1: 0, 2: 0}),
    "near: four": Placement(PAIRS, _n(4), _upto(4), {1: 0, 2: 0}),
    "near: six": Placement(PAIRS, _n(6), _upto(6), {1: 0, 2: 0, 3: 0}),
    "near: eight": Placement(PAIRS, _n(8), _upto(8), _ONES(range(1, 5), 0)),
    "near: two beside others": Placement(PAIRS, _n(2), (2, 3), {2: 0}, **_BEFORE),
    "near: three beside others": Placement(PAIRS, _n(3), (1, 2, 3), {1: 1, 2: 0}, **_BEFORE),
    "near: four, one adapter has functions": Placement(ONE_WITH_FUNCTIONS, _n(4), _upto(4), {1: 0}),
    "near: the other half": Placement(PAIRS, _n(4), _upto(8, 4), {3: 0, 4: 0}, _upto(4), {1: 0}),
    "near: the other half and four adapters": Placement(
        TWICE, _n(4, 400), _upto(8, 4), _ONES((3, 4, 7, 8), 0), _upto(4), {1: 0}
    ),
    "near: all adapters": Placement(WITHOUT_FUNCTIONS, _n(4), _upto(4), _ONES(range(1, 5)), all_adapters=True),
    "near: well planned": Placement(PAIRS, _n(8), _upto(8), _ONES(range(1, 5), 0), planned=True),
    "same: a function": Placement(PAIRS, _n(0), nics={1: 0}, exclusive="PCIeLevel"),
    "same: a GPU": Placement(PAIRS, _n(1), (0,), {1: 0}, **_ALONE),
    "same: two": Placement(PAIRS, _n(2), (0, 1), {1: 0}, **_ALONE),
    "same: three": Placement(PAIRS, _n(3), _upto(3), {1: 0, 2: 0}, **_ALONE),
    "same: four": Placement(PAIRS, _n(4), _upto(4), {1: 0, 2: 0}, **_ALONE),
    "same: six": Placement(PAIRS, _n(6), _upto(6), {1: 0, 2: 0, 3: 0}, **_ALONE),
    "same: eight": Placement(PAIRS, _n(8), _upto(8), _ONES(range(1, 5), 0), **_ALONE),
    "same: two beside others": Placement(PAIRS, _n(2), (2, 3), {2: 0}, used_share=100, **_BEFORE, **_ALONE),
    "same: three beside others": Placement(PAIRS, _n(3), None, used_share=100, **_BEFORE, **_ALONE),
    "same: four, switches are not known": Placement(ONE_SWITCH_UNKNOWN, _n(4), _upto(4), {1: 0}, **_ALONE),
    "same: the other half": Placement(
        PAIRS, _n(4), _upto(8, 4), {3: 0, 4: 0}, _upto(4), {1: 0}, used_share=100, **_ALONE
    ),
    "same: all adapters": Placement(
        WITHOUT_FUNCTIONS, _n(4), _upto(4), _ONES(range(1, 5)), same=True, all_adapters=True
    ),
    "partition: a function": Placement(SINGLE, _n(0), nics={1: 16}, **_H800),
    "partition: a GPU": Placement(SINGLE, _n(1), (0,), {1: 1}, **_H800),
    "partition: two": Placement(SINGLE, _n(2), (0, 1), {1: 1, 2: 1}, **_H800),
    "partition: three": Placement(SINGLE, _n(3), None, **_H800),
    "partition: four": Placement(SINGLE, _n(4), _upto(4), _ONES(range(1, 5), 1), **_H800),
    "partition: six": Placement(SINGLE, _n(6), None, **_H800),
    "partition: eight": Placement(SINGLE, _n(8), _upto(8), _ONES(range(1, 9), 1), **_H800),
    "partition: two beside two": Placement(SINGLE, _n(2), (0, 1), {1: 2, 2: 2}, (2, 3), {1: 1, 2: 1}, **_H800),
    "partition: two beside one": Placement(SINGLE, _n(2), (6, 7), {7: 1, 8: 1}, (4,), {5: 1}, **_H800),
    "partition: one beside one": Placement(SINGLE, _n(1), (5,), {6: 1}, (4,), {5: 1}, **_H800),
    "partition: H100": Placement(SINGLE, _n(2), (0, 1), {1: 2, 2: 2}, (2, 3), {1: 1, 2: 1}, model="H100"),
    "partition: preferred, three": Placement(
        SINGLE, _n(3), (4, 5, 6), {5: 1, 6: 1, 7: 1}, (2, 3), {1: 1, 2: 1}, model="H100", policy="Prefer"
    ),
    "tree: one beside one": Placement(PAIRS, _n(1), (4,), {3: 1}, **_FIVE),
    "tree: two beside one": Placement(PAIRS, _n(2), (6, 7), {4: 0}, **_FIVE),
    "tree: two below one switch": Placement(PAIRS, _n(2), (6, 7), {4: 0}, scope="PCIe", **_FIVE),
    "tree: four of a node": Placement(PAIRS, _n(4), _upto(4), {1: 0, 2: 0}, scope="NUMANode", **_FIVE),
    "tree: no node has four": Placement(
        PAIRS, _n(4), None, scope="NUMANode", used_gpus=(5, 0), used_nics={3: 0, 1: 0}, same=True
    ),
    "tree: a half beside one": Placement(PAIRS, {SHARED: 1, CORE: 50, RATIO: 50, RDMA: 1}, (4,), {3: 1}, **_FIVE),
}

VALID: Mapping[bool, tuple[Mapping[str, int], ...]] = {
    False: (
        {CORE: 101},
        {NVIDIA: 2, WHOLE: 200, CORE: 200, MEMORY: 32 * GIB, RATIO: 200},
        {WHOLE: 101},
        {CORE: 100, RATIO: 101},
        {RATIO: 101, SHARED: 1},
        {RATIO: 101, SHARED: 2},
        {CORE: 101, MEMORY: 64 * GIB, SHARED: 1},
        {CORE: 101, MEMORY: 64 * GIB, SHARED: 2},
        {FPGA: 201},
        {RDMA: 201},
    ),
    True: (
        {NVIDIA: 2},
        {"dcu.com/gpu": 2},
        {WHOLE: 200},
        {CORE: 200, MEMORY: 64 * GIB},
        {CORE: 200, RATIO: 200},
        {RATIO: 200},
        {MEMORY: 64 * GIB},
        {RATIO: 200, SHARED: 2},
        {RATIO: 100, SHARED: 2},
        {CORE: 100, MEMORY: 64 * GIB, SHARED: 1},
        {CORE: 100, MEMORY: 64 * GIB, SHARED: 2},
        {FPGA: 50},
        {RDMA: 50},
    ),
}
"""Requests that are valid, or not (utils_test.go)."""

SHARES: tuple[tuple[Mapping[str, int], int, Mapping[str, int]], ...] = (
    ({SHARED: 2, CORE: 100, RATIO: 100}, 2, {CORE: 50, RATIO: 50}),
    ({SHARED: 1, CORE: 50, RATIO: 50}, 1, {CORE: 50, RATIO: 50}),
    ({RATIO: 200, CORE: 200}, 2, {RATIO: 100, CORE: 100}),
    ({MEMORY: 1024, CORE: 100}, 1, {MEMORY: 1024, CORE: 100}),
    ({NVIDIA: 2}, 2, {CORE: 100, RATIO: 100}),
    ({WHOLE: 50}, 1, {CORE: 50, RATIO: 50}),
    ({RDMA: 100}, 1, {RDMA: 100}),
    ({FPGA: 50}, 1, {FPGA: 50}),
)
"""Requests, devices, and of each (devicehandler_gpu_test.go, utils_test.go)."""

COUNTS: tuple[tuple[int, Mapping[str, Any] | None, int, int], ...] = (
    (100, None, 1, 100),
    (1, {"selector": {"matchLabels": {"type": "fakeW"}}, "allocateStrategy": "ApplyForAll"}, 4, 1),
    (1, {"selector": {"matchLabels": {"type": "fakeS"}}, "allocateStrategy": "ApplyForAll"}, 1, 1),
    (
        1,
        {
            "selector": {"matchExpressions": [{"key": "type", "operator": "Exists"}]},
            "allocateStrategy": "ApplyForAll",
        },
        5,
        1,
    ),
    (
        1,
        {"selector": {"matchExpressions": [{"key": "no", "operator": "Exists"}]}, "allocateStrategy": "ApplyForAll"},
        0,
        1,
    ),
    (4, {"allocateStrategy": "RequestsAsCount"}, 4, 1),
    (4, {"allocateStrategy": "RequestsAsCount", "exclusivePolicy": "DeviceLevel"}, 4, 100),
)
"""Hundredths of adapters, a hint, the number of adapters (0: refused), and of each (devicehandler_default_test.go).
Four adapters are of type fakeW and one is of fakeS."""

NOT_EQUAL: Mapping[str, str] = {
    "tree: one beside one": "an adapter that is to be alone below its switch is not given beside another pod's",
    "tree: a half beside one": "likewise",
    "table 0 of partitions": "a set of two GPUs listed below 0 is refused, as nothing could ever ask for it",
    "same: three beside others": "GPUs that are to be alone below their switches are looked for below others",
}
"""Upstream's situations in which ours decides otherwise, and why."""

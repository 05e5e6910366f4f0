"""What koordinator v1.6 is known to give on a server of eight GPUs, two and an adapter below each of four switches."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import AllocatedFunction, DeviceAllocation
from mews.systems.koordinator.devices import (
    DevicePlace,
    GpuPartition,
    NodeDevice,
    NodeDeviceReport,
    NodeVirtualFunction,
)
from mews.systems.koordinator.names import HINT, JOINT, PARTITION_SPEC
from mews.systems.koordinator.requests import ask_of
from mews.systems.koordinator.usage import NodeUse, PodUse, gpu_resources

N, G, M, R, S = (
    "nvidia.com/gpu",
    "koordinator.sh/gpu",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/gpu.shared",
)
RDMA = "koordinator.sh/rdma"
VF = {HINT: {"rdma": {"selector": {"matchLabels": {"type": "W"}}, "vfSelector": {"matchLabels": {"t": "general"}}}}}
NEAR = {JOINT: {"deviceTypes": ["gpu", "rdma"]}}
SAME = {JOINT: {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}}
SETS = [tuple(range(start, start + size)) for size in (1, 2, 4, 8) for start in range(0, 8, size)]
TABLE = tuple(GpuPartition(each, 1) for each in SETS)
GIB = 2**30


@dataclass(frozen=True)
class Known:
    """``used``: minor -> hundredths that others have of a GPU; ``gpus`` and ``nics`` are minors, None: it gets none."""

    asks: dict[str, int]
    gpus: tuple[int, ...] | None
    nics: tuple[int, ...] = ()
    says: dict[str, Any] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)
    unhealthy: tuple[int, ...] = ()
    partitions: tuple[GpuPartition, ...] = ()
    honours: bool = False
    reason: str = ""


KNOWN = {
    "joint: one GPU": Known({N: 1, RDMA: 1}, (0,), (1,), NEAR | VF),
    "joint: two GPUs below one switch": Known({N: 2, RDMA: 1}, (0, 1), (1,), NEAR | VF),
    "joint: three GPUs get an adapter of each switch": Known({N: 3, RDMA: 1}, (0, 1, 2), (1, 2), NEAR | VF),
    "joint: four": Known({N: 4, RDMA: 1}, (0, 1, 2, 3), (1, 2), NEAR | VF),
    "joint: six": Known({N: 6, RDMA: 1}, (0, 1, 2, 3, 4, 5), (1, 2, 3), NEAR | VF),
    "joint: eight": Known({N: 8, RDMA: 1}, tuple(range(8)), (1, 2, 3, 4), NEAR | VF),
    "joint: two GPUs go where both are": Known({N: 2, RDMA: 1}, (2, 3), (2,), NEAR | VF, used={0: 100}),
    "joint: three beside a used one": Known({N: 3, RDMA: 1}, (1, 2, 3), (1, 2), NEAR | VF, used={0: 100}),
    "joint: the other half": Known({N: 4, RDMA: 1}, (4, 5, 6, 7), (3, 4), SAME | VF, used=dict.fromkeys(range(4), 100)),
    "joint: all adapters are asked for": Known(
        {N: 1, RDMA: 1}, (0,), (1, 2, 3, 4), SAME | {HINT: {"rdma": {"allocateStrategy": "ApplyForAll"}}}
    ),
    "without joint the number stays": Known({N: 4, RDMA: 100}, (0, 1, 2, 3), (1,)),
    "a function alone": Known({RDMA: 1}, (), (1,), VF),
    "functions of a kind that no adapter has": Known(
        {RDMA: 1}, None, says={HINT: {"rdma": {"vfSelector": {"matchLabels": {"t": "other"}}}}}
    ),
    "adapters by number": Known({RDMA: 3}, (), (1, 2, 3), {HINT: {"rdma": {"allocateStrategy": "RequestsAsCount"}}}),
    "partition: two beside a used pair": Known({N: 2}, (0, 1), used={2: 100, 3: 100}, partitions=TABLE, honours=True),
    "partition: two where some of each is used": Known(
        {N: 2}, None, used=dict.fromkeys(range(0, 8, 2), 10), partitions=TABLE, honours=True,
        reason="Insufficient Partitioned GPU Devices",
    ),
    "partition: two leave a four whole": Known({N: 2}, (6, 7), used={4: 100}, partitions=TABLE, honours=True),
    "partition: one leaves a pair whole": Known({N: 1}, (5,), used={4: 100}, partitions=TABLE, honours=True),
    "partition: three are none": Known(
        {N: 3}, None, partitions=TABLE, honours=True, reason="node(s) Unsupported number of GPU requests"
    ),
    "partition: three where they are preferred alone": Known(
        {N: 3}, (4, 5, 6), used={2: 100, 3: 100}, partitions=TABLE
    ),
    "partition: four, of which one is used": Known({N: 4}, (4, 5, 6, 7), used={1: 10}, partitions=TABLE, honours=True),
    "partition: eight, of which one is used": Known(
        {N: 8}, None, used={1: 10}, partitions=TABLE, honours=True, reason="Insufficient gpu devices"
    ),
    "partition: half of a GPU is none": Known({G: 50}, (1,), partitions=(GpuPartition((6,), 1),), honours=True),
    "partition: a share of core, all memory": Known(
        {"koordinator.sh/gpu-core": 100, R: 200}, (2, 3), partitions=(GpuPartition((2, 3), 1),), honours=True
    ),
    "partition: none in the table": Known(
        {N: 1}, None, says={PARTITION_SPEC: {}}, reason="node(s) missing GPU Partition Table"
    ),
    "partition: by its score": Known(
        {N: 2}, (4, 5), says={PARTITION_SPEC: {}}, partitions=(*TABLE, GpuPartition((4, 5), 9)), honours=True
    ),
    "scope: one switch": Known({N: 2}, (6, 7), says={HINT: {"gpu": {"requiredTopologyScope": "PCIe"}}},
                               used={0: 50, 2: 50, 5: 50}),
    "scope: three below one switch": Known({N: 3}, None, says={HINT: {"gpu": {"requiredTopologyScope": "PCIe"}}}),
    "scope: one NUMA node": Known({N: 3}, (5, 6, 7), says={HINT: {"gpu": {"requiredTopologyScope": "NUMANode"}}},
                                  used={0: 1, 1: 1, 4: 1}),
    "ratio above 100": Known({R: 300}, (0, 1, 2)),
    "shared: two halves": Known({S: 2, R: 100}, (0, 1)),
    "shared: memory of two": Known({S: 2, M: 80 * GIB}, (0, 1)),
    "memory that no GPU has": Known({M: 81 * GIB}, None),
    "an ill GPU": Known({N: 2}, (2, 3), unhealthy=(0,)),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_case_is_as_it_is_known(name: str) -> None:
    case = KNOWN[name]
    gpus = tuple(
        NodeDevice(
            "gpu", n, f"G{n}", n not in case.unhealthy, gpu_resources(80 * GIB), DevicePlace(0, n // 4, str(n // 2))
        )
        for n in range(8)
    )
    nics = tuple(
        NodeDevice(
            "rdma", n, f"N{n}", True, {RDMA: 100}, DevicePlace(0, (n - 1) // 2, str(n - 1)),
            tuple(NodeVirtualFunction(v, f"{n}:00.{v}", {"t": "general"}) for v in range(3)), {"type": "W"},
        )
        for n in range(1, 5)
    )  # fmt: skip
    use = NodeUse.of(NodeDeviceReport("n", (*gpus, *nics), (), case.partitions, case.honours))
    for minor, share in case.used.items():
        amounts = {key: total * share // 100 for key, total in gpus[minor].resources.items()}
        use = use.plus(PodUse(f"u{minor}", f"d/u{minor}", (DeviceAllocation("gpu", minor, amounts, f"G{minor}"),)))
    ask = ask_of(case.asks, {key: json.dumps(value) for key, value in case.says.items()})
    assert ask is not None
    given = policy.allocate(ask, use)
    if case.gpus is None:
        assert isinstance(given, policy.NoDevices), given
        assert given.reason == (case.reason or given.reason)
        return
    assert not isinstance(given, policy.NoDevices), given
    assert tuple(each.minor for each in given if each.type == "gpu") == case.gpus
    assert tuple(each.minor for each in given if each.type == "rdma") == case.nics
    functions = [each.functions for each in given if each.type == "rdma"]
    if VF[HINT] == case.says.get(HINT):
        assert functions == [(AllocatedFunction(0, f"{minor}:00.0"),) for minor in case.nics]

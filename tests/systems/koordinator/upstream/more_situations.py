"""More situations of upstream's unit tables (v1.6.0) as data: what its plugin filters and reserves, how its books
change with Devices and pods, what annotations mean, and what its webhooks make of requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.systems.koordinator.upstream.drawing import CORE, FPGA, MEMORY, RATIO, RDMA, SHARED, WHOLE

GIB = 2**30
Asks = Mapping[str, int]
Demands = Mapping[str, tuple[int, Asks]] | str
"""Type -> number of devices and amounts of each; "skip": no device is asked for; "invalid"."""


def _gpu(**each: int) -> Demands:
    names = {"core": CORE, "memory": MEMORY, "ratio": RATIO}
    return {"gpu": (1, {names[name]: value for name, value in each.items()})}


PRE_FILTER: tuple[tuple[Asks, Demands], ...] = (
    ({}, "skip"),
    ({FPGA: 101}, "invalid"),
    ({WHOLE: 101}, "invalid"),
    ({CORE: 100}, "invalid"),
    ({RATIO: 101}, "invalid"),
    ({WHOLE: 100}, _gpu(core=100, ratio=100)),
    ({RATIO: 100}, _gpu(ratio=100)),
    ({MEMORY: 8 * GIB}, _gpu(memory=8 * GIB)),
    ({CORE: 100, MEMORY: 8 * GIB}, _gpu(core=100, memory=8 * GIB)),
    ({CORE: 100, RATIO: 100}, _gpu(core=100, ratio=100)),
    ({FPGA: 100}, {"fpga": (1, {FPGA: 100})}),
    ({WHOLE: 100, RDMA: 100}, {"gpu": (1, {CORE: 100, RATIO: 100}), "rdma": (1, {RDMA: 100})}),
    ({WHOLE: 0}, "skip"),
)
"""plugin_test.go, Test_Plugin_PreFilter."""

CONVERTED: tuple[tuple[Asks, Demands], ...] = (
    ({"dcu.com/gpu": 2}, {"gpu": (2, {CORE: 100, RATIO: 100})}),
    ({CORE: 50, RATIO: 50}, _gpu(core=50, ratio=50)),
    ({CORE: 50, MEMORY: 32 * GIB}, _gpu(core=50, memory=32 * GIB)),
    ({RDMA: 80}, {"rdma": (1, {RDMA: 80})}),
    ({FPGA: 80}, {"fpga": (1, {FPGA: 80})}),
)
"""utils_test.go, TestConvertDeviceRequest, but for what ``SHARES`` has, too."""


@dataclass(frozen=True)
class OnNode:
    """``free``: type -> of each device its free hundredths, from minor ``first`` on; None for one that is ill. GPUs
    have ``memory`` GiB. ``expects``: type -> minors that are given, None where the node is left out. ``victims``:
    whether those that have the rest are taken away first."""

    free: Mapping[str, tuple[int | None, ...]]
    asks: Asks
    expects: Mapping[str, tuple[int, ...]] | None
    memory: int = 16
    first: int = 0
    choice: str = "leastAllocated"
    victims: bool = False


_HUNDRED, _TWO = {CORE: 100, RATIO: 100}, {CORE: 200, RATIO: 200}
_HALF = {CORE: 50, RATIO: 50}
ON_NODE: Mapping[str, OnNode] = {
    "filter: no devices": OnNode({}, _HUNDRED, None),
    "filter: a GPU is used in part": OnNode({"gpu": (75,)}, _HUNDRED, None),
    "filter: a GPU is used in part, an FPGA is free": OnNode(
        {"gpu": (75,), "fpga": (100,)}, {**_HUNDRED, FPGA: 100}, None
    ),
    "filter: both are used in part": OnNode({"gpu": (75,), "fpga": (50,)}, {**_HUNDRED, FPGA: 100}, None),
    "filter: an FPGA": OnNode({"fpga": (100,)}, {FPGA: 100}, {"fpga": (0,)}),
    "filter: the other FPGA": OnNode({"fpga": (75, 100)}, {FPGA: 100}, {"fpga": (1,)}),
    "filter: a GPU beside an FPGA": OnNode({"gpu": (100,), "fpga": (100,)}, _HUNDRED, {"gpu": (0,)}),
    "filter: the other GPU": OnNode({"gpu": (25, 100)}, _HUNDRED, {"gpu": (1,)}),
    "filter: the other GPU, by ratio": OnNode({"gpu": (25, 100)}, {RATIO: 100}, {"gpu": (1,)}),
    "filter: the other GPU, by memory": OnNode({"gpu": (25, 100)}, {MEMORY: 16 * GIB}, {"gpu": (1,)}),
    "filter: what another pod gives back": OnNode({"gpu": (0,)}, _HUNDRED, {"gpu": (0,)}, victims=True),
    "filter: parts of four GPUs": OnNode(
        {"gpu": (100,) * 8}, {SHARED: 4, MEMORY: 160_000_000_000}, {"gpu": (0, 1, 2, 3)}, memory=80
    ),
    "reserve: a GPU is used in part": OnNode({"gpu": (25,)}, _HUNDRED, None),
    "reserve: two, and one is used in part": OnNode({"gpu": (25,)}, _TWO, None),
    "reserve: two, and there is one": OnNode({"gpu": (100,)}, _TWO, None),
    "reserve: an adapter is used in part": OnNode({"rdma": (50,)}, {RDMA: 100}, None),
    "reserve: two of each other type": OnNode({"rdma": (100,), "fpga": (100,)}, {RDMA: 200, FPGA: 200}, None),
    "reserve: one of each type": OnNode(
        {"gpu": (100,), "rdma": (100,), "fpga": (100,)},
        {**_HUNDRED, RDMA: 100, FPGA: 100},
        {"gpu": (0,), "rdma": (0,), "fpga": (0,)},
    ),
    "reserve: two of each type": OnNode(
        {"gpu": (100, 100), "rdma": (100, 100), "fpga": (100, 100)},
        {**_TWO, RDMA: 200, FPGA: 200},
        {"gpu": (0, 1), "rdma": (0, 1), "fpga": (0, 1)},
    ),
    "reserve: by ratio": OnNode({"gpu": (100,)}, {RATIO: 100}, {"gpu": (0,)}),
    "reserve: by memory": OnNode({"gpu": (100,)}, {MEMORY: 16 * GIB}, {"gpu": (0,)}),
    "reserve: what another pod gives back": OnNode({"gpu": (0,)}, _HUNDRED, {"gpu": (0,)}, victims=True),
    "allocate: what another pod gives back": OnNode(
        {"gpu": (0, 0)}, _HALF, {"gpu": (1,)}, memory=8, first=1, victims=True
    ),
    "allocate: least allocated": OnNode({"gpu": (50, 50, 100, 100)}, _HALF, {"gpu": (3,)}, memory=8, first=1),
    "allocate: most allocated": OnNode(
        {"gpu": (100, 100, 50, 50)}, _HALF, {"gpu": (3,)}, memory=8, first=1, choice="mostAllocated"
    ),
    "allocate: one is ill": OnNode({"gpu": (None, 100)}, {**_HALF, MEMORY: 4 * GIB}, {"gpu": (2,)}, memory=8, first=1),
    "allocate: adapters that another pod gives back": OnNode(
        {"rdma": (0, 0)}, {RDMA: 50}, {"rdma": (1,)}, first=1, victims=True
    ),
}
"""plugin_test.go (Test_Plugin_Filter, Test_Plugin_Reserve), device_allocator_test.go (Test_allocateGPU and after)."""

_GIVEN = '{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"%s","koordinator.sh/gpu-memory":"%s",'
_GIVEN += '"koordinator.sh/gpu-memory-ratio":"%s"}}]}'
PART, ALL = _GIVEN % ("60", "8Gi", "50"), _GIVEN % ("100", "16Gi", "100")
_FREE, _LEFT = {CORE: 100, MEMORY: 16 * GIB, RATIO: 100}, {CORE: 40, MEMORY: 8 * GIB, RATIO: 50}


@dataclass(frozen=True)
class PodEvent:
    """``free``: what GPU 1 of 16 GiB has left after a pod with this annotation was seen in these phases; None where it
    has no node that is known. "deleted" ends a pod."""

    phases: tuple[str, ...]
    free: Asks
    annotation: str = ""


POD_EVENTS: Mapping[str, PodEvent] = {
    "added without devices": PodEvent(("Running",), _FREE),
    "added with an annotation that is none": PodEvent(("Running",), _FREE, "incorrect-device-allocation-annotation"),
    "added": PodEvent(("Running",), _LEFT, PART),
    "updated": PodEvent(("Pending", "Running"), _LEFT, PART),
    "deleted without devices": PodEvent(("Running", "deleted"), _FREE),
    "deleted with an annotation that is none": PodEvent(("Running", "deleted"), _FREE, "incorrect"),
    "deleted": PodEvent(("Running", "deleted"), _FREE, PART),
    "failed, then deleted": PodEvent(("Running", "Failed", "deleted"), _FREE, PART),
}
"""eventhandler_pod_test.go."""


@dataclass(frozen=True)
class DeviceEvent:
    """``seen``: GPUs (minor -> GiB) and FPGAs (minor -> 0) of a Device one time after the other, None once it is gone;
    ``free``: what is free at last."""

    seen: tuple[Mapping[tuple[str, int], int] | None, ...]
    free: Mapping[tuple[str, int], int] = field(default_factory=dict)


_ONE, _BOTH = {("gpu", 1): 16}, {("gpu", 0): 16, ("gpu", 1): 16}
DEVICE_EVENTS: Mapping[str, DeviceEvent] = {
    "added": DeviceEvent((_ONE,), _ONE),
    "added where another GPU was": DeviceEvent(({("gpu", 0): 16}, _ONE), _ONE),
    "added with two GPUs where one was smaller": DeviceEvent(({("gpu", 1): 8}, _BOTH), _BOTH),
    "a GPU is larger": DeviceEvent((_ONE, {("gpu", 1): 32}), {("gpu", 1): 32}),
    "all GPUs are gone": DeviceEvent((_ONE, {}), {}),
    "an FPGA is gone": DeviceEvent(({**_ONE, ("fpga", 1): 0}, _ONE), _ONE),
    "the Device is gone": DeviceEvent((_ONE, None), {}),
}
"""eventhandler_device_test.go."""

ALLOCATED: tuple[tuple[str, Any], ...] = (
    ("", []),
    ("incorrect-device-allocation", "invalid"),
    (ALL, [("gpu", 1, {CORE: 100, MEMORY: 16 * GIB, RATIO: 100}, "")]),
    (
        ALL.replace('"minor":1,', '"minor":1,"id": "0000:08.00.0",'),
        [("gpu", 1, {CORE: 100, MEMORY: 16 * GIB, RATIO: 100}, "0000:08.00.0")],
    ),
)
"""apis/extension/device_share_test.go, Test_GetDeviceAllocations; Test_SetDeviceAllocations writes the third."""

SPECS: tuple[tuple[str, tuple[bool, int] | None], ...] = (
    ("", None),
    ("{}", (False, 0)),
    ('{"allocatePolicy":"BestEffort"}', (False, 0)),
    ('{"allocatePolicy":"Restricted"}', (True, 0)),
    ('{"allocatePolicy":"Restricted", "ringBusBandwidth":"200Gi"}', (True, 200 * GIB)),
)
"""TestGetGPUPartitionSpec: whether restricted, and the bandwidth."""

TABLES: tuple[tuple[str, Any], ...] = (
    (
        '{"0": [{"minors": [0,1], "gpuLinkType": "NVLink","ringBusBandwidth": "200Gi", "allocationScore": 10}]}',
        [((0, 1), 10, 200 * GIB)],
    ),
    ("", []),
    ("Invalid JSON format", "invalid"),
)
"""TestGetGPUPartitionTable: minors, score and bandwidth of each."""

POLICIES: tuple[tuple[str, bool], ...] = (("Honor", True), ("Prefer", False), ("", False))
"""TestGetNodeLevelGPUAllocatePolicy."""

_WHERE = "pod.spec.containers[*].resources.requests"
ADMITTED: tuple[tuple[Asks, str], ...] = (
    ({WHOLE: 200}, ""),
    ({WHOLE: 70}, ""),
    (
        {MEMORY: 4000, RATIO: 100, SHARED: 1},
        f"{_WHERE}: Forbidden: declare GPU memory and GPU memory ratio at same time",
    ),
    ({SHARED: 2}, f"{_WHERE}: Forbidden: GPU memory and GPU memory ratio all is zero"),
    (
        {CORE: 101, RATIO: 100, SHARED: 2},
        f'{_WHERE}: Invalid value: "101": the requested gpuCore must multiple of shared',
    ),
    ({RATIO: 101, SHARED: 2}, f'{_WHERE}: Invalid value: "101": the requested gpuMemoryRatio must multiple of shared'),
)
"""pkg/webhook/pod/validating/verify_device_resource_test.go: the message, "" where the pod is admitted."""
RESERVE_POD = (
    "scheduling.koordinator.sh/reserve-pod",
    "annotations.scheduling.koordinator.sh/reserve-pod: Forbidden: cannot set in annotations",
)
"""verify_annotations_test.go."""

MADE: tuple[tuple[Asks, Asks], ...] = (
    ({CORE: 100, MEMORY: 4000, RATIO: 50}, {CORE: 100, MEMORY: 4000, RATIO: 50, SHARED: 1}),
    ({CORE: 100, MEMORY: 8000, RATIO: 200}, {CORE: 100, MEMORY: 8000, RATIO: 200, SHARED: 2}),
    ({WHOLE: 200}, {CORE: 200, RATIO: 200, SHARED: 2}),
)
"""pkg/webhook/pod/mutating/device_resource_spec_test.go."""

NOT_PLAYED: Mapping[str, str] = {
    "reservation_test.go, and every situation with a reservation": "Reservations are not served",
    "topology_hint_test.go, Test_appendAllocatedByHints": "no topology manager takes part in scheduling",
    "device_resources_test.go": "devices are preferred for reservations alone",
    "Test_failedPreemptGPUFromReservation": "a device of which twice as much is given as it has is never there",
    "cluster_colocation_profile_test.go": "the webhook drops these verdicts, so that they refuse nothing",
    "evaluate_quota_test.go, multi_quota_tree_affinity_test.go": "ElasticQuotas are not served",
    "extended_resource_spec_test.go": "batch-cpu and batch-memory are no devices",
    "situations of states that a plugin does not find": "the state of a cycle is Go's own",
}
"""Upstream's tables that say nothing of what is played here, and why."""

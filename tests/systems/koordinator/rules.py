"""Section 2 of the contract as a table: what pods ask for, and what it is taken for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GIB = 2**30
EIGHT = 8 * GIB

N, G, C, M, R, S = (
    "nvidia.com/gpu",
    "koordinator.sh/gpu",
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/gpu.shared",
)
RDMA, FPGA, XPU = "koordinator.sh/rdma", "koordinator.sh/fpga", "koordinator.sh/xpu"
SG, SC, SM, SR = (f"kubernetes.io/gpu{end}" for end in ("", "-core", "-memory", "-memory-ratio"))


@dataclass(frozen=True)
class RequestRow:
    """``asks``: what the pod requests. ``count`` devices of ``type``, and of each ``core``, ``memory``, ``ratio`` (or
    ``amount`` of a device that is no GPU) where one has 8 GiB; None in ``invalid``: it is valid, else what is said."""

    asks: Mapping[str, str]
    count: int = 0
    core: int = 0
    memory: int = 0
    ratio: int = 0
    invalid: str | None = None
    type: str = "gpu"
    amount: int = 0


@dataclass(frozen=True)
class PlaceRow:
    """What four GPUs of 8 GiB (or ``of`` MiB) give a pod: their minors, or ``refusal``. ``used``: minor -> ratio that
    others have of it, core alike."""

    asks: Mapping[str, str]
    minors: tuple[int, ...] | None
    used: Mapping[int, int] = field(default_factory=dict)
    unhealthy: tuple[int, ...] = ()
    refusal: str = ""
    of: tuple[int, ...] = (8192, 8192, 8192, 8192)


def _gpu(asks: Mapping[str, str], count: int, core: int, memory: int, ratio: int) -> RequestRow:
    return RequestRow(asks, count, core, memory, ratio)


def _bad(asks: Mapping[str, str], text: str) -> RequestRow:
    return RequestRow(asks, invalid=text)


COMBINATION = "invalid resource device requests"
UNIT = "invalid resource unit"

REQUESTS = (
    # nvidia alone: n whole GPUs
    _gpu({N: "1"}, 1, 100, EIGHT, 100),
    _gpu({N: "2"}, 2, 100, EIGHT, 100),
    _gpu({N: "3"}, 3, 100, EIGHT, 100),
    _gpu({N: "8"}, 8, 100, EIGHT, 100),
    # koordinator's gpu alone
    _gpu({G: "50"}, 1, 50, 4 * GIB, 50),
    _gpu({G: "1"}, 1, 1, EIGHT // 100, 1),
    _gpu({G: "100"}, 1, 100, EIGHT, 100),
    _gpu({G: "200"}, 2, 100, EIGHT, 100),
    _gpu({G: "800"}, 8, 100, EIGHT, 100),
    _bad({G: "150"}, UNIT),
    _bad({G: "101"}, UNIT),
    _bad({G: "199"}, UNIT),
    _bad({G: "250"}, UNIT),
    # memory alone: one device, its share truncated
    _gpu({M: "4Gi"}, 1, 0, 4 * GIB, 50),
    _gpu({M: "8Gi"}, 1, 0, EIGHT, 100),
    _gpu({M: "1Gi"}, 1, 0, GIB, 12),
    _gpu({M: "100Mi"}, 1, 0, 100 * 2**20, 1),
    _gpu({M: "1"}, 1, 0, 1, 0),
    _gpu({M: "16Gi"}, 1, 0, 16 * GIB, 200),
    # ratio alone
    _gpu({R: "50"}, 1, 0, 4 * GIB, 50),
    _gpu({R: "33"}, 1, 0, EIGHT * 33 // 100, 33),
    _gpu({R: "100"}, 1, 0, EIGHT, 100),
    _gpu({R: "200"}, 2, 0, EIGHT, 100),
    _gpu({R: "400"}, 4, 0, EIGHT, 100),
    _bad({R: "120"}, UNIT),
    # core and ratio
    _gpu({C: "50", R: "60"}, 1, 50, EIGHT * 60 // 100, 60),
    _gpu({C: "100", R: "100"}, 1, 100, EIGHT, 100),
    _gpu({C: "200", R: "200"}, 2, 100, EIGHT, 100),
    _gpu({C: "100", R: "200"}, 2, 50, EIGHT, 100),
    _gpu({C: "100", R: "300"}, 3, 33, EIGHT, 100),
    _gpu({C: "200", R: "100"}, 1, 200, EIGHT, 100),
    _bad({C: "150", R: "100"}, UNIT),
    _bad({C: "50", R: "150"}, UNIT),
    # core and memory
    _gpu({C: "60", M: "4Gi"}, 1, 60, 4 * GIB, 50),
    _gpu({C: "100", M: "8Gi"}, 1, 100, EIGHT, 100),
    _gpu({C: "200", M: "16Gi"}, 1, 200, 16 * GIB, 200),
    _bad({C: "110", M: "4Gi"}, UNIT),
    # core alone
    _bad({C: "50"}, COMBINATION),
    _bad({C: "100"}, COMBINATION),
    _bad({C: "200"}, COMBINATION),
    # shared
    _gpu({S: "2", R: "100"}, 2, 0, 4 * GIB, 50),
    _gpu({S: "2", M: "8Gi"}, 2, 0, 4 * GIB, 50),
    _gpu({S: "2", R: "100", C: "60"}, 2, 30, 4 * GIB, 50),
    _gpu({S: "2", M: "8Gi", C: "100"}, 2, 50, 4 * GIB, 50),
    _gpu({S: "1", R: "40"}, 1, 0, EIGHT * 40 // 100, 40),
    _gpu({S: "4", R: "400"}, 4, 0, EIGHT, 100),
    _gpu({S: "3", R: "99", C: "30"}, 3, 10, EIGHT * 33 // 100, 33),
    _bad({S: "2"}, COMBINATION),
    _bad({S: "2", C: "100"}, COMBINATION),
    _bad({S: "2", R: "75"}, COMBINATION),
    _bad({S: "2", R: "100", C: "51"}, COMBINATION),
    _bad({S: "2", R: "300"}, COMBINATION),
    _bad({S: "2", M: "4Gi", C: "300"}, COMBINATION),
    _bad({S: "2", M: "4Gi", R: "100"}, COMBINATION),
    _gpu({S: "3", M: "4Gi"}, 3, 0, 4 * GIB // 3, 16),
    _bad({S: "2", G: "100"}, COMBINATION),
    _bad({S: "2", N: "2"}, COMBINATION),
    # what translation yields
    _gpu({C: "200", R: "200", M: "16Gi"}, 2, 100, EIGHT, 100),
    _gpu({C: "50", R: "50", M: "4Gi"}, 1, 50, 4 * GIB, 50),
    _gpu({C: "60", R: "12", M: "1Gi"}, 1, 60, GIB, 12),
    _bad({R: "50", M: "4Gi"}, COMBINATION),
    _bad({C: "200", R: "200", M: "17179869185"}, COMBINATION),
    # nvidia beside its own translation, and beside anything else
    _gpu({N: "2", C: "200", R: "200"}, 2, 100, EIGHT, 100),
    _gpu({N: "1", C: "100", R: "100"}, 1, 100, EIGHT, 100),
    _gpu({"amd.com/gpu": "2"}, 2, 100, EIGHT, 100),
    _gpu({"dcu.com/gpu": "1", C: "100", R: "100"}, 1, 100, EIGHT, 100),
    _bad({"dcu.com/gpu": "1", "amd.com/gpu": "1"}, COMBINATION),
    _bad({"dcu.com/gpu": "2", C: "100", R: "200"}, COMBINATION),
    _bad({N: "2", C: "100", R: "200"}, COMBINATION),
    _bad({N: "2", C: "100", R: "100"}, COMBINATION),
    _bad({N: "1", R: "100"}, COMBINATION),
    _bad({N: "1", C: "100"}, COMBINATION),
    _bad({N: "1", M: "8Gi"}, COMBINATION),
    _bad({N: "1", G: "100"}, COMBINATION),
    _bad({N: "1", C: "100", R: "100", M: "8Gi"}, COMBINATION),
    _bad({G: "100", R: "100"}, COMBINATION),
    _bad({G: "100", M: "8Gi"}, COMBINATION),
    _bad({G: "100", C: "100"}, COMBINATION),
    _bad({G: "100", C: "100", R: "100"}, COMBINATION),
    # the seed's names are today's
    _gpu({SG: "50"}, 1, 50, 4 * GIB, 50),
    _gpu({SC: "50", SR: "60"}, 1, 50, EIGHT * 60 // 100, 60),
    _gpu({SC: "60", SM: "4Gi"}, 1, 60, 4 * GIB, 50),
    _gpu({SC: "200", SR: "200", SM: "16Gi"}, 2, 100, EIGHT, 100),
    _gpu({C: "50", SR: "60"}, 1, 50, EIGHT * 60 // 100, 60),
    _bad({SC: "50", C: "50", R: "60"}, "under two names"),
    _bad({SC: "50"}, COMBINATION),
    # other devices
    RequestRow({RDMA: "100"}, 1, type="rdma", amount=100),
    RequestRow({RDMA: "1"}, 1, type="rdma", amount=1),
    RequestRow({RDMA: "200"}, 2, type="rdma", amount=100),
    RequestRow({"kubernetes.io/rdma": "100"}, 1, type="rdma", amount=100),
    RequestRow({FPGA: "100"}, 1, type="fpga", amount=100),
    RequestRow({FPGA: "300"}, 3, type="fpga", amount=100),
    RequestRow({FPGA: "50"}, 1, type="fpga", amount=50),
    RequestRow({"kubernetes.io/fpga": "200"}, 2, type="fpga", amount=100),
    RequestRow({XPU: "50"}, 1, type="xpu", amount=50),
    RequestRow({XPU: "200"}, 2, type="xpu", amount=100),
    _bad({RDMA: "150"}, UNIT),
    _bad({FPGA: "101"}, UNIT),
    _bad({XPU: "150"}, UNIT),
)

PLACES = (
    PlaceRow({N: "1"}, (0,)),
    PlaceRow({N: "4"}, (0, 1, 2, 3)),
    PlaceRow({N: "5"}, None, refusal="Insufficient gpu devices"),
    PlaceRow({N: "1"}, (1,), {0: 1}),
    PlaceRow({N: "3"}, (1, 2, 3), {0: 50}),
    PlaceRow({N: "4"}, None, {3: 1}, refusal="Insufficient gpu devices"),
    PlaceRow({G: "50"}, (0,), {0: 50}),
    PlaceRow({G: "51"}, (1,), {0: 50}),
    PlaceRow({G: "50"}, (2,), {0: 51, 1: 100}),
    PlaceRow({G: "50"}, None, {0: 60, 1: 60, 2: 60, 3: 60}, refusal="Insufficient gpu devices"),
    PlaceRow({G: "200"}, (0, 3), {1: 1, 2: 1}),
    PlaceRow({G: "200"}, None, {0: 1, 1: 1, 2: 1}, refusal="Insufficient gpu devices"),
    PlaceRow({N: "1"}, (1,), unhealthy=(0,)),
    PlaceRow({N: "3"}, None, unhealthy=(0, 1), refusal="Insufficient gpu devices"),
    PlaceRow({G: "50"}, (3,), {0: 100}, unhealthy=(1, 2)),
    PlaceRow({M: "4Gi"}, (0,), {0: 50}),
    PlaceRow({M: "4097Mi"}, (1,), {0: 50}),
    PlaceRow({M: "16Gi"}, None, refusal="Insufficient gpu devices"),
    PlaceRow({M: "10Gi"}, (1,), of=(8192, 16384, 16384, 8192)),
    PlaceRow({R: "50"}, (0,), {0: 50}),
    PlaceRow({C: "200", M: "16Gi"}, None, refusal="Insufficient gpu devices"),
    PlaceRow({C: "50", R: "50", M: "4Gi"}, (1,), of=(16384, 8192, 8192, 8192)),
    PlaceRow({C: "50", R: "50", M: "4Gi"}, None, of=(16384, 16384, 16384, 16384), refusal="Insufficient gpu devices"),
    PlaceRow({S: "2", R: "100"}, (0, 1), {0: 50}),
    PlaceRow({S: "2", R: "100"}, (1, 2), {0: 51}),
    PlaceRow({S: "5", R: "50"}, None, refusal="Insufficient gpu devices"),
)

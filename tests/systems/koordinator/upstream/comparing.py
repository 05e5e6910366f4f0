"""Our answer to a case beside upstream's; each difference is of a row of docs/koordinator.md, or an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from mews.kube.api.quantities import whole
from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import Allocations, parse_allocations
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.requests import ask_of
from mews.systems.koordinator.scoring import weights_of
from mews.systems.koordinator.usage import PodUse
from tests.systems.koordinator.upstream.drawing import (
    CORE,
    FPGA,
    HINT,
    JOINT,
    MEMORY,
    MODEL,
    NVIDIA,
    RATIO,
    RDMA,
    TABLE,
    Case,
)

Answer = Mapping[str, Any]
"""``verdict``: invalid, filtered, unreserved or given; ``score`` where it is not filtered, and what is given."""
_CHOICES: Mapping[str, Literal["leastAllocated", "mostAllocated"]] = {
    "LeastAllocated": "leastAllocated",
    "MostAllocated": "mostAllocated",
}


def ours(case: Case) -> Answer:
    """What this scheduler does with it."""
    cache = NodeDeviceCache()
    cache.set_node({"metadata": {"name": "n", "labels": case["nodeLabels"]}})
    cache.set_device(case["device"])
    use = cache.use("n")
    for number, allocations in enumerate(case["used"]):
        if use is not None:
            use = use.plus(PodUse(f"u{number}", f"d/u{number}", parse_allocations(json.dumps(allocations))))
    requests = {name: whole(value) for name, value in case["requests"].items()}
    try:
        ask = ask_of(requests, case["annotations"])
    except InvalidRequestError:
        return {"verdict": "invalid"}
    if ask is None:
        return {"verdict": "given", "score": 0, "given": {}}
    if use is None:
        return {"verdict": "filtered"}
    how: dict[str, Any] = {"choice": _CHOICES[case["strategy"]], "weights": weights_of(case["weights"], "weights")}
    if isinstance(policy.filtered(ask, use, **how), policy.NoDevices):
        return {"verdict": "filtered"}
    score = policy.node_score(ask, use, **how)
    given = policy.allocate(ask, use, **how)
    if isinstance(given, policy.NoDevices):
        return {"verdict": "unreserved", "score": score}
    return {"verdict": "given", "score": score, "given": _by_type(given)}


def _by_type(given: Allocations) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for each in given:
        functions = sorted(one.bus for one in each.functions)
        found.setdefault(each.type, []).append([each.minor, dict(sorted(each.resources.items())), functions])
    return {kind: sorted(entries) for kind, entries in sorted(found.items())}


def compared(answer: Mapping[str, Any]) -> Answer:
    """Upstream's answer in the same form."""
    for verdict in ("invalid", "filtered"):
        if answer.get(verdict):
            return {"verdict": verdict}
    if answer.get("unreserved"):
        return {"verdict": "unreserved", "score": answer["score"]}
    given = parse_allocations(json.dumps(answer.get("given") or {}))
    return {"verdict": "given", "score": answer["score"], "given": _by_type(given)}


def row_of(case: Case, upstream: Answer, mine: Answer) -> str:
    """The row of the table of differences that a difference is of; "" for none."""
    seen = _Seen(case)
    verdicts = upstream["verdict"], mine["verdict"]
    return next((row for row, holds in ROWS.items() if holds(seen, verdicts)), "")


class _Seen:
    """What the rows look at in a case."""

    def __init__(self, case: Case) -> None:
        self.requests = frozenset(name for name, value in case["requests"].items() if whole(value))
        self.hints: Mapping[str, Any] = json.loads(case["annotations"].get(HINT, "{}"))
        self.joint: Mapping[str, Any] = json.loads(case["annotations"].get(JOINT, "{}"))
        self.table: Mapping[str, Any] = json.loads(case["device"]["metadata"]["annotations"].get(TABLE, "{}"))
        self.by_model = case["nodeLabels"].get(MODEL) in ("H100", "H800", "H20") and not self.table
        ratio, core = (whole(case["requests"].get(name, 0)) for name in (RATIO, CORE))
        self.core_above_one = core > max(ratio, 100)
        self.device: Mapping[str, Any] = case["device"]
        self.used: Sequence[Mapping[str, Any]] = case["used"]

    def asks(self, kind: str) -> bool:
        names = {"rdma": {RDMA}, "fpga": {FPGA}}
        return bool(self.requests & names[kind] if kind in names else self.requests - {RDMA, FPGA})

    def hinted(self, key: str, *values: str, kinds: tuple[str, ...] = ("gpu", "rdma", "fpga")) -> bool:
        said = [hint.get(key) for kind, hint in self.hints.items() if kind in kinds and self.asks(kind)]
        return any(each in values if values else each is not None for each in said)

    @property
    def lacks_core(self) -> bool:
        gpus = [each for each in self.device["spec"]["devices"] if each["type"] == "gpu"]
        return any(CORE not in each["resources"] for each in gpus)

    @property
    def by_bytes(self) -> bool:
        """Whether another pod has more bytes of a GPU than its ratio says."""
        total = {each["minor"]: each["resources"] for each in self.device["spec"]["devices"] if each["type"] == "gpu"}
        return any(
            whole(one["resources"][MEMORY]) * 100 > whole(one["resources"][RATIO]) * whole(total[one["minor"]][MEMORY])
            for given in self.used
            for one in given.get("gpu", ())
        )

    @property
    def scores_differ(self) -> bool:
        return any(len({each["allocationScore"] for each in sets}) > 1 for sets in self.table.values())


Verdicts = tuple[str, str]
_GPU = ("gpu",)
ROWS: Mapping[str, Callable[[_Seen, Verdicts], bool]] = {
    "exclusivePolicy": lambda seen, _: seen.hinted("exclusivePolicy", "DeviceLevel", "PCIeLevel"),
    "allocateStrategy of GPUs": lambda seen, _: seen.hinted("allocateStrategy", kinds=_GPU),
    "requiredTopologyScope Device": lambda seen, _: seen.hinted("requiredTopologyScope", "Device", kinds=_GPU),
    "requiredTopologyScope and partitions": lambda seen, _: (
        bool(seen.table or seen.by_model) and seen.hinted("requiredTopologyScope", kinds=_GPU)
    ),
    "requiredTopologyScope of other devices": lambda seen, _: seen.hinted(
        "requiredTopologyScope", kinds=("rdma", "fpga")
    ),
    "requests that come translated": lambda seen, verdicts: (
        verdicts[0] == "invalid" and seen.requests - {RDMA, FPGA} in ({NVIDIA, CORE, RATIO}, {CORE, MEMORY, RATIO})
    ),
    "allocationScore": lambda seen, _: seen.scores_differ,
    "Filter and Reserve": lambda seen, verdicts: (
        verdicts == ("unreserved", "filtered") and seen.joint.get("requiredScope") == "SamePCIe"
    ),
    "an empty table": lambda seen, _: seen.device["metadata"]["annotations"].get(TABLE) == "{}",
    "resources that a GPU does not list": lambda seen, _: seen.asks("gpu") and seen.lacks_core,
    "bytes and ratios": lambda seen, _: seen.asks("gpu") and MEMORY not in seen.requests and seen.by_bytes,
    "more core than GPUs": lambda seen, _: seen.core_above_one,
}
"""Row of docs/koordinator.md -> whether a difference is of it."""

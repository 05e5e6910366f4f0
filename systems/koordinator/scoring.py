"""How full devices and nodes are, as scores of 0 to 100: upstream's scorers of DeviceShare (v1.6.0,
pkg/scheduler/plugins/deviceshare/scoring.go). Pure.

Each resource of a device that has a weight is scored by how much of it would be used with the pod: the less the better
(leastAllocated), or the more (mostAllocated). The score is the mean by weights, truncated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from mews.systems.koordinator.devices import Amounts
from mews.systems.koordinator.errors import KoordinatorConfigError
from mews.systems.koordinator.names import FPGA, FPGA_RESOURCE, GPU, RATIO, RDMA, RDMA_RESOURCE, type_of_resource

Strategy = Literal["leastAllocated", "mostAllocated"]
Weights = tuple[tuple[str, int], ...]
"""Resource, weight from 1 to 100. A resource without a weight does not count."""

MAX_SCORE = 100
DEFAULT_WEIGHTS: Weights = ((RATIO, 1), (RDMA_RESOURCE, 1), (FPGA_RESOURCE, 1))
"""Upstream's (pkg/scheduler/apis/config/v1beta3/defaults.go)."""


def weights_of(given: Mapping[str, Any] | None, where: str) -> Weights:
    """Weights as an option gives them, resource -> weight; upstream's defaults if none are given.

    Raises KoordinatorConfigError for a weight that upstream refuses, and for a resource that is of no device.
    """
    if not given:
        return DEFAULT_WEIGHTS
    if not isinstance(given, Mapping):
        raise KoordinatorConfigError(f"{where}: {given!r}: must be a mapping of resources to weights")
    for name, weight in given.items():
        if not isinstance(name, str) or not type_of_resource(name):
            raise KoordinatorConfigError(f"{where}: {name!r}: must be a resource of a device, such as {RATIO}")
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 < weight <= 100:
            raise KoordinatorConfigError(f"{where}: {name}: {weight!r}: must be a weight from 1 to 100")
    return tuple(given.items())


def weights_for(kind: str, resources: Iterable[str], weights: Weights) -> Weights:
    """Return the weights that count for devices of a type. Of a type that upstream does not know each resource counts
    alike where no weight names any."""
    if kind in (GPU, RDMA, FPGA) or any(name in dict(weights) for name in resources):
        return weights
    return tuple((name, 1) for name in resources)


def score(asked: Amounts, total: Amounts, free: Amounts, weights: Iterable[tuple[str, int]], strategy: Strategy) -> int:
    """Return that of a device, or of the sums of devices, with what a pod asks of it."""
    weighted = weight_sum = 0
    for name, weight in weights:
        capacity = total.get(name, 0)
        if not capacity:
            continue
        used = capacity - free.get(name, 0) + asked.get(name, 0) if capacity >= free.get(name, 0) else capacity
        weighted += weight * _score_of(used, capacity, strategy)
        weight_sum += weight
    return weighted // weight_sum if weight_sum else 0


def _score_of(used: int, capacity: int, strategy: Strategy) -> int:
    if strategy == "mostAllocated":
        return min(used, capacity) * MAX_SCORE // capacity
    return max(capacity - used, 0) * MAX_SCORE // capacity


def normalized(scores: Mapping[str, int]) -> dict[str, int]:
    """Scores of nodes so that the highest is 100 (Kubernetes' DefaultNormalizeScore)."""
    highest = max(scores.values(), default=0)
    return {node: MAX_SCORE * value // highest if highest else value for node, value in scores.items()}

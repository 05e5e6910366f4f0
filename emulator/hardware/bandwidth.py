"""How fast GPUs move data to each other: a pure function of the matrix that ``nvidia-smi topo -m`` prints.

Per direction, in GB/s. NVLink: so much for each link by its generation (NVIDIA's data sheets: Pascal 20; Volta, Ampere
and Hopper 25; Blackwell 50). PCIe: the rate of the slower of the two slots after encoding (PCI Express Base 5.0 section
4.2), times a factor of the level: what a transfer loses that goes through more bridges, the root complex, or the link
between the processors. The factors are assumed; only their order is what NVML documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mews.emulator.hardware.gpu_profile import GpuProfile
from mews.emulator.hardware.topology import SELF, Matrix

PASCAL, BLACKWELL = 4, 10
"""NVML's numbers of architectures."""

LANE_GB_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""Of one lane of PCI Express by generation."""

LEVEL_SHARE = {"PIX": 1.0, "PXB": 0.95, "PHB": 0.8, "NODE": 0.7, "SYS": 0.5}


class GpuLinkRate(Struct, frozen=True):
    """What one GPU can move: over one of its NVLinks, and over its slot."""

    nvlink_gb_s: float
    pcie_gb_s: float


def link_rate(profile: GpuProfile) -> GpuLinkRate:
    """Return that of a GPU of that model."""
    generation = profile.architecture
    nvlink_gb_s = 20.0 if generation <= PASCAL else 50.0 if generation >= BLACKWELL else 25.0
    return GpuLinkRate(nvlink_gb_s, LANE_GB_S[profile.pcie_gen] * profile.pcie_width)


def pairwise_bandwidth(matrix: Matrix, rates: Sequence[GpuLinkRate]) -> tuple[tuple[float, ...], ...]:
    """GB/s between each pair, 0 of a GPU with itself. ``rates`` has one entry per row.

    Raises ValueError for a matrix of another size or with a word that is none.
    """
    count = len(rates)
    if len(matrix) != count or any(len(row) != count for row in matrix):
        raise ValueError(f"topology: {len(matrix)} rows for {count} GPUs; give one row and column per GPU")
    return tuple(
        tuple(_between(word, rates[a], rates[b]) for b, word in enumerate(row)) for a, row in enumerate(matrix)
    )


def _between(word: str, one: GpuLinkRate, other: GpuLinkRate) -> float:
    if word == SELF:
        return 0.0
    if word in LEVEL_SHARE:
        return round(LEVEL_SHARE[word] * min(one.pcie_gb_s, other.pcie_gb_s), 3)
    links = word.removeprefix("NV")
    if links == word or not links.isdecimal():
        raise ValueError(f"topology: {word!r}: must be {SELF}, NV<n> or one of {', '.join(LEVEL_SHARE)}")
    return int(links) * min(one.nvlink_gb_s, other.nvlink_gb_s)


def smallest_and_sum(bandwidth: Sequence[Sequence[float]], chosen: Sequence[int]) -> tuple[float, float]:
    """Return that of the pairs of a set of GPUs, the smallest bandwidth and their sum: what a choice of GPUs is ranked
    by, in this order. A set without a pair has no bound: (inf, 0)."""
    pairs = [bandwidth[a][b] for number, a in enumerate(chosen) for b in chosen[number + 1 :]]
    return (min(pairs), round(sum(pairs), 6)) if pairs else (float("inf"), 0.0)


def by_uuid(uuids: Sequence[str], bandwidth: Sequence[Sequence[float]]) -> Mapping[str, Mapping[str, float]]:
    """Return the same by UUID, without the GPU itself, as a report of the host bears it."""
    return {one: {other: bandwidth[a][b] for b, other in enumerate(uuids) if a != b} for a, one in enumerate(uuids)}

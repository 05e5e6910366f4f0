"""How fast the GPUs of a node reach each other, by what NVML says of them: MB/s per direction. Pure.

NVLink: so many GB/s for each link by its generation (NVIDIA's data sheets: Pascal 20; Volta, Ampere and Hopper 25;
Blackwell 50). PCIe: the rate of the slower of the two slots after encoding (PCI Express Base 5.0 section 4.2), times a
share by level; only the order of the shares is documented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.kube.system.nvml import GpuDescription, NvmlDescription
from mews.systems.koordinator.devices import DeviceLink
from mews.systems.koordinator.names import GPU

_PASCAL, _BLACKWELL = 4, 10
"""NVML's numbers of architectures."""
_LANE_MB_S = {1: 250.0, 2: 500.0, 3: 985.0, 4: 1969.0, 5: 3938.0, 6: 7563.0}
_SHARE = {"PIX": 1.0, "PXB": 0.95, "PHB": 0.8, "NODE": 0.7, "SYS": 0.5}


def gpu_links(described: NvmlDescription, minors: Mapping[str, int]) -> tuple[DeviceLink, ...]:
    """Return the links between the GPUs whose minor numbers (by UUID) are known; none of a pair that cannot be
    valued."""
    found = []
    for a, one in enumerate(described.gpus):
        for b, other in enumerate(described.gpus[:a]):
            if one.uuid in minors and other.uuid in minors:
                word = described.matrix[a][b]
                bandwidth = _bandwidth(word, (one, other))
                if bandwidth:
                    low, high = sorted((minors[one.uuid], minors[other.uuid]))
                    found.append(DeviceLink(GPU, (low, high), bandwidth, word))
    return tuple(sorted(found, key=lambda link: link.minors))


def _bandwidth(word: str, pair: Sequence[GpuDescription]) -> int:
    if word in _SHARE:
        lanes = [_LANE_MB_S.get(gpu.pcie_generation, 0.0) * gpu.pcie_width for gpu in pair]
        return round(_SHARE[word] * min(lanes))
    links = word.removeprefix("NV")
    return int(links) * min(_nvlink_mb_s(gpu) for gpu in pair) if links.isdecimal() else 0


def _nvlink_mb_s(gpu: GpuDescription) -> int:
    return 20_000 if gpu.architecture <= _PASCAL else 50_000 if gpu.architecture >= _BLACKWELL else 25_000

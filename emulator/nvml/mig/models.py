"""The MIG profiles of each model, as data.

Names, numbers of instances, engines and fractions: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles".
Multiprocessors, memory and IDs: ``nvidia-smi mig -lgip`` of an A100, an H100 and an H200 as published by their owners;
of A30, A100 and B200 also go-nvml v0.13.4-0, ``pkg/nvml/mock/gpus``. The guide has no tables for GB200, GB300 and H20:
their names are those of NVIDIA's mig-parted and their engines those of B200 and H100. Multiprocessors of H20, H100
PCIe and GB300 are multiples of the smallest profile's. B300: names of GPU Operator 25.10, the rest as B200's.
RTX PRO: ``mews.emulator.nvml.mig.rtx_pro``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mews.emulator.hardware.gpu_profile import GpuProfile
from mews.emulator.nvml.mig.rtx_pro import RTX_PRO_TABLES
from mews.emulator.nvml.mig.table import MigEngines, MigProfile, MigTable

SEVENTHS = (0, 1, 2, 3, 4, 5, 6)
PAIRS, DOUBLE = (0, 2, 4), (0, 2, 4, 6)
_Row = tuple[str, int, int]
"""Name, multiprocessors, MiB."""
_HOPPER = ((1, 1, 0, 1, 0), (1, 1, 0, 1, 1), (1, 1, 0, 1, 0), (2, 2, 0, 2, 0), (3, 3, 0, 3, 0), (4, 4, 0, 4, 0),
           (8, 7, 0, 7, 1))  # fmt: skip
_AMPERE = ((1, 0, 0, 0, 0), (1, 1, 0, 1, 1), (1, 1, 0, 0, 0), (2, 1, 0, 0, 0), (3, 2, 0, 0, 0), (4, 2, 0, 0, 0),
           (7, 5, 0, 1, 1))  # fmt: skip
_BLACKWELL = ((2, 1, 0, 1, 0), (2, 1, 0, 1, 1), (2, 1, 0, 1, 0), (3, 1, 0, 1, 0), (6, 1, 0, 1, 0), (8, 1, 0, 1, 0),
              (16, 1, 0, 1, 1))  # fmt: skip
_SEVEN = ((0, 19, 1, 7, 1, SEVENTHS), (7, 20, 1, 1, 1, SEVENTHS), (9, 15, 1, 4, 2, DOUBLE), (1, 14, 2, 3, 2, PAIRS),
          (2, 9, 3, 2, 4, (0, 4)), (3, 5, 4, 1, 4, (0,)), (4, 0, 7, 1, 8, (0,)))  # fmt: skip
"""Of boards with seven slices: number, ID, slices, instances, units, starts."""


def _seven(engines: tuple[tuple[int, ...], ...], *rows: _Row) -> MigTable:
    profiles = tuple(
        MigProfile(name, number, profile_id, slices, count, sms, mib, MigEngines(*counts), size, starts)
        for (number, profile_id, slices, count, size, starts), (name, sms, mib), counts in zip(
            _SEVEN, rows, engines, strict=True
        )
    )
    return MigTable(profiles, most=7, units=8)


_A30 = MigTable(
    (
        MigProfile("1g.6gb", 0, 14, 1, 4, 14, 5952, MigEngines(1), 1, (0, 1, 2, 3)),
        MigProfile("1g.6gb+me", 7, 21, 1, 1, 14, 5952, MigEngines(1, 1, 0, 1, 1), 1, (0, 1, 2, 3)),
        MigProfile("2g.12gb", 1, 5, 2, 2, 28, 12032, MigEngines(2, 2), 2, (0, 2)),
        MigProfile("2g.12gb+me", 8, 6, 2, 1, 28, 12032, MigEngines(2, 2, 0, 1, 1), 2, (0, 2)),
        MigProfile("4g.24gb", 3, 0, 4, 1, 56, 24192, MigEngines(4, 4, 0, 1, 1), 4, (0,)),
    ),
    most=4,
    units=4,
)
_A100_40 = _seven(
    _AMPERE,
    ("1g.5gb", 14, 4864), ("1g.5gb+me", 14, 4864), ("1g.10gb", 14, 9856), ("2g.10gb", 28, 9856),
    ("3g.20gb", 42, 19968), ("4g.20gb", 56, 19968), ("7g.40gb", 98, 40192),
)  # fmt: skip
_A100_80 = _seven(
    ((1, 1, 0, 0, 0), *_AMPERE[1:]),
    ("1g.10gb", 14, 9728), ("1g.10gb+me", 14, 9728), ("1g.20gb", 14, 19968), ("2g.20gb", 28, 19968),
    ("3g.40gb", 42, 40192), ("4g.40gb", 56, 40192), ("7g.80gb", 98, 80384),
)  # fmt: skip
_H100 = _seven(
    _HOPPER,
    ("1g.10gb", 16, 9984), ("1g.10gb+me", 16, 9984), ("1g.20gb", 26, 20096), ("2g.20gb", 32, 20096),
    ("3g.40gb", 60, 40448), ("4g.40gb", 64, 40448), ("7g.80gb", 132, 81152),
)  # fmt: skip
_H100_PCIE = _seven(
    _HOPPER,
    ("1g.10gb", 16, 9984), ("1g.10gb+me", 16, 9984), ("1g.20gb", 16, 20096), ("2g.20gb", 32, 20096),
    ("3g.40gb", 48, 40448), ("4g.40gb", 64, 40448), ("7g.80gb", 114, 81152),
)  # fmt: skip
_H200 = _seven(
    _HOPPER,
    ("1g.18gb", 16, 16384), ("1g.18gb+me", 16, 16384), ("1g.35gb", 26, 33280), ("2g.35gb", 32, 33280),
    ("3g.71gb", 60, 71168), ("4g.71gb", 64, 71168), ("7g.141gb", 132, 143360),
)  # fmt: skip
_H20 = _seven(
    _HOPPER,
    ("1g.12gb", 8, 12032), ("1g.12gb+me", 8, 12032), ("1g.24gb", 8, 24192), ("2g.24gb", 16, 24192),
    ("3g.48gb", 24, 48512), ("4g.48gb", 32, 48512), ("7g.96gb", 78, 97280),
)  # fmt: skip
_B200 = _seven(
    _BLACKWELL,
    ("1g.23gb", 18, 22528), ("1g.23gb+me", 18, 22528), ("1g.45gb", 18, 45312), ("2g.45gb", 36, 45312),
    ("3g.90gb", 54, 90880), ("4g.90gb", 72, 90880), ("7g.180gb", 148, 182400),
)  # fmt: skip
_B300 = _seven(
    _BLACKWELL,
    ("1g.34gb", 18, 33984), ("1g.34gb+me", 18, 33984), ("1g.67gb", 18, 68224), ("2g.67gb", 36, 68224),
    ("3g.135gb", 54, 136704), ("4g.135gb", 72, 136704), ("7g.269gb", 148, 274048),
)  # fmt: skip
_GB200 = _seven(
    _BLACKWELL,
    ("1g.23gb", 18, 23296), ("1g.23gb+me", 18, 23296), ("1g.47gb", 18, 46848), ("2g.47gb", 36, 46848),
    ("3g.93gb", 54, 93952), ("4g.93gb", 72, 93952), ("7g.186gb", 152, 188416),
)  # fmt: skip
_GB300 = _seven(
    _BLACKWELL,
    ("1g.35gb", 18, 35072), ("1g.35gb+me", 18, 35072), ("1g.70gb", 18, 70400), ("2g.70gb", 36, 70400),
    ("3g.139gb", 54, 141056), ("4g.139gb", 72, 141056), ("7g.278gb", 160, 282624),
)  # fmt: skip

MIG_TABLES: Mapping[str, MigTable] = MappingProxyType(
    {
        "NVIDIA A30": _A30,
        "NVIDIA A100-SXM4-40GB": _A100_40,
        "NVIDIA A100-SXM4-80GB": _A100_80,
        "NVIDIA A100 80GB PCIe": _A100_80,
        "NVIDIA H100 PCIe": _H100_PCIE,
        "NVIDIA H100 80GB HBM3": _H100,
        "NVIDIA H200": _H200,
        "NVIDIA H20": _H20,
        "NVIDIA B200": _B200,
        "NVIDIA B300 SXM6 AC": _B300,
        "NVIDIA GB200": _GB200,
        "NVIDIA GB300": _GB300,
        **RTX_PRO_TABLES,
    }
)
"""By the name that NVML gives the model."""


def mig_table(profile: GpuProfile) -> MigTable | None:
    """Return the table of a model; None where it has no MIG."""
    return MIG_TABLES.get(profile.name) if profile.mig_capable else None

"""The MIG profiles of NVIDIA's RTX PRO Blackwell series, as data.

Names, engines, numbers of instances and what a model lacks: NVIDIA Multi-Instance GPU User Guide (v610), "Supported MIG
Profiles". IDs, multiprocessors, memory and placements of the RTX PRO 6000: ``nvidia-smi mig -lgip`` and ``-lgipp`` of a
Server Edition as published by its owners. The other two are assumed to have the IDs that a half and the whole have on
all models, the placements of the RTX PRO 6000's halves, and as many multiprocessors and as much memory as their board
leaves to each. Profile numbers: ``NVML_GPU_INSTANCE_PROFILE_*`` of go-nvml v0.13.1-0.

An RTX PRO 4500 has no ``+me``: its optical flow comes with ``+me.all`` only. An RTX PRO 5000 has one JPEG engine, which
comes with ``+me`` and ``+me.all``. Boards of two instances have no quarters.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mews.emulator.nvml.mig.table import MigEngines, MigProfile, MigTable

ONE, TWO, FOUR = 0, 1, 3
"""Plain profiles of so many slices (``NVML_GPU_INSTANCE_PROFILE_n_SLICE``); the following have a suffix."""
ONE_ME, ONE_GFX, TWO_GFX, FOUR_GFX, ONE_NO_ME, TWO_NO_ME, ONE_ALL_ME, TWO_ALL_ME = 7, 10, 11, 12, 13, 14, 15, 16
_QUARTERS, _HALVES = (0, 3, 6, 9), (0, 6)
_Media = tuple[int, int, int, int]
"""Decoders, encoders, JPEG engines, optical flow."""
_NONE: _Media = (0, 0, 0, 0)


def _profile(
    name: str, number: int, profile_id: int, count: int, sms: int, mib: int, media: _Media, copy: int
) -> MigProfile:
    """Slices and place come from the ID: fractions of the board have the same on all models."""
    decoder, encoder, jpeg, ofa = media
    size, starts = _PLACES[profile_id]
    engines = MigEngines(copy, decoder, encoder, jpeg, ofa)
    graphics = name.endswith("+gfx")
    return MigProfile(name, number, profile_id, int(name[0]), count, sms, mib, engines, size, starts, graphics)


_PLACES = MappingProxyType(
    {
        **dict.fromkeys((14, 21, 47, 65, 67), (3, _QUARTERS)),
        **dict.fromkeys((5, 6, 35, 64, 66), (6, _HALVES)),
        **dict.fromkeys((0, 32), (12, (0,))),
    }
)
"""Profile ID -> units of memory, starts."""

_RTX_PRO_6000 = MigTable(
    (
        _profile("1g.24gb", ONE, 14, 4, 46, 24192, (1, 1, 1, 0), 1),
        _profile("1g.24gb+me", ONE_ME, 21, 1, 46, 24192, (1, 1, 1, 1), 1),
        _profile("1g.24gb+gfx", ONE_GFX, 47, 4, 46, 24192, (1, 1, 1, 0), 1),
        _profile("1g.24gb+me.all", ONE_ALL_ME, 65, 1, 46, 24192, (4, 4, 4, 1), 1),
        _profile("1g.24gb-me", ONE_NO_ME, 67, 4, 46, 24192, _NONE, 1),
        _profile("2g.48gb", TWO, 5, 2, 94, 48512, (2, 2, 2, 0), 2),
        _profile("2g.48gb+gfx", TWO_GFX, 35, 2, 94, 48512, (2, 2, 2, 0), 2),
        _profile("2g.48gb+me.all", TWO_ALL_ME, 64, 1, 94, 48512, (4, 4, 4, 1), 2),
        _profile("2g.48gb-me", TWO_NO_ME, 66, 2, 94, 48512, _NONE, 2),
        _profile("4g.96gb", FOUR, 0, 1, 188, 97408, (4, 4, 4, 1), 4),
        _profile("4g.96gb+gfx", FOUR_GFX, 32, 1, 188, 97408, (4, 4, 4, 1), 4),
    ),
    most=4,
    units=12,
    step=3,
    counted_engines=True,
)
_RTX_PRO_5000 = MigTable(
    (
        _profile("1g.24gb", ONE, 5, 2, 54, 24192, (1, 1, 0, 0), 1),
        _profile("1g.24gb+me", ONE_ME, 6, 1, 54, 24192, (1, 1, 1, 1), 1),
        _profile("1g.24gb+gfx", ONE_GFX, 35, 2, 54, 24192, (1, 1, 0, 0), 1),
        _profile("1g.24gb+me.all", ONE_ALL_ME, 64, 1, 54, 24192, (3, 3, 1, 1), 1),
        _profile("1g.24gb-me", ONE_NO_ME, 66, 2, 54, 24192, _NONE, 1),
        _profile("2g.48gb", TWO, 0, 1, 110, 48512, (3, 3, 1, 1), 4),
        _profile("2g.48gb+gfx", TWO_GFX, 32, 1, 110, 48512, (3, 3, 1, 1), 4),
    ),
    most=2,
    units=12,
    step=6,
    counted_engines=True,
)
_RTX_PRO_4500 = MigTable(
    (
        _profile("1g.16gb", ONE, 5, 2, 40, 16128, (1, 1, 1, 0), 1),
        _profile("1g.16gb+gfx", ONE_GFX, 35, 2, 40, 16128, (1, 1, 1, 0), 1),
        _profile("1g.16gb+me.all", ONE_ALL_ME, 64, 1, 40, 16128, (3, 3, 2, 1), 1),
        _profile("1g.16gb-me", ONE_NO_ME, 66, 2, 40, 16128, _NONE, 1),
        _profile("2g.32gb", TWO, 0, 1, 82, 32384, (3, 3, 2, 1), 2),
        _profile("2g.32gb+gfx", TWO_GFX, 32, 1, 82, 32384, (3, 3, 2, 1), 2),
    ),
    most=2,
    units=12,
    step=6,
    counted_engines=True,
)

RTX_PRO_TABLES: Mapping[str, MigTable] = MappingProxyType(
    {
        "NVIDIA RTX PRO 6000 Blackwell Server Edition": _RTX_PRO_6000,
        "NVIDIA RTX PRO 5000 Blackwell": _RTX_PRO_5000,
        "NVIDIA RTX PRO 4500 Blackwell": _RTX_PRO_4500,
    }
)
"""By the name that NVML gives the model."""

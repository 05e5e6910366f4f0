"""What a GPU's driver was told beside what it holds the board to: nvidia-smi has commands for it, NVML mostly no calls.

Sources: the manual nvidia-smi(1), "compute-policy", "boost-slider" and ``--lock-memory-clocks-deferred``; NVML API
reference, "GPM Functions". The values of time-slices are those that NVIDIA's DRA driver gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from mews.emulator.hardware.gpu_profile import GpuProfile

TIMESLICES = ("Default", "Short", "Medium", "Long")
"""How long a process computes before the next one, by the number of ``--set-timeslice``."""
MOST_BOOST = 4
"""The last place of the slider ``vboost``, on H100 and B200."""
AMPERE, HOPPER, BLACKWELL = 7, 9, 10
_NO_SLIDER = "B300"
"""Boards of that name, and GB300, answer that they have none (public audits of such hosts)."""
SETTING_NAMES = ("timeslice", "boost", "gpm-streaming", "memory-clocks-deferred", "cuda-clocks")
"""What can be set, by name. No emulated model has ``cuda-clocks``."""


class DriverSettings(Struct, frozen=True):
    """``timeslice`` and ``boost``: places of ``TIMESLICES`` and of ``vboost``; ``streaming``: whether GPM streams.

    ``deferred_mhz``: the memory's clock from the driver's next load on, which alone stays when the driver goes.
    """

    timeslice: int = 0
    boost: int = 0
    streaming: bool = False
    deferred_mhz: int | None = None

    def unloaded(self) -> DriverSettings:
        """Return what is left when the driver lets go of the GPU."""
        return DriverSettings(deferred_mhz=self.deferred_mhz)


NO_SETTINGS = DriverSettings()


def has_setting(name: str, profile: GpuProfile) -> bool:
    """Return whether a model has it. Hopper's memory clocks change when the driver is loaded, and not while it runs."""
    match name:
        case "boost":
            return profile.hbm and profile.architecture >= HOPPER and _NO_SLIDER not in profile.name
        case "gpm-streaming":
            return profile.architecture >= HOPPER
        case "memory-clocks-deferred":
            return profile.architecture == HOPPER
        case _:
            return name == "timeslice"


def with_setting(settings: DriverSettings, name: str, numbers: Sequence[int]) -> DriverSettings | None:
    """Return the settings after one of ``SETTING_NAMES``, None where its numbers are none of its values."""
    match name, tuple(numbers):
        case "timeslice", (number,) if number < len(TIMESLICES):
            return replace(settings, timeslice=number)
        case "boost", (number,) if number <= MOST_BOOST:
            return replace(settings, boost=number)
        case "gpm-streaming", (0 | 1 as on,):
            return replace(settings, streaming=bool(on))
        case "memory-clocks-deferred", ():
            return replace(settings, deferred_mhz=None)
        case "memory-clocks-deferred", (mhz,) if mhz > 0:
            return replace(settings, deferred_mhz=mhz)
    return None

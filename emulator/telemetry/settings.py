"""What an engineer may set on a board at run time, checked: the board then keeps that value until it is cleared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.hardware.gpu_profiles import GpuProfile
from mews.names import must_be

ALL = "all"
"""In place of a name: every GPU, every setting."""
HOTTEST_C = 150
MOST_REPLAYS = 1 << 31
CLEARED = (None, "none")


class BoardSettings(Struct, frozen=True):
    """None: as the load has it. ``power`` in watts, ``temperature`` in degrees Celsius, clocks in MHz, ``utilization``
    in percent."""

    temperature: float | None = None
    power: float | None = None
    utilization: int | None = None
    sm_clock: int | None = None
    memory_clock: int | None = None
    pcie_replays: int | None = None

    def as_dict(self) -> dict[str, float]:
        """Return those that are set."""
        return {name: value for name in NAMES if (value := getattr(self, name)) is not None}


NAMES: tuple[str, ...] = BoardSettings.__struct_fields__


def changed(settings: BoardSettings, values: Mapping[str, Any], profile: GpuProfile) -> BoardSettings:
    """Return the settings with these values; ``none`` clears one, ``{"all": "none"}`` all.

    Raises ValueError: the name, the value, and what is allowed.
    """
    if not values:
        raise ValueError(f"set: must have at least one of {', '.join(NAMES)}")
    bounds = _bounds(profile)
    for name, value in values.items():
        if name == ALL and value in CLEARED:
            settings = BoardSettings()
        elif name not in bounds:
            raise ValueError(f"set {name!r}: {must_be(name, NAMES)}, or all: none")
        else:
            new: Any = None if value in CLEARED else _checked(name, value, bounds[name])
            settings = replace(settings, **{name: new})
    return settings


def _bounds(profile: GpuProfile) -> dict[str, tuple[float, bool, str]]:
    """Name -> (the most, whether it is whole, the unit)."""
    return {
        "temperature": (HOTTEST_C, False, "degrees Celsius"),
        "power": (profile.max_power_limit_mw / 1000, False, f"watts on a {profile.name}"),
        "utilization": (100, True, "percent"),
        "sm_clock": (profile.sm_clock_mhz, True, f"MHz on a {profile.name}"),
        "memory_clock": (profile.memory_clock_mhz, True, f"MHz on a {profile.name}"),
        "pcie_replays": (MOST_REPLAYS, True, "replays"),
    }


def _checked(name: str, value: Any, bounds: tuple[float, bool, str]) -> float | int:
    most, whole, unit = bounds
    good = not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= most
    if not good or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{name} {value!r}: must be {kind} from 0 to {most:g} {unit}, or none")
    return int(value) if whole else float(value)

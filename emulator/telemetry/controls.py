"""What a driver was told to hold a board to: NVML's setters as one value, and which of them a board accepts.

Bounds and codes follow the NVML API reference (nvmlDeviceSetPowerManagementLimit, nvmlDeviceSetGpuLockedClocks,
nvmlDeviceSetMemoryLockedClocks, nvmlDeviceSetApplicationsClocks, nvmlDeviceSetFanSpeed_v2,
nvmlDeviceSetTemperatureThreshold).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.hardware.gpu_profile import GpuProfile
from mews.emulator.telemetry.physics import FAN_LOW

ControlName = Literal["power-limit", "gpu-clocks", "memory-clocks", "applications-clocks", "fan", "target-temperature"]
CONTROL_NAMES: tuple[str, ...] = get_args(ControlName)
FULL_FAN = 100
LOWEST_SHARE = 8
"""The lowest clock that NVML lists for the multiprocessors is this part of the highest."""
CLOCK_STEP_MHZ = 15
"""Steps of the multiprocessors' clock (``nvmlDeviceGetSupportedGraphicsClocks`` of all captured boards)."""


class ControlError(ValueError):
    """A value that the board does not accept; the message names what it accepts."""


class BoardControls(Struct, frozen=True):
    """None: as the board does by itself. ``power_limit_mw`` in milliwatts; ``gpu_clocks`` and ``memory_clocks`` are the
    lowest and the highest MHz of locked clocks; ``applications`` is the MHz of (memory, multiprocessors); ``fan`` in
    percent; ``target_c`` is the temperature that the clocks are held back for, degrees Celsius."""

    power_limit_mw: int | None = None
    gpu_clocks: tuple[int, int] | None = None
    memory_clocks: tuple[int, int] | None = None
    applications: tuple[int, int] | None = None
    fan: int | None = None
    target_c: int | None = None

    @property
    def highest_sm_mhz(self) -> int | None:
        """The clock above which a busy board does not go, None without such a bound."""
        bounds = [pair[1] for pair in (self.gpu_clocks, self.applications) if pair is not None]
        return min(bounds, default=None)

    def as_value(self) -> dict[str, Any]:
        """Return those that are set, for JSON; ``from_value`` reads them back."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in given.items() if v is not None}

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> BoardControls:
        """Return the controls of ``as_value``. Raises TypeError, ValueError for anything else."""
        if unknown := [name for name in value if name not in cls.__struct_fields__]:
            raise ValueError(f"controls: {unknown[0]!r} is not one of {', '.join(cls.__struct_fields__)}")
        numbers = {name: _pair(each) if isinstance(each, list) else int(each) for name, each in value.items()}
        return cls(**numbers)  # type: ignore[arg-type]


NO_CONTROLS = BoardControls()


def _pair(value: Sequence[Any]) -> tuple[int, int]:
    low, high = value
    return int(low), int(high)


def controlled(controls: BoardControls, name: str, numbers: Sequence[int], profile: GpuProfile) -> BoardControls:
    """Return the controls after one setter; without numbers the board's own behaviour is restored.

    Raises ControlError for numbers that NVML refuses as an invalid argument, ValueError for an unknown name.
    """
    if name not in CONTROL_NAMES:
        raise ValueError(f"control {name!r}: must be one of {', '.join(CONTROL_NAMES)}")
    count = 1 if name in ("power-limit", "fan", "target-temperature") else 2
    if len(numbers) not in (0, count):
        raise ControlError(f"{name}: must have {count} numbers or none")
    key = _KEYS.get(name, name.replace("-", "_"))
    if not numbers:
        return replace(controls, **{key: None})
    _CHECKS[name](numbers, profile)
    return replace(controls, **{key: numbers[0] if count == 1 else (numbers[0], numbers[1])})


def _power_limit(numbers: Sequence[int], profile: GpuProfile) -> None:
    low, high = profile.min_power_limit_mw, profile.max_power_limit_mw
    if not low <= numbers[0] <= high:
        raise ControlError(f"power limit {numbers[0]} mW: must be from {low} to {high} mW on a {profile.name}")


def _gpu_clocks(numbers: Sequence[int], profile: GpuProfile) -> None:
    low, high = numbers
    if low > high or high == 0:
        raise ControlError(f"locked clocks {low},{high}: the lowest must not be above the highest")


def _memory_clocks(numbers: Sequence[int], profile: GpuProfile) -> None:
    _gpu_clocks(numbers, profile)


def _applications(numbers: Sequence[int], profile: GpuProfile) -> None:
    memory, graphics = numbers
    if memory != profile.memory_clock_mhz or graphics not in supported_mhz(profile):
        raise ControlError(f"clocks {memory},{graphics}: a {profile.name} does not list this combination")


def _fan(numbers: Sequence[int], profile: GpuProfile) -> None:
    if not FAN_LOW <= numbers[0] <= FULL_FAN:
        raise ControlError(f"fan {numbers[0]} %: must be from {FAN_LOW} to {FULL_FAN}")


def _target(numbers: Sequence[int], profile: GpuProfile) -> None:
    bounds = profile.target_temperatures
    if bounds is None:
        raise ControlError(f"target temperature {numbers[0]}: a {profile.name} has none")
    low, _, high = bounds
    if not low <= numbers[0] <= high:
        raise ControlError(f"target temperature {numbers[0]}: must be from {low} to {high} on a {profile.name}")


_KEYS = {"power-limit": "power_limit_mw", "applications-clocks": "applications", "target-temperature": "target_c"}
_CHECKS = {
    "power-limit": _power_limit,
    "gpu-clocks": _gpu_clocks,
    "memory-clocks": _memory_clocks,
    "applications-clocks": _applications,
    "fan": _fan,
    "target-temperature": _target,
}


def supported_mhz(profile: GpuProfile) -> range:
    """Return the multiprocessors' clocks that NVML lists for a board, highest first."""
    top = profile.sm_clock_mhz
    return range(top, top // LOWEST_SHARE - 1, -CLOCK_STEP_MHZ)

"""How a board behaves under a load, between the bounds of its model: the only place with watts and degrees of a GPU.

``TAU_S`` is contract host.md's minute. The rest is assumed from what public ``nvidia-smi`` outputs of such boards show:
an opened context costs a tenth of the limit, power and temperature grow with the load from there, memory runs two
degrees warmer than the chip, a board in its slowdown halves its clocks. Below a clock of its own choice a board draws,
above what a context costs, the square of the clock's share: so a lower power limit lowers the clocks by the root.
"""

from __future__ import annotations

import math
from enum import IntFlag

from msgspec import Struct

from mews.emulator.hardware.gpu_profiles import GpuProfile

TAU_S = 60.0
"""Time constant of the temperature."""
STANDBY_MW, STANDBY_C = 3_000, 26.0
"""A board that no host has: its slot's auxiliary power, a little warmer than the air."""
CONTEXT_SHARE = 10
"""A context costs the limit by this."""
MEMORY_WARMER_C = 2
BELOW_SLOWDOWN_C, BELOW_SHUTDOWN_C = 4, 5
"""The chip's highest temperature in normal work is so far below its slowdown's, the memory's below the shutdown's."""
FAN_LOW, FAN_HIGH = 30, 80
"""Percent of a board's own fan, idle and busy."""
IDLE_VIDEO_MHZ = 555
LINK_SHARE = 8
"""At full load a board moves an eighth of what its link can, each way."""
LANE_KB_S = {1: 250_000, 2: 500_000, 3: 985_000, 4: 1_969_000, 5: 3_938_000, 6: 7_563_000}
"""PCIe generation -> kilobytes per second of one lane, after line coding."""
FILLED_PERCENT = 72
"""Share of its memory that a load fills if it does not name its own."""


class ThrottleReason(IntFlag):
    """Why clocks are not higher (nvmlClocksEventReasons)."""

    NONE = 0
    IDLE = 0x1
    CLOCKS_SETTING = 0x2
    POWER_CAP = 0x4
    HW_SLOWDOWN = 0x8
    SW_THERMAL = 0x20
    HW_THERMAL = 0x40


class BoardDemand(Struct, frozen=True):
    """What is asked of a board for a while. ``powered``: a host's driver has it; ``contexts``: processes that compute;
    ``fixed_*``: what an engineer has set. ``slowed``: it is as warm as its slowdown threshold or warmer. ``limit_mw``:
    the power limit that the driver was told; ``sm_mhz`` and ``memory_mhz``: the lowest and the highest clock;
    ``target_c``: the temperature that it was told not to exceed."""

    powered: bool = True
    utilization: int = 0
    contexts: int = 0
    slowed: bool = False
    fixed_power_mw: int | None = None
    fixed_sm_mhz: int | None = None
    fixed_memory_mhz: int | None = None
    limit_mw: int | None = None
    sm_mhz: tuple[int, int] | None = None
    memory_mhz: tuple[int, int] | None = None
    target_c: int | None = None

    @property
    def busy(self) -> bool:
        """Whether it works, or has a context open."""
        return self.powered and (self.utilization > 0 or self.contexts > 0)


def power_mw(profile: GpuProfile, demand: BoardDemand) -> int:
    """Return what it draws, milliwatts."""
    if demand.fixed_power_mw is not None:
        return demand.fixed_power_mw
    if not demand.powered:
        return STANDBY_MW
    low, full = _power_bounds(profile, demand)
    share = clock_share(profile, demand)
    if share < 1:
        full = low + round((full - low) * share**2)
    return low + (full - low) // 2 if demand.slowed else full


def _power_bounds(profile: GpuProfile, demand: BoardDemand) -> tuple[int, int]:
    """Return what it draws without work, and with this work at its own clock, milliwatts."""
    low = profile.idle_power_mw + (profile.power_limit_mw // CONTEXT_SHARE if demand.busy else 0)
    return low, between(low, profile.power_limit_mw, demand.utilization)


def clock_share(profile: GpuProfile, demand: BoardDemand) -> float:
    """Return the part of its full clock that a busy board reaches under its power limit, its locked clocks and its
    target temperature; 1 for all."""
    if not demand.busy:
        return 1.0
    return min(_locked_share(profile, demand), _power_share(profile, demand), _target_share(profile, demand))


def _locked_share(profile: GpuProfile, demand: BoardDemand) -> float:
    return 1.0 if demand.sm_mhz is None else min(1.0, demand.sm_mhz[1] / profile.sm_clock_mhz)


def _power_share(profile: GpuProfile, demand: BoardDemand) -> float:
    low, full = _power_bounds(profile, demand)
    if demand.limit_mw is None or demand.limit_mw >= full:
        return 1.0
    return math.sqrt(max(0, demand.limit_mw - low) / (full - low))


def _target_share(profile: GpuProfile, demand: BoardDemand) -> float:
    """A board follows its target from the moment that it is told; its temperature then goes there."""
    low, high = profile.idle_temperature_c, profile.busy_temperature_c
    full_c = low + (high - low) * demand.utilization / 100
    if demand.target_c is None or demand.target_c >= full_c:
        return 1.0
    return math.sqrt(max(0, demand.target_c - low) / (full_c - low))


def settled_c(profile: GpuProfile, demand: BoardDemand) -> float:
    """Return the temperature that it goes to, degrees Celsius."""
    low, high = profile.idle_temperature_c, profile.busy_temperature_c
    if demand.fixed_power_mw is not None:
        span_mw = profile.power_limit_mw - profile.idle_power_mw
        return low + (high - low) * (demand.fixed_power_mw - profile.idle_power_mw) / span_mw
    if not demand.powered:
        return STANDBY_C
    share = demand.utilization / (200 if demand.slowed else 100)
    return low + (high - low) * share * clock_share(profile, demand) ** 2


def sm_clock_mhz(profile: GpuProfile, demand: BoardDemand) -> int:
    """Return the clock of the multiprocessors."""
    if demand.fixed_sm_mhz is not None:
        return demand.fixed_sm_mhz
    clock = profile.sm_clock_mhz if demand.busy else profile.idle_sm_clock_mhz
    if demand.powered and demand.sm_mhz is not None:
        clock = max(demand.sm_mhz[0], min(clock, demand.sm_mhz[1], profile.sm_clock_mhz))
    share = clock_share(profile, demand)
    if share < 1:
        clock = max(min(clock, int(profile.sm_clock_mhz * share)), min(profile.idle_sm_clock_mhz, clock))
    return clock // 2 if demand.slowed else clock


def memory_clock_mhz(profile: GpuProfile, demand: BoardDemand) -> int:
    """Return the clock of the memory."""
    if demand.fixed_memory_mhz is not None:
        return demand.fixed_memory_mhz
    clock = profile.memory_clock_mhz if demand.busy else profile.idle_memory_clock_mhz
    if demand.powered and demand.memory_mhz is not None:
        clock = min(max(demand.memory_mhz[0], min(clock, demand.memory_mhz[1])), profile.memory_clock_mhz)
    return clock


def video_clock_mhz(profile: GpuProfile, demand: BoardDemand) -> int:
    """Return the clock of the video engines."""
    return profile.video_clock_mhz if demand.busy else min(IDLE_VIDEO_MHZ, profile.video_clock_mhz)


def throttle_reasons(profile: GpuProfile, demand: BoardDemand) -> ThrottleReason:
    """Return why the clocks are not higher."""
    reasons = ThrottleReason.NONE if demand.busy else ThrottleReason.IDLE
    if demand.slowed:
        reasons |= ThrottleReason.HW_SLOWDOWN | ThrottleReason.HW_THERMAL
    locked, limited = _locked_share(profile, demand), _power_share(profile, demand)
    cooled = _target_share(profile, demand)
    if power_mw(profile, demand) >= profile.power_limit_mw or (demand.busy and limited < min(locked, cooled)):
        reasons |= ThrottleReason.POWER_CAP
    if demand.busy and locked < 1:
        reasons |= ThrottleReason.CLOCKS_SETTING
    if demand.busy and cooled < min(locked, limited):
        reasons |= ThrottleReason.SW_THERMAL
    return reasons


def pcie_kb_s(profile: GpuProfile, demand: BoardDemand) -> int:
    """Kilobytes per second over the link, each way."""
    if not demand.powered:
        return 0
    link = LANE_KB_S[profile.pcie_gen] * profile.pcie_width
    kb_s, share = link * demand.utilization // (100 * LINK_SHARE), clock_share(profile, demand)
    return kb_s if share == 1 else int(kb_s * share)


def pstate(profile: GpuProfile, demand: BoardDemand) -> int:
    """Return the performance state."""
    return 0 if demand.busy else profile.idle_pstate


def memory_utilization(utilization: int) -> int:
    """Share of the time in which memory is read or written, where nothing else is said."""
    return utilization // 2


def memory_temperature_c(profile: GpuProfile, temperature_c: float) -> float | None:
    """Return the memory's own sensor, None where the model has none."""
    return temperature_c + MEMORY_WARMER_C if profile.memory_temperature else None


def fan_percent(profile: GpuProfile, temperature_c: float) -> int | None:
    """Return the board's own fan, which follows the temperature; None where the chassis cools it."""
    if not profile.fan:
        return None
    low, high = profile.idle_temperature_c, profile.busy_temperature_c
    share = min(1.0, max(0.0, (temperature_c - low) / (high - low)))
    return round(FAN_LOW + (FAN_HIGH - FAN_LOW) * share)


def filled_mib(profile: GpuProfile) -> int:
    """Return how much memory a load fills that does not say how much."""
    return profile.memory_mib * FILLED_PERCENT // 100


def toward(start_c: float, end_c: float, passed_s: float) -> float:
    """Return a first-order lag: from ``start_c`` to ``end_c`` over ``passed_s``."""
    return end_c + (start_c - end_c) * math.exp(-passed_s / TAU_S)


def reaches_s(start_c: float, end_c: float, there_c: float) -> float | None:
    """Return when the lag falls to ``there_c``; None if it never does, or is there already."""
    if not end_c < there_c < start_c:
        return None
    return TAU_S * math.log((start_c - end_c) / (there_c - end_c))


def between(low: int, high: int, percent: int) -> int:
    """Return the number that lies so many percent of the way from the first to the second."""
    return low + (high - low) * max(0, min(100, percent)) // 100

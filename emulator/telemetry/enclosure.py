"""What a chassis measures of itself: air, fans, power beside its boards. Assumed; functions of the time alone."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from types import MappingProxyType

FANS, SUPPLIES = 4, 2
SUPPLY_W = 2000.0
FULL_RPM = 12_000
BASE_W = 180.0
"""Fans, switch and management processor, watts."""
_INLET_MEAN_C, _FAN_MEAN_RPM = 24.0, 4200.0
_INLET_SWING_C, _FAN_SWING_RPM = 0.5, 60.0

INLET_C: Mapping[str, float] = MappingProxyType(
    {"LowerCritical": 5.0, "LowerCaution": 10.0, "UpperCaution": 35.0, "UpperCritical": 40.0, "UpperFatal": 45.0}
)
"""Threshold (by Redfish's names) -> degrees Celsius: where the classes A2, A3 and A4 of ASHRAE's thermal guidelines
end."""
FAN_RPM: Mapping[str, float] = MappingProxyType({"LowerFatal": 600.0, "LowerCritical": 1200.0, "LowerCaution": 2400.0})
"""Threshold -> revolutions per minute: 5, 10 and 20 percent of a fan's full speed. Assumed."""


def inlet_c(now_s: float) -> float:
    """Return the air that comes in, degrees Celsius."""
    return _INLET_MEAN_C + _wave("Inlet", now_s, _INLET_SWING_C)


def fan_rpm(number: int, now_s: float) -> float:
    """Return one fan's revolutions per minute."""
    return _FAN_MEAN_RPM + _wave(f"Fan{number}", now_s, _FAN_SWING_RPM)


def chassis_w(boards_mw: int) -> float:
    """Return the whole chassis with its boards, watts."""
    return BASE_W + boards_mw / 1000


def _wave(name: str, now_s: float, span: float) -> float:
    """Return a slow swing, for each name its own: up to ``span`` up and down within a minute or two."""
    seed = zlib.crc32(name.encode())
    period_s = 60.0 + seed % 60
    return span * math.sin(2 * math.pi * (now_s / period_s + (seed % 997) / 997))

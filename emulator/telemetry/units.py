"""Time and energy as whole numbers, so that sums are exact: nanoseconds and picojoules (1 mW for 1 ns is 1 pJ)."""

from __future__ import annotations

NS_PER_S = 1_000_000_000
BYTES_PER_KB = 1000
PJ_PER_MJ = 1_000_000_000
"""Picojoules in a millijoule, NVML's unit."""
PJ_PER_KWH = 3_600_000 * 1000 * PJ_PER_MJ
WATT_DIGITS = 3
"""Digits after the point of a watt that loses nothing of NVML's milliwatts."""


def ns(seconds: float) -> int:
    """Return seconds as whole nanoseconds."""
    return round(seconds * NS_PER_S)


def seconds(at_ns: int) -> float:
    """Nanoseconds as seconds."""
    return at_ns / NS_PER_S

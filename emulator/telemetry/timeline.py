"""A board over time in closed form: spans within which nothing but energy, traffic and temperature changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from msgspec import Struct

from mews.emulator.telemetry import physics
from mews.emulator.telemetry.physics import ThrottleReason
from mews.emulator.telemetry.units import NS_PER_S, PJ_PER_MJ

KEPT = 1024
"""Spans that lie behind and are kept, for readers that are late."""


class TelemetrySpan(Struct, frozen=True):
    """From ``at_ns`` to ``until_ns`` (None: for ever). ``energy_pj``, ``temperature_c`` and ``pcie_kb_ns`` (kB/s times
    ns over the PCIe link, in each direction) are those at its beginning; power and traffic are constant within, the
    temperature goes toward ``target_c``. ``shares``: percent of each process."""

    at_ns: int
    until_ns: int | None
    utilization: int
    power_mw: int
    sm_clock_mhz: int
    memory_clock_mhz: int
    video_clock_mhz: int
    pstate: int
    reasons: ThrottleReason
    pcie_kb_s: int
    busy: bool
    energy_pj: int
    temperature_c: float
    target_c: float
    shares: tuple[int, ...] = ()
    pcie_kb_ns: int = 0

    def energy_at(self, at_ns: int) -> int:
        """Picojoules since the counter began: the integral of power, exactly."""
        return self.energy_pj + self.power_mw * (at_ns - self.at_ns)

    def traffic_at(self, at_ns: int) -> int:
        """kB/s times ns since the counter began, in each direction: the integral of the traffic, exactly."""
        return self.pcie_kb_ns + self.pcie_kb_s * (at_ns - self.at_ns)

    def temperature_at(self, at_ns: int) -> float:
        """Degrees Celsius."""
        return physics.toward(self.temperature_c, self.target_c, (at_ns - self.at_ns) / NS_PER_S)

    def energy_mj_at(self, at_ns: int) -> int:
        """Millijoules, NVML's unit."""
        return self.energy_at(at_ns) // PJ_PER_MJ


Follow = Callable[[int, int, float, int], TelemetrySpan]
"""(at_ns, energy_pj, temperature_c, pcie_kb_ns) -> the span that begins so."""


class Timeline:
    """The spans of one board from an anchor on, made as they are looked at. Looking changes no later value: spans end
    where causes do, never where somebody looked."""

    def __init__(self, follow: Follow, at_ns: int, energy_pj: int, temperature_c: float, pcie_kb_ns: int = 0) -> None:
        self._follow = follow
        self._anchor = at_ns, energy_pj, temperature_c, pcie_kb_ns
        self._spans: list[TelemetrySpan] = []
        self._starts: list[int] = []

    def at(self, at_ns: int) -> TelemetrySpan:
        """The span of a time; of one before the anchor the first."""
        if not self._spans:
            self._spans.append(self._follow(*self._anchor))
            self._starts.append(self._anchor[0])
        while (until_ns := self._spans[-1].until_ns) is not None and until_ns <= at_ns:
            self._extend(until_ns)
        place = max(bisect_right(self._starts, at_ns) - 1, 0)
        span = self._spans[place]
        if place > 2 * KEPT:
            del self._spans[: place - KEPT], self._starts[: place - KEPT]
        return span

    def ahead(self, at_ns: int, limit: int) -> tuple[TelemetrySpan, ...]:
        """The span of a time and those after it, at most ``limit``."""
        found = [self.at(at_ns)]
        while len(found) < limit and (until_ns := found[-1].until_ns) is not None:
            found.append(self.at(until_ns))
        return tuple(found)

    def _extend(self, until_ns: int) -> None:
        last = self._spans[-1]
        reached = last.energy_at(until_ns), last.temperature_at(until_ns), last.traffic_at(until_ns)
        self._spans.append(self._follow(until_ns, *reached))
        self._starts.append(until_ns)

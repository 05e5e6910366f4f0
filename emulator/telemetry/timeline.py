"""A board over time in closed form: spans within which nothing but energy, traffic and temperature changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

from msgspec import Struct

from mews.emulator.telemetry import physics
from mews.emulator.telemetry.physics import ThrottleReason
from mews.emulator.telemetry.units import NS_PER_S, PJ_PER_MJ

KEPT, CUT = 1024, 256
"""Spans that lie behind and are kept, for readers that are late, and how many more there are before they are cut."""


class BoardTotals(Struct, frozen=True, gc=False):
    """What a board adds up over time: ``pcie_kb_ns`` is kB/s times ns over the PCIe link, in each direction;
    ``work_ns`` is percent of utilisation times ns. The others are ns for which its clocks were held back:
    ``capped_ns`` by the power limit, ``hot_ns`` by its temperature, ``locked_ns`` by locked or application clocks,
    ``cooled_ns`` by its target temperature."""

    energy_pj: int = 0
    pcie_kb_ns: int = 0
    work_ns: int = 0
    capped_ns: int = 0
    hot_ns: int = 0
    locked_ns: int = 0
    cooled_ns: int = 0


NO_TOTALS = BoardTotals()


class TelemetrySpan(Struct, frozen=True, gc=False):
    """From ``at_ns`` to ``until_ns`` (None: for ever). ``totals`` and ``temperature_c`` are those at its beginning;
    power, traffic and clocks are constant within, the temperature goes toward ``target_c``. ``shares``: percent of each
    process."""

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
    temperature_c: float
    target_c: float
    totals: BoardTotals = NO_TOTALS
    shares: tuple[int, ...] = ()

    def energy_at(self, at_ns: int) -> int:
        """Picojoules since the counter began: the integral of power, exactly."""
        return self.totals.energy_pj + self.power_mw * (at_ns - self.at_ns)

    def traffic_at(self, at_ns: int) -> int:
        """kB/s times ns since the counter began, in each direction: the integral of the traffic, exactly."""
        return self.totals.pcie_kb_ns + self.pcie_kb_s * (at_ns - self.at_ns)

    def totals_at(self, at_ns: int) -> BoardTotals:
        """Return all that adds up, exactly."""
        totals, passed_ns = self.totals, at_ns - self.at_ns
        return BoardTotals(
            self.energy_at(at_ns),
            self.traffic_at(at_ns),
            totals.work_ns + self.utilization * passed_ns,
            totals.capped_ns + passed_ns * bool(self.reasons & ThrottleReason.POWER_CAP),
            totals.hot_ns + passed_ns * bool(self.reasons & ThrottleReason.HW_THERMAL),
            totals.locked_ns + passed_ns * bool(self.reasons & ThrottleReason.CLOCKS_SETTING),
            totals.cooled_ns + passed_ns * bool(self.reasons & ThrottleReason.SW_THERMAL),
        )

    def temperature_at(self, at_ns: int) -> float:
        """Degrees Celsius."""
        return physics.toward(self.temperature_c, self.target_c, (at_ns - self.at_ns) / NS_PER_S)

    def energy_mj_at(self, at_ns: int) -> int:
        """Millijoules, NVML's unit."""
        return self.energy_at(at_ns) // PJ_PER_MJ


Follow = Callable[[int, float, BoardTotals], TelemetrySpan]
"""(at_ns, temperature_c, totals) -> the span that begins so."""


class Timeline:
    """The spans of one board from an anchor on, made as they are looked at. Looking changes no later value: spans end
    where causes do, never where somebody looked."""

    def __init__(self, follow: Follow, at_ns: int, temperature_c: float, totals: BoardTotals = NO_TOTALS) -> None:
        self._follow = follow
        self._anchor = at_ns, temperature_c, totals
        self._spans: list[TelemetrySpan] = []
        self._starts: list[int] = []

    def at(self, at_ns: int) -> TelemetrySpan:
        """Return the span of a time; of one before the anchor the first."""
        if not self._spans:
            self._spans.append(self._follow(*self._anchor))
            self._starts.append(self._anchor[0])
        while (until_ns := self._spans[-1].until_ns) is not None and until_ns <= at_ns:
            self._extend(until_ns)
        place = max(bisect_right(self._starts, at_ns) - 1, 0)
        span = self._spans[place]
        if place > KEPT + CUT:
            del self._spans[: place - KEPT], self._starts[: place - KEPT]
        return span

    def ahead(self, at_ns: int, limit: int) -> tuple[TelemetrySpan, ...]:
        """Return the span of a time and those after it, at most ``limit``."""
        found = [self.at(at_ns)]
        while len(found) < limit and (until_ns := found[-1].until_ns) is not None:
            found.append(self.at(until_ns))
        return tuple(found)

    def between(self, begin_ns: int, end_ns: int) -> Iterator[TelemetrySpan]:
        """Yield the spans from a time to another, as far as they are kept."""
        span = self.at(begin_ns)
        yield span
        while span.until_ns is not None and span.until_ns < end_ns:
            span = self.at(span.until_ns)
            yield span

    def _extend(self, until_ns: int) -> None:
        last = self._spans[-1]
        self._spans.append(self._follow(until_ns, last.temperature_at(until_ns), last.totals_at(until_ns)))
        self._starts.append(until_ns)

"""One board as readers need it: a value that travels to other processes and into NVML's state file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from mews.emulator.hardware.gpu_profiles import GpuProfile
from mews.emulator.telemetry import physics
from mews.emulator.telemetry.accounting import AccountedProcess
from mews.emulator.telemetry.physics import BoardDemand, ThrottleReason
from mews.emulator.telemetry.reading import COUNTERS, NO_ERRORS, GpuCounters, GpuReading, ProcessReading
from mews.emulator.telemetry.timeline import NO_TOTALS, BoardTotals, TelemetrySpan
from mews.emulator.telemetry.units import PJ_PER_KWH, PJ_PER_MJ


class BoardRecord(Struct, frozen=True):
    """``spans`` follow each other; ``processes`` are (key, MiB), in the order of a span's ``shares``.

    ``power_limit_mw`` None: the model's. ``ecc``: whether errors are corrected now, and from the next load of the
    driver on; None: as the model has it. ``accounted``: the processes of which accounts are kept."""

    uuid: str
    spans: tuple[TelemetrySpan, ...]
    processes: tuple[tuple[str, int], ...] = ()
    counters: GpuCounters = NO_ERRORS
    power_limit_mw: int | None = None
    ecc: tuple[bool | None, bool | None] = (None, None)
    accounted: tuple[AccountedProcess, ...] = ()

    @property
    def until_ns(self) -> int | None:
        """Up to when the spans reach; None: for ever."""
        return self.spans[-1].until_ns

    def span(self, at_ns: int) -> TelemetrySpan:
        """Return what holds at a time; after the last span that one."""
        for span in self.spans:
            if span.until_ns is None or at_ns < span.until_ns:
                return span
        return self.spans[-1]

    def reading(self, profile: GpuProfile, at_ns: int) -> GpuReading:
        """Return everything, at one moment."""
        span = self.span(at_ns)
        at_ns = max(at_ns, span.at_ns)
        temperature_c, energy_pj = span.temperature_at(at_ns), span.energy_at(at_ns)
        processes = tuple(
            ProcessReading(key, share, memory_mib)
            for (key, memory_mib), share in zip(self.processes, span.shares, strict=True)
        )
        room_mib = profile.memory_mib - profile.reserved_mib
        return GpuReading(
            uuid=self.uuid,
            utilization_percent=span.utilization,
            memory_utilization_percent=physics.memory_utilization(span.utilization),
            memory_used_mib=min(sum(process.memory_mib for process in processes), room_mib),
            memory_total_mib=profile.memory_mib,
            memory_reserved_mib=profile.reserved_mib,
            power_mw=span.power_mw,
            power_limit_mw=profile.power_limit_mw if self.power_limit_mw is None else self.power_limit_mw,
            energy_mj=energy_pj // PJ_PER_MJ,
            energy_kwh=energy_pj / PJ_PER_KWH,
            temperature_c=temperature_c,
            memory_temperature_c=physics.memory_temperature_c(profile, temperature_c),
            fan_percent=physics.fan_percent(profile, temperature_c),
            sm_clock_mhz=span.sm_clock_mhz,
            memory_clock_mhz=span.memory_clock_mhz,
            video_clock_mhz=span.video_clock_mhz,
            pstate=span.pstate,
            throttle_reasons=int(span.reasons),
            pcie_tx_kb_s=span.pcie_kb_s,
            pcie_rx_kb_s=span.pcie_kb_s,
            counters=self.counters,
            processes=processes,
        )

    def as_value(self) -> dict[str, Any]:
        """Return them for JSON; ``from_value`` reads it back."""
        return {
            "uuid": self.uuid,
            "spans": [_numbers(span) for span in self.spans],
            "totals": list(astuple(self.spans[0].totals)),
            "processes": [list(process) for process in self.processes],
            "counters": {name: getattr(self.counters, name) for name in COUNTERS},
            "power_limit_mw": self.power_limit_mw,
            "ecc": list(self.ecc),
            "accounted": [process.as_value() for process in self.accounted],
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> BoardRecord:
        """Return the record of ``as_value``. Raises KeyError, TypeError, ValueError for anything else."""
        return cls(
            str(value["uuid"]),
            _spans(value["spans"], value["totals"]),
            tuple((str(key), int(memory_mib)) for key, memory_mib in value["processes"]),
            GpuCounters(**{name: int(value["counters"][name]) for name in COUNTERS}),
            value["power_limit_mw"],
            (value["ecc"][0], value["ecc"][1]),
            tuple(AccountedProcess(*each) for each in value["accounted"]),
        )


_SPAN = (
    "at_ns",
    "until_ns",
    "utilization",
    "power_mw",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "video_clock_mhz",
    "pstate",
    "reasons",
    "pcie_kb_s",
    "busy",
    "temperature_c",
    "target_c",
)


def _numbers(span: TelemetrySpan) -> list[Any]:
    return [*(getattr(span, name) for name in _SPAN), list(span.shares)]


def _spans(values: list[list[Any]], totals: list[int]) -> tuple[TelemetrySpan, ...]:
    """Return those of ``_numbers``: the totals of all but the first follow from the span before."""
    spans = [_span(values[0], BoardTotals(*map(int, totals)))]
    for numbers in values[1:]:
        spans.append(_span(numbers, spans[-1].totals_at(numbers[0])))
    return tuple(spans)


def _span(numbers: list[Any], totals: BoardTotals) -> TelemetrySpan:
    *plain, shares = numbers
    fields = dict(zip(_SPAN, plain, strict=True))
    return TelemetrySpan(
        **{**fields, "reasons": ThrottleReason(fields["reasons"]), "totals": totals, "shares": tuple(shares)}
    )


def idle_record(uuid: str, profile: GpuProfile, at_ns: int = 0, *, powered: bool = True) -> BoardRecord:
    """Return a board that nobody works on, settled: what is shown before anything is known of it."""
    demand = BoardDemand(powered=powered)
    temperature_c = physics.settled_c(profile, demand)
    return BoardRecord(uuid, (steady_span(profile, demand, at_ns, NO_TOTALS, temperature_c, temperature_c),))


def steady_span(
    profile: GpuProfile,
    demand: BoardDemand,
    at_ns: int,
    totals: BoardTotals,
    temperature_c: float,
    target_c: float,
) -> TelemetrySpan:
    """Return a demand that lasts for ever."""
    return TelemetrySpan(
        at_ns=at_ns,
        until_ns=None,
        utilization=demand.utilization,
        power_mw=physics.power_mw(profile, demand),
        sm_clock_mhz=physics.sm_clock_mhz(profile, demand),
        memory_clock_mhz=physics.memory_clock_mhz(profile, demand),
        video_clock_mhz=physics.video_clock_mhz(profile, demand),
        pstate=physics.pstate(profile, demand),
        reasons=physics.throttle_reasons(profile, demand),
        pcie_kb_s=physics.pcie_kb_s(profile, demand),
        busy=demand.busy,
        totals=totals,
        temperature_c=temperature_c,
        target_c=target_c,
    )

"""One board's telemetry: what works on it, what is set on it, and from that every value at any time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from mews.emulator.hardware.gpu_profiles import GpuProfile
from mews.emulator.telemetry import physics
from mews.emulator.telemetry.accounting import BoardAccounting
from mews.emulator.telemetry.controls import NO_CONTROLS, BoardControls
from mews.emulator.telemetry.load import GpuLoad, LoadLevels, parse_load
from mews.emulator.telemetry.physics import BoardDemand
from mews.emulator.telemetry.reading import GpuCounters, GpuReading
from mews.emulator.telemetry.record import BoardRecord, steady_span
from mews.emulator.telemetry.settings import BoardSettings, changed
from mews.emulator.telemetry.timeline import BoardTotals, TelemetrySpan, Timeline
from mews.emulator.telemetry.units import BYTES_PER_KB, NS_PER_S

_LATER_TOTALS = BoardTotals.__struct_fields__[1:]
"""Totals that the state of an earlier release may lack."""


class DriverCounts(Struct, frozen=True):
    """Errors counted since one load of the driver, or since its counters were cleared; ``session`` tells those from all
    others. Up to a ``+`` it names the load. ``clears``: how often the host cleared the counts over the board's life
    since the board came to it."""

    session: str
    corrected: int = 0
    uncorrected: int = 0
    clears: int = 0

    @property
    def stay(self) -> str:
        """On which host, and since when: what ``clears`` counts in."""
        return self.session.partition(".")[0]

    @property
    def load(self) -> str:
        """Which load of which driver counts."""
        return self.session.partition("+")[0]


class EccModes(Struct, frozen=True):
    """Whether errors are corrected, and what the next load of the driver makes of it; None: as the model has it. A
    board keeps both over moves and power cycles."""

    current: bool | None = None
    pending: bool | None = None


class RunningLoad(Struct, frozen=True):
    """A process' load since ``began_ns``."""

    load: GpuLoad
    began_ns: int
    levels: LoadLevels


_NOTHING_SET, _AS_THE_MODEL, _NOT_COUNTED = BoardSettings(), EccModes(), DriverCounts("")
"""What boards begin with: one value of each for all of them."""


def filled_mib(profile: GpuProfile, loads: Mapping[str, GpuLoad]) -> dict[str, int]:
    """Return what each process fills; those that name nothing share what a load fills."""
    sharing = sum(load.memory_mib is None for load in loads.values())
    most = profile.memory_mib - profile.reserved_mib
    return {
        key: physics.filled_mib(profile) // sharing if load.memory_mib is None else min(load.memory_mib, most)
        for key, load in loads.items()
    }


class GpuTelemetry:
    """One board. All methods take ``at_ns``, which never goes back between changes; reading changes nothing."""

    def __init__(self, uuid: str, profile: GpuProfile, *, seed: str, at_ns: int = 0, powered: bool = False) -> None:
        self.uuid = uuid
        self.profile = profile
        self.settings = _NOTHING_SET
        self.controls = NO_CONTROLS
        self.ecc = _AS_THE_MODEL
        self.powered = powered
        self._seed = seed
        self._loads: dict[str, RunningLoad] = {}
        self._earlier = (0, 0)
        self._cleared = (0, 0)
        self._driver = _NOT_COUNTED
        self._replays = 0
        self._accounting = BoardAccounting()
        self._anchored_ns = at_ns
        start_c = physics.settled_c(profile, BoardDemand(powered))
        self._timeline = Timeline(self._span, at_ns, start_c)

    # Looking

    def span(self, at_ns: int) -> TelemetrySpan:
        """Return what holds at a time."""
        return self._timeline.at(at_ns)

    def loads(self) -> Mapping[str, GpuLoad]:
        """Return what each process asks."""
        return {key: running.load for key, running in self._loads.items()}

    @property
    def counters(self) -> GpuCounters:
        """The errors so far."""
        corrected, uncorrected = self._life
        replays = self._replays if self.settings.pcie_replays is None else self.settings.pcie_replays
        return GpuCounters(
            ecc_volatile_corrected=self._driver.corrected,
            ecc_volatile_uncorrected=self._driver.uncorrected,
            ecc_aggregate_corrected=corrected - self._cleared[0],
            ecc_aggregate_uncorrected=uncorrected - self._cleared[1],
            pcie_replays=replays,
            cleared_uncorrected=self._cleared[1],
        )

    @property
    def _life(self) -> tuple[int, int]:
        """Errors that were corrected, and that were not, since the board was made."""
        corrected, uncorrected = self._earlier
        return corrected + self._driver.corrected, uncorrected + self._driver.uncorrected

    def record(self, at_ns: int, limit: int = 1) -> BoardRecord:
        """Return all that readers need from a time on, as long as nothing changes and ``limit`` spans reach."""
        processes = tuple(filled_mib(self.profile, self.loads()).items())
        spans = self._timeline.ahead(at_ns, limit)
        ecc, limit_mw = (self.ecc.current, self.ecc.pending), self.controls.power_limit_mw
        self._account(at_ns)
        accounted = self._accounting.shown(at_ns)
        return BoardRecord(self.uuid, spans, processes, self.counters, limit_mw, ecc, accounted)

    def reading(self, at_ns: int) -> GpuReading:
        """Return everything, at one moment."""
        return self.record(at_ns).reading(self.profile, at_ns)

    def pcie_bytes(self, at_ns: int) -> int:
        """Return what has gone over the PCIe link so far, in each direction."""
        span = self.span(at_ns)
        return span.traffic_at(max(at_ns, span.at_ns)) * BYTES_PER_KB // NS_PER_S

    # Changing

    def begin(self, key: str, load: GpuLoad, at_ns: int) -> None:
        """A process begins to work, or goes on with another load; the same load again changes nothing."""
        there = self._loads.get(key)
        if there is not None and there.load == load:
            return
        self._anchor(at_ns, loads={**self._loads, key: RunningLoad(load, at_ns, self._levels(key, load))})

    def end(self, key: str, at_ns: int) -> None:
        """It has ended; nothing if there is no such process."""
        if key in self._loads:
            self._anchor(at_ns, loads={name: each for name, each in self._loads.items() if name != key})

    def power(self, powered: bool, at_ns: int) -> None:
        """A host has it now, or none has."""
        if powered != self.powered:
            self._anchor(at_ns, powered=powered)

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises ValueError where ``set`` would."""
        changed(self.settings, values, self.profile)

    def set(self, values: Mapping[str, Any], at_ns: int) -> None:
        """Settings by name (``mews.emulator.telemetry.settings``). Raises ValueError."""
        self._anchor(at_ns, settings=changed(self.settings, values, self.profile))

    def control(self, controls: BoardControls, at_ns: int) -> bool:
        """Return what the driver holds it to from now on. Returns whether that is news."""
        if controls == self.controls:
            return False
        self._anchor(at_ns, controls=controls)
        return True

    def correct_errors(self, wanted: bool) -> bool:
        """ECC is to be on or off once the driver is loaded anew. Returns whether that is news."""
        before, self.ecc = self.ecc, replace(self.ecc, pending=wanted)
        return self.ecc != before

    def account(self, period: int, at_ns: int) -> bool:
        """Keep accounts from now on; another number than before begins them anew, 0 ends them. Returns whether that is
        news."""
        if period == self._accounting.period:
            return False
        self._anchor(at_ns)
        self._accounting.switch(period, filled_mib(self.profile, self.loads()), at_ns)
        return True

    def _account(self, at_ns: int) -> None:
        """Add up what the processes did since the last change, or since they were looked at."""
        if self._accounting.period and at_ns > self._anchored_ns:
            spans = self._timeline.between(self._anchored_ns, at_ns)
            self._accounting.add(spans, tuple(self._loads), self._anchored_ns, at_ns)
            self._anchored_ns = at_ns

    def replayed(self) -> None:
        """The link was trained anew: one packet went twice."""
        self._replays += 1

    def counted(self, counts: DriverCounts | None) -> None:
        """What the driver has counted since it was loaded; None: no driver has the board."""
        fresh = DriverCounts("") if counts is None else counts
        before = self._driver
        if fresh.session != before.session:
            if fresh.load != before.load:
                self.ecc = replace(self.ecc, current=self.ecc.pending)
            self._earlier = self._life
        self._driver = fresh
        if fresh.clears > (before.clears if fresh.stay == before.stay else 0):
            self._cleared = self._life

    # Over restarts

    def state(self, at_ns: int) -> dict[str, Any]:
        """Return everything, as of a time, for JSON; ``resume`` goes on with it."""
        span = self.span(at_ns)
        at_ns = max(at_ns, span.at_ns)
        driver = self._driver
        return {
            "uuid": self.uuid,
            "temperature_c": span.temperature_at(at_ns),
            **asdict(span.totals_at(at_ns)),
            "powered": self.powered,
            "settings": self.settings.as_dict(),
            "controls": self.controls.as_value(),
            "ecc": [self.ecc.current, self.ecc.pending],
            "earlier": list(self._earlier),
            "cleared": list(self._cleared),
            "driver": [driver.session, driver.corrected, driver.uncorrected, driver.clears],
            "replays": self._replays,
            "loads": [[key, each.load.as_value(), at_ns - each.began_ns] for key, each in self._loads.items()],
        }

    def resume(self, state: Mapping[str, Any], at_ns: int) -> None:
        """Go on from a state as of that time. Raises KeyError, TypeError, ValueError for anything else."""
        loads = {}
        for key, value, age_ns in state["loads"]:
            load = parse_load(value)
            loads[str(key)] = RunningLoad(load, at_ns - int(age_ns), self._levels(str(key), load))
        session, corrected, uncorrected, *clears = state["driver"]
        settings = changed(BoardSettings(), {"all": "none", **state["settings"]}, self.profile)
        controls, ecc = BoardControls.from_value(state.get("controls", {})), EccModes(*state.get("ecc", ()))
        totals = BoardTotals(int(state["energy_pj"]), *(int(state.get(name, 0)) for name in _LATER_TOTALS))
        temperature_c = float(state["temperature_c"])
        self._loads, self.settings, self.powered = loads, settings, bool(state["powered"])
        self.controls, self.ecc = controls, ecc
        self._earlier = int(state["earlier"][0]), int(state["earlier"][1])
        cleared = state.get("cleared", (0, 0))
        self._cleared = int(cleared[0]), int(cleared[1])
        self._driver = DriverCounts(str(session), int(corrected), int(uncorrected), *map(int, clears))
        self._replays = int(state["replays"])
        self._timeline = Timeline(self._span, at_ns, temperature_c, totals)

    def driver_session(self) -> str:
        """Return which load of which driver counts errors now; "" for none."""
        return self._driver.session

    def _levels(self, key: str, load: GpuLoad) -> LoadLevels:
        return load.levels(f"{self._seed}/{self.uuid}/{key}")

    def _anchor(
        self,
        at_ns: int,
        *,
        loads: dict[str, RunningLoad] | None = None,
        powered: bool | None = None,
        settings: BoardSettings | None = None,
        controls: BoardControls | None = None,
    ) -> None:
        """Change causes from that time on; totals and temperature go on from where they are."""
        span = self.span(at_ns)
        at_ns = max(at_ns, span.at_ns)
        reached = span.temperature_at(at_ns), span.totals_at(at_ns)
        self._account(at_ns)
        self._loads = self._loads if loads is None else loads
        self.powered = self.powered if powered is None else powered
        self.settings = self.settings if settings is None else settings
        self.controls = self.controls if controls is None else controls
        self._timeline, self._anchored_ns = Timeline(self._span, at_ns, *reached), at_ns
        if self._accounting.period and loads is not None:
            self._accounting.change(filled_mib(self.profile, self.loads()), at_ns)

    # Spans

    def _span(self, at_ns: int, temperature_c: float, totals: BoardTotals) -> TelemetrySpan:
        shares, until_ns = self._shares(at_ns)
        settings, profile = self.settings, self.profile
        if settings.temperature is not None:
            temperature_c = settings.temperature
        controls, highest = self.controls, self.controls.highest_sm_mhz
        lowest = 0 if controls.gpu_clocks is None else controls.gpu_clocks[0]
        demand = BoardDemand(
            powered=self.powered,
            utilization=sum(shares),
            contexts=len(self._loads),
            slowed=self.powered and temperature_c >= profile.slowdown_temperature_c,
            fixed_power_mw=None if settings.power is None else round(settings.power * 1000),
            fixed_sm_mhz=settings.sm_clock,
            fixed_memory_mhz=settings.memory_clock,
            limit_mw=controls.power_limit_mw,
            sm_mhz=None if highest is None else (min(lowest, highest), highest),
            memory_mhz=controls.memory_clocks,
            target_c=controls.target_c,
        )
        if settings.utilization is not None and self.powered:
            demand = replace(demand, utilization=settings.utilization)
        target_c = physics.settled_c(profile, demand) if settings.temperature is None else settings.temperature
        if demand.slowed and settings.temperature is None:
            until_ns = self._cooled_ns(at_ns, temperature_c, target_c, until_ns)
        span = steady_span(profile, demand, at_ns, totals, temperature_c, target_c)
        return replace(span, until_ns=until_ns, shares=self._scaled(shares, demand.utilization))

    def _shares(self, at_ns: int) -> tuple[tuple[int, ...], int | None]:
        """Return what each process gets of at most 100 percent, and when that may change."""
        wanted, until_ns = [], None
        for running in self._loads.values():
            percent, age_ns = running.levels.at(at_ns - running.began_ns)
            wanted.append(percent)
            if age_ns is not None:
                due_ns = running.began_ns + age_ns
                until_ns = due_ns if until_ns is None else min(until_ns, due_ns)
        if not self.powered:
            return (0,) * len(wanted), until_ns
        return self._scaled(tuple(wanted), min(sum(wanted), 100)), until_ns

    @staticmethod
    def _scaled(wanted: tuple[int, ...], total: int) -> tuple[int, ...]:
        """Cut to a sum of ``total``, in proportion; what rounding leaves goes to the first."""
        whole = sum(wanted)
        if whole == total or not wanted:
            return wanted
        if whole == 0:
            wanted, whole = (1,) * len(wanted), len(wanted)
        shares = [each * total // whole for each in wanted]
        shares[0] += total - sum(shares)
        return tuple(shares)

    def _cooled_ns(self, at_ns: int, start_c: float, target_c: float, until_ns: int | None) -> int | None:
        """Return when the board is below its slowdown threshold again, or the load changes before."""
        passed_s = physics.reaches_s(start_c, target_c, self.profile.slowdown_temperature_c)
        if passed_s is None and start_c == self.profile.slowdown_temperature_c and target_c < start_c:
            passed_s = 0.0
        if passed_s is None:
            return until_ns
        cooled_ns = at_ns + round(passed_s * NS_PER_S) + 1_000
        return cooled_ns if until_ns is None else min(cooled_ns, until_ns)

"""The boards of one chassis: the one writer of their telemetry.

The state lives with the chassis since that is where a board is: it stays when a board goes from host to host, and
Redfish, hosts and scenarios all reach it there. Hosts report what works on their boards, and what their driver has
counted, as a whole each time (``report``), so that a report may be lost, come twice or come after a restart of either
side: the next one puts it right. They get records back (``mews.emulator.telemetry.record``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from mews.emulator.hardware.gpu_profiles import DEFAULT_MODEL, GpuProfile, is_known, profile_of
from mews.emulator.telemetry.controls import NO_CONTROLS, BoardControls
from mews.emulator.telemetry.gpu import DriverCounts, GpuTelemetry
from mews.emulator.telemetry.load import GpuLoad, parse_load
from mews.emulator.telemetry.parts import BoardParts, parts_from, parts_value
from mews.emulator.telemetry.reading import GpuReading
from mews.emulator.telemetry.record import BoardRecord
from mews.emulator.telemetry.settings import ALL
from mews.emulator.telemetry.units import ns
from mews.names import must_be

if TYPE_CHECKING:
    from mews.emulator.telemetry.store import TelemetryStore

SPANS_AHEAD = 64
"""Spans of a record; whoever has used them up asks again."""
_MOST_ERRORS = (1 << 63) - 1


class InstalledBoard(Struct, frozen=True):
    """A device in a slot; ``powered``: a host has it and the link is up."""

    device: str
    uuid: str
    model: str
    powered: bool


class BoardReport(Struct, frozen=True):
    """What a host says of one board: its processes' loads by key, what its driver has counted (None: no driver), and
    what that was told. ``ecc``: whether ECC was asked to be on from the next load on, None where nobody asked;
    ``accounting`` numbers the time since accounting was switched on or cleared, 0 while it is off. ``mig``: its parts,
    None unless it is in MIG mode."""

    loads: Mapping[str, GpuLoad] = field(default_factory=dict)
    counts: DriverCounts | None = None
    controls: BoardControls = NO_CONTROLS
    ecc: bool | None = None
    accounting: int = 0
    mig: BoardParts | None = None

    def as_value(self) -> dict[str, Any]:
        """Return them for JSON; ``from_value`` reads it back."""
        counts = self.counts
        return {
            "loads": {key: load.as_value() for key, load in self.loads.items()},
            "counts": None if counts is None else list(astuple(counts)),
            "controls": self.controls.as_value(),
            "ecc": self.ecc,
            "accounting": self.accounting,
            "mig": parts_value(self.mig),
        }

    @classmethod
    def from_value(cls, value: Any) -> BoardReport:
        """Return the report of ``as_value``. Raises ValueError for anything else."""
        try:
            loads = {str(key): parse_load(load) for key, load in value["loads"].items()}
            counts = value["counts"]
            controls, ecc = BoardControls.from_value(value.get("controls", {})), value.get("ecc")
            if ecc not in (None, True, False):
                raise ValueError(f"ecc {ecc!r}: must be true, false or null")
            accounting = int(value.get("accounting", 0))
            mig = parts_from(value.get("mig"))
            return cls(loads, None if counts is None else _counts(*counts), controls, ecc, accounting, mig)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"report {value!r}: must be a mapping of loads and counts") from error


def _counts(session: Any, corrected: Any, uncorrected: Any, clears: Any = 0) -> DriverCounts:
    for value in (corrected, uncorrected, clears):
        if not isinstance(value, int) or not 0 <= value <= _MOST_ERRORS:
            raise ValueError(f"counts {str(value)[:40]}: must be whole numbers from 0 to {_MOST_ERRORS}")
    return DriverCounts(str(session), corrected, uncorrected, clears)


class ChassisTelemetry:
    """All boards by device. Times are emulated seconds. ``version`` grows with every change."""

    def __init__(self, seed: str = "", store: TelemetryStore | None = None) -> None:
        self.version = 0
        self.divisions = 0
        """How often a board got other MIG devices, or another MIG mode."""
        self._seed = seed
        self._store = store
        self._stored = {} if store is None else dict(store.load())
        self._boards: dict[str, GpuTelemetry] = {}
        self._places: dict[str, str] = {}
        self._reports: dict[str, dict[str, BoardReport]] = {}
        self._counted: dict[str, str] = {}

    # Looking

    def devices(self) -> tuple[str, ...]:
        """Return all boards, in the order of the table."""
        return tuple(self._boards)

    def gpu(self, device: str) -> GpuTelemetry:
        """Return one board.

        Raises ValueError naming those there are.
        """
        try:
            return self._boards[device]
        except KeyError:
            raise ValueError(f"device {device!r}: {must_be(device, (*self._boards, ALL))}") from None

    def reading(self, device: str, now_s: float) -> GpuReading:
        """Return all of one board now. Raises ValueError."""
        return self.gpu(device).reading(ns(now_s))

    def parts(self, device: str) -> BoardParts | None:
        """Return the MIG devices of a board in MIG mode, as its host reports them; None without the mode, or a
        driver."""
        uuid = self._boards[device].uuid if device in self._boards else ""
        found = [known[uuid].mig for known in self._reports.values() if uuid in known]
        return next((parts for parts in found if parts is not None), None)

    def shown(self, now_s: float) -> dict[str, dict[str, Any]]:
        """Device -> everything that its board shows now, and what is ``set`` on it; for JSON."""
        return {
            device: {**board.reading(ns(now_s)).as_dict(), "set": board.settings.as_dict()}
            for device, board in self._boards.items()
        }

    def records(self, now_s: float, limit: int = SPANS_AHEAD) -> dict[str, BoardRecord]:
        """UUID -> record, from now on."""
        return {board.uuid: board.record(ns(now_s), limit) for board in self._boards.values()}

    # Changing

    def begin(self, boards: Iterable[InstalledBoard], now_s: float) -> None:
        """The chassis' whole table is this now."""
        there = list(boards)
        for device in self._boards.keys() - {board.device for board in there}:
            self.remove(device)
        self._note([board.device for board in there if self._place(board, now_s)], now_s)

    def install(self, board: InstalledBoard, now_s: float) -> None:
        """This device is in its slot now, and this is how."""
        if self._place(board, now_s):
            self._note([board.device], now_s)

    def _place(self, board: InstalledBoard, now_s: float) -> bool:
        """Return whether that is news."""
        known = self._boards.get(board.device)
        if known is None or known.uuid != board.uuid:
            profile = model_of(board.model)
            known = GpuTelemetry(board.uuid, profile, seed=self._seed, at_ns=ns(now_s), powered=board.powered)
            self.remove(board.device)
            self._boards[board.device], self._places[board.uuid] = known, board.device
            self._resume(board, now_s)
        elif known.powered == board.powered:
            return False
        known.power(board.powered, ns(now_s))
        return True

    def _resume(self, board: InstalledBoard, now_s: float) -> None:
        """Let a board go on from what was stored of it; a store that is damaged is as good as none."""
        state, age_s = self._stored.pop(board.device, ({}, 0.0))
        if state.get("uuid") != board.uuid:
            return
        gpu = self._boards[board.device]
        try:
            gpu.resume(state, ns(now_s - age_s))
        except (KeyError, TypeError, ValueError):
            return
        session = gpu.driver_session()
        if session:
            self._counted[board.uuid] = session.partition("/")[0]
        for key, load in gpu.loads().items():
            host, _, name = key.partition("/")
            before = self._reports.setdefault(host, {}).get(board.uuid, BoardReport())
            self._reports[host][board.uuid] = BoardReport({**before.loads, name: load})

    def remove(self, device: str) -> None:
        """It was pulled out."""
        board = self._boards.pop(device, None)
        if board is not None:
            del self._places[board.uuid]
            self._counted.pop(board.uuid, None)
            for known in self._reports.values():
                known.pop(board.uuid, None)
            self.version += 1
            self.divisions += 1
            if self._store is not None:
                self._store.remove(device)

    def retrained(self, device: str, now_s: float) -> None:
        """A board's link came up anew."""
        if device in self._boards:
            self._boards[device].replayed()
            self._note([device], now_s)

    def report(self, host: str, reports: Mapping[str, BoardReport], now_s: float) -> None:
        """Everything that a host has on boards of this chassis, by UUID; what it had and does not name has ended."""
        known = self._reports.setdefault(host, {})
        mine = {uuid: report for uuid, report in reports.items() if uuid in self._places}
        self._reports[host] = mine
        changed = []
        for uuid in [*mine, *(uuid for uuid in known if uuid not in mine)]:
            report, board = mine.get(uuid, BoardReport()), self._boards[self._places[uuid]]
            if report != (before := known.get(uuid)):
                self.divisions += report.mig != (None if before is None else before.mig)
                has_driver = report.counts is not None or self._counted.get(uuid) == host
                loaded = self._loads(board, f"{host}/", report.loads, ns(now_s))
                counted = self._counts(board, host, report.counts)
                controlled = has_driver and board.control(report.controls, ns(now_s))
                corrects = report.ecc is not None and board.correct_errors(report.ecc)
                accounts = has_driver and board.account(report.accounting, ns(now_s))
                if loaded or counted or controlled or corrects or accounts:
                    changed.append(self._places[uuid])
        self._note(changed, now_s)

    def _loads(self, board: GpuTelemetry, prefix: str, loads: Mapping[str, GpuLoad], at_ns: int) -> bool:
        running = {key: load for key, load in board.loads().items() if key.startswith(prefix)}
        wanted = {prefix + key: load for key, load in loads.items()}
        for key in [key for key in running if key not in wanted]:
            board.end(key, at_ns)
        for key, load in wanted.items():
            board.begin(key, load, at_ns)
        return running != wanted

    def _counts(self, board: GpuTelemetry, host: str, counts: DriverCounts | None) -> bool:
        """Only the host that counts on a board can stop counting."""
        if counts is None and self._counted.get(board.uuid) != host:
            return False
        before = board.counters, board.driver_session()
        if counts is None:
            del self._counted[board.uuid]
        else:
            self._counted[board.uuid] = host
            counts = replace(counts, session=f"{host}/{counts.session}")
        board.counted(counts)
        return before != (board.counters, board.driver_session())

    def set(self, device: str, values: Mapping[str, Any], now_s: float) -> None:
        """Settings of one board, or of ``all`` of them (``mews.emulator.telemetry.settings``): on all or on none.

        Raises ValueError.
        """
        self.check(device, values)
        for board in self._named(device):
            board.set(values, ns(now_s))
        self._note([self._places[board.uuid] for board in self._named(device)], now_s)

    def check(self, device: str, values: Mapping[str, Any]) -> None:
        """Raises ValueError where ``set`` would."""
        for board in self._named(device):
            board.check(values)

    def _named(self, device: str) -> list[GpuTelemetry]:
        return list(self._boards.values()) if device == ALL else [self.gpu(device)]

    def _note(self, devices: Sequence[str], now_s: float) -> None:
        if devices:
            self.version += 1
        if devices and self._store is not None:
            self._store.save({device: self._boards[device].state(ns(now_s)) for device in devices})


def model_of(model: str) -> GpuProfile:
    """Return a board's model; of what is no GPU, or unknown, the default's."""
    return profile_of(model if is_known(model) else DEFAULT_MODEL)

"""Keeps the hosts and the boards' telemetry, which the chassis' process writes, in step.

What works on a host's boards is sent whole whenever it changes, and again when the chassis' process is another one;
records come back by a request that waits until there is something new. Neither side has to remember the other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct, field

from mews.emulator.clock import boot_id, monotonic_ns
from mews.emulator.host.nvml_view import NO_RECORDS
from mews.emulator.host.telemetry import report_of
from mews.emulator.host.tree import HostTree
from mews.emulator.hostd.chassis_control import ChassisControl, ChassisStream, ControlLostError
from mews.emulator.hostd.rack import HostRack
from mews.emulator.nvml.state import StateClock
from mews.emulator.telemetry.bulletin import TelemetryBulletin, TimeAnchor
from mews.emulator.telemetry.record import BoardRecord
from mews.emulator.telemetry.units import NS_PER_S, seconds

_RETRY_S = 0.1
_POLL_S = 10.0
_SHORTEST_S = 0.02


class KnownTelemetry(Struct, frozen=True):
    """The boards' records, and the time that they are in: None before anything is known."""

    records: Mapping[str, BoardRecord] = field(default_factory=lambda: NO_RECORDS)
    anchor: TimeAnchor | None = None

    @property
    def now_s(self) -> float | None:
        """Now, in the records' time."""
        return None if self.anchor is None else seconds(self.anchor.emulated_at(monotonic_ns()))

    @property
    def clock(self) -> StateClock | None:
        """The same for the library."""
        anchor = self.anchor
        return None if anchor is None else StateClock(anchor.monotonic_ns, anchor.emulated_ns, anchor.speed)


class TelemetryFollower:
    """Reports what works on the rack's boards; ``known`` is what the chassis say of them.

    ``incarnation`` tells this process' drivers from those of the one before: what those counted is in the past.
    """

    def __init__(self, control: ChassisControl, rack: HostRack, incarnation: str) -> None:
        self.known = KnownTelemetry()
        self._control, self._rack, self._incarnation = control, rack, incarnation
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._wanted: dict[str, dict[str, Any]] = {}
        self._sent: dict[str, dict[str, Any]] = {}
        self._version = ""
        self._until_ns: int | None = None
        self._stream = ChassisStream(control)
        self._threads = [
            threading.Thread(target=self._report, name="telemetry reports", daemon=True),
            threading.Thread(target=self._follow, name="telemetry", daemon=True),
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._changed.set()
        self._stream.end()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(2.0)

    def note(self, name: str, tree: HostTree) -> None:
        """A host's state has changed: a publisher of the rack."""
        reports: dict[str, Any] = {uuid: report.as_value() for uuid, report in report_of(tree.host).items()}
        for report in reports.values():
            if report["counts"] is not None:
                report["counts"][0] = f"{self._incarnation}.{report['counts'][0]}"
        with self._lock:
            self._wanted[name] = reports
        self._changed.set()

    def _report(self) -> None:
        while not self._stop.is_set():
            self._changed.wait()
            self._changed.clear()
            with self._lock:
                due = {name: reports for name, reports in self._wanted.items() if self._sent.get(name) != reports}
            for name, reports in due.items():
                try:
                    self._control.ask("/v1/telemetry/reports", "PUT", {"host": name, "reports": reports})
                except ControlLostError:
                    self._stop.wait(_RETRY_S)
                    self._changed.set()
                    break
                with self._lock:
                    self._sent[name] = reports

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                self._take(TelemetryBulletin.from_value(self._next()))
            except (ControlLostError, KeyError, TypeError, ValueError):
                self._stop.wait(_RETRY_S)

    def _next(self) -> Any:
        """Return all records, as soon as they are others or the known ones are about to run out."""
        query = urlencode({"since": self._version, "wait_s": f"{self._patience_s():.3f}"})
        return ChassisControl.read(self._stream.open(f"/v1/telemetry/records?{query}"))

    def _patience_s(self) -> float:
        """Half of what the known records still reach."""
        anchor, until_ns = self.known.anchor, self._until_ns
        if anchor is None or until_ns is None:
            return _POLL_S
        left_s = (until_ns - anchor.emulated_at(monotonic_ns())) / NS_PER_S / anchor.speed
        return max(_SHORTEST_S, min(_POLL_S, left_s / 2))

    def _take(self, bulletin: TelemetryBulletin) -> None:
        if bulletin.version.split(".")[0] != self._version.split(".")[0]:
            with self._lock:
                self._sent.clear()
            self._changed.set()
        anchor = bulletin.anchored(boot_id(), monotonic_ns())
        if bulletin.version == self._version and not self._short(anchor):
            return
        self._version, self._until_ns = bulletin.version, bulletin.until_ns()
        with self._rack.acting():
            self.known = KnownTelemetry(bulletin.records, anchor)
            self._rack.show_telemetry()

    def _short(self, anchor: TimeAnchor) -> bool:
        """Return whether the known records run out before one would ask again."""
        if self._until_ns is None:
            return False
        return self._until_ns < anchor.emulated_at(monotonic_ns()) + 2 * _POLL_S * NS_PER_S * anchor.speed

"""The telemetry of a rack's chassis in wall time: read, set and reported by several threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.clock import EmulatedClock, boot_id, monotonic_ns
from mews.emulator.telemetry.bulletin import TelemetryBulletin, TimeAnchor
from mews.emulator.telemetry.chassis import BoardReport
from mews.emulator.telemetry.exposition import ExposedGpu, exposition
from mews.emulator.telemetry.record import BoardRecord
from mews.emulator.telemetry.settings import ALL
from mews.emulator.telemetry.units import ns

LONGEST_WAIT_S = 30.0


class LockedBoxes(Protocol):
    """A rack: its clock, and its chassis, one at a time and nobody else touching it."""

    @property
    def clock(self) -> EmulatedClock:
        """Emulated time."""
        ...

    def names(self) -> tuple[str, ...]:
        """Return the chassis."""
        ...

    def box(self, name: str) -> AbstractContextManager[EmulatedChassis]:
        """Return one of them; whoever waits on the clock is woken."""
        ...

    def telemetry_version(self, name: str) -> int:
        """Return the version of a chassis' telemetry, waking nobody."""
        ...


class RackTelemetry:
    """All boards of a rack."""

    def __init__(self, rack: LockedBoxes) -> None:
        self._rack = rack
        self._born = monotonic_ns()

    def _boxes(self) -> Iterator[tuple[str, EmulatedChassis, float]]:
        for name in self._rack.names():
            with self._rack.box(name) as box:
                now_s = self._rack.clock.now()
                box.settle(now_s)
                yield name, box, now_s

    def readings(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> everything that it shows now, and what is set on it."""
        return {name: box.telemetry.shown(now_s) for name, box, now_s in self._boxes()}

    def metrics(self) -> str:
        """Return what Prometheus scrapes."""
        return exposition(gpu for _, box, now_s in self._boxes() for gpu in exposed(box, now_s))

    def set(self, chassis: str, device: str, values: Mapping[str, Any]) -> None:
        """Settings of one board, of all of a chassis, or of all chassis: on all or on none.

        Raises ValueError.
        """
        names = self._rack.names() if chassis == ALL else (chassis,)
        for name in names:
            with self._rack.box(name) as box:
                box.telemetry.check(device, values)
        for name in names:
            with self._rack.box(name) as box:
                now_s = self._rack.clock.now()
                box.settle(now_s)
                box.telemetry.set(device, values, now_s)

    def report(self, host: str, reports: Mapping[str, BoardReport]) -> None:
        """All that a host has on any board."""
        for _, box, now_s in self._boxes():
            box.telemetry.report(host, reports, now_s)

    def bulletin(self, since: str = "", wait_s: float = 0.0) -> TelemetryBulletin:
        """Return all records, once the version is another than ``since`` or after that many real seconds."""
        clock = self._rack.clock
        until_s = clock.real_s() + min(wait_s, LONGEST_WAIT_S)
        while self._version() == since and (left_s := until_s - clock.real_s()) > 0:
            if not clock.pause(left_s):
                break
        version, records = self._version(), dict[str, BoardRecord]()
        for _, box, now_s in self._boxes():
            records |= box.telemetry.records(now_s)
        real_s, emulated_s, speed = clock.anchor()
        anchor = TimeAnchor(ns(real_s), ns(emulated_s), speed)
        return TelemetryBulletin(version, boot_id(), anchor, ns(clock.now()), records)

    def _version(self) -> str:
        versions = []
        for name in self._rack.names():
            versions.append(str(self._rack.telemetry_version(name)))
        return f"{self._born}.{self._rack.clock.speed:g}.{'.'.join(versions)}"


def exposed(box: EmulatedChassis, now_s: float) -> Iterator[ExposedGpu]:
    """Yield the GPUs of a chassis with their labels; ``gpu`` is the device's ID, ``Hostname`` empty where no host has
    it."""
    for row in box.rows(now_s):
        spec = box.table.spec(row.device)
        if spec.kind == "GPU":
            host = None if row.port is None else box.spec.ports.get(row.port)
            labels = {
                "gpu": row.device,
                "UUID": spec.uuid,
                "modelName": box.telemetry.gpu(row.device).profile.name,
                "chassis": box.spec.name,
                "Hostname": host or "",
            }
            yield ExposedGpu(labels, box.telemetry.reading(row.device, now_s))

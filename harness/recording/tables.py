"""What a chassis' listings show over time: where each device was, and when it moved, vanished or lost its UUID."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from mews.harness.recording.observations import SeenDevice, TableReading


class ListingChange(Struct, frozen=True):
    """One device differed between two readings, of which the later came ``at`` that time."""

    at: float
    chassis: str
    device: str
    kind: Literal["moved", "missing", "back", "uuid-lost"]
    old_port: str | None = None
    port: str | None = None


class ChassisHistory(Struct, frozen=True):
    """One chassis: its devices as first seen, the ports that were ever seen, and what changed, in order.

    ``dated``: whether anything says when it was read.
    """

    name: str
    devices: Mapping[str, SeenDevice]
    ports: tuple[str, ...]
    changes: tuple[ListingChange, ...]
    last: Mapping[str, SeenDevice]
    dated: bool

    def port_at(self, device: str, t: float | None) -> str | None:
        """Return where a device was; None while free, or for the time, at the end."""
        found = self.devices[device].port if device in self.devices else None
        for change in self.changes:
            if t is not None and change.at > t:
                break
            if change.device == device and change.kind == "moved":
                found = change.port
        return found

    def on_port(self, port: str, t: float | None) -> list[str]:
        """Return the devices on a port."""
        return [device for device in self.devices if self.port_at(device, t) == port]

    def missing_at_end(self) -> set[str]:
        """Devices that the last reading did not list."""
        return set(self.devices) - set(self.last)


def chassis_histories(readings: Iterable[TableReading]) -> list[ChassisHistory]:
    """Return those of every chassis, by name."""
    by_name: dict[str, list[TableReading]] = {}
    for each in readings:
        by_name.setdefault(each.chassis, []).append(each)
    return [_history(name, by_name[name]) for name in sorted(by_name)]


def _history(name: str, readings: Sequence[TableReading]) -> ChassisHistory:
    ordered = sorted(readings, key=lambda each: each.at if each.at is not None else 0.0)
    first: dict[str, SeenDevice] = {}
    known: dict[str, SeenDevice] = {}
    present: dict[str, SeenDevice] = {}
    changes: list[ListingChange] = []
    for number, reading in enumerate(ordered):
        rows = {each.device: each for each in reading.devices}
        if number and reading.at is not None:
            changes += _changes(reading.at, name, known, set(present), rows)
        first = {**rows, **first}
        known, present = {**known, **rows}, rows
    ports = {port for each in ordered for port in each.ports}
    ports |= {row.port for each in ordered for row in each.devices if row.port is not None}
    listed = tuple(sorted(ports, key=lambda port: (not port.isdecimal(), int(port) if port.isdecimal() else 0, port)))
    return ChassisHistory(name, first, listed, tuple(changes), present, any(each.at is not None for each in ordered))


def _changes(
    at: float, chassis: str, known: Mapping[str, SeenDevice], present: set[str], rows: Mapping[str, SeenDevice]
) -> Iterable[ListingChange]:
    for device in sorted(present - rows.keys()):
        yield ListingChange(at, chassis, device, "missing")
    for device in sorted(rows.keys() & known.keys()):
        was, now = known[device], rows[device]
        if device not in present:
            yield ListingChange(at, chassis, device, "back")
        if was.port != now.port:
            yield ListingChange(at, chassis, device, "moved", was.port, now.port)
        if was.uuid and not now.uuid:
            yield ListingChange(at, chassis, device, "uuid-lost", now.port, now.port)

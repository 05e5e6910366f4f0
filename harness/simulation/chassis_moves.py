"""The chassis core under a trace: the emulated chassis of a run, asked on the trace's own time."""

from __future__ import annotations

from collections.abc import Callable

from mews.emulator.chassis.fleet import Fleet
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware

UsableAfter = Callable[[str, float, float], float]
"""Node, from when on a reading of its pool shows what was moved, how long such a reading takes -> when the node counts
it."""


class ChassisMoves:
    """``DeviceMoves`` over emulated chassis, with their latencies, quirks and faults. ``usable``: what comes after the
    chassis; None: nothing."""

    def __init__(self, hardware: Hardware, seed: int | str, usable: UsableAfter | None = None) -> None:
        self._fleet = Fleet(hardware, EmulationContext(seed))
        self._usable = usable
        self._boxes = self._fleet.boxes
        self._place: dict[str, tuple[str, str]] = {}
        self._ports: dict[tuple[str, str], str] = {}
        self._pools: dict[str, list[str]] = {}
        self._pool_of: dict[str, str] = {}
        self._pool_reading_s: dict[str, float] = {}
        self._reading_s: dict[str, float] = {}
        for spec in hardware.chassis:
            self._pools.setdefault(spec.pool, []).append(spec.name)
            for device in spec.devices:
                self._place[spec.gpuid(device.id)] = spec.name, device.id
            for port, host in spec.ports.items():
                if host is not None:
                    self._ports.setdefault((spec.name, host), port)
                    self._pool_of.setdefault(host, spec.pool)

    def _read_chassis(self, name: str, now_s: float) -> float:
        box = self._boxes[name]
        operation = box.begin_read(now_s)
        box.finish(operation, operation.answer_s)
        self._reading_s[name] = operation.answer_s - now_s
        return operation.answer_s

    def read(self, pool: str, now_s: float) -> float:
        """Return when all chassis of the pool, asked at once, have answered."""
        answered_s = max(self._read_chassis(name, now_s) for name in self._pools[pool])
        self._pool_reading_s[pool] = answered_s - now_s
        return answered_s

    def read_one(self, gpuid: str, now_s: float) -> float:
        """Return when the chassis of that device has."""
        return self._read_chassis(self._place[gpuid][0], now_s)

    def detach(self, gpuid: str, now_s: float) -> float:
        """Return when the chassis answers."""
        name, device = self._place[gpuid]
        operation = self._boxes[name].begin_detach(device, now_s)
        self._boxes[name].finish(operation, operation.answer_s)
        return operation.answer_s

    def attach(self, gpuid: str, node: str, now_s: float) -> float:
        """Return when the chassis answers."""
        name, device = self._place[gpuid]
        operation = self._boxes[name].begin_attach(device, self._ports[name, node], now_s)
        self._boxes[name].finish(operation, operation.answer_s)
        return operation.answer_s

    def can_reach(self, gpuid: str, node: str) -> bool:
        """Return whether the node is cabled to the device's chassis."""
        return (self._place[gpuid][0], node) in self._ports

    def node_of(self, gpuid: str, now_s: float) -> str | None:
        """Return the node on whose port the table has the device, None while it is free."""
        name, device = self._place[gpuid]
        box = self._boxes[name]
        port = box.row(device, max(now_s, box.now_s)).port
        return None if port is None else box.spec.ports[port]

    def usable_s(self, node: str, gpuid: str, moved_s: float) -> float:
        """Return when the node counts a device that was attached to it then, or taken from it."""
        if self._usable is None:
            return moved_s
        reading_s = self._pool_reading_s.get(self._pool_of[node], 0.0)
        # Its own chassis has answered before the slowest has: what comes in between is for the next reading.
        early_s = max(reading_s - self._reading_s.get(self._place[gpuid][0], reading_s), 0.0)
        return self._usable(node, moved_s + early_s, reading_s)

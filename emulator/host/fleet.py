"""All hosts of a hardware file together, fed by what their chassis tell."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.inventory import ChassisSpec, DeviceSpec, Hardware
from mews.emulator.host.event_order import EventOrder
from mews.emulator.host.events import Listener, ignore
from mews.emulator.host.host import Host
from mews.emulator.host.own_slots import OWN

Ports = Mapping[str, Mapping[str, str | None]]
"""Chassis -> device -> host port."""


class Hosts:
    """The hosts by name, each with its own stream of chance derived from the seed."""

    def __init__(self, hardware: Hardware, seed: int | str, *, listener: Listener = ignore) -> None:
        self.hardware = hardware
        self._chassis = {spec.name: spec for spec in hardware.chassis}
        self._order = {spec.name: EventOrder() for spec in hardware.chassis}
        self._devices = {(spec.name, device.id): device for spec in hardware.chassis for device in spec.devices}
        self.hosts = {
            spec.name: Host(
                spec,
                hardware.chassis,
                number=number,
                rng=random.Random(f"{seed}/host/{spec.name}"),
                listener=listener,
            )
            for number, spec in enumerate(hardware.hosts)
        }

    def host(self, name: str) -> Host:
        """Return the host of that name.

        Raises ValueError naming those there are.
        """
        try:
            return self.hosts[name]
        except KeyError:
            raise ValueError(f"host {name!r}: must be one of {', '.join(self.hosts)}") from None

    def begin(self, now_s: float, ports: Ports | None = None) -> None:
        """All machines boot; ``ports`` is the chassis' table now, without it that of the hardware file."""
        for name, host in self.hosts.items():
            host.begin(self._on(name, ports), now_s)

    def reconcile(self, ports: Ports | None, now_s: float) -> None:
        """The table is this now, however it came about."""
        self._order = {name: EventOrder() for name in self._chassis}
        for name, host in self.hosts.items():
            host.reconcile(self._on(name, ports), now_s)

    def on_event(self, chassis: str, number: int, event: str, fields: Mapping[str, Any], now_s: float) -> None:
        """Take one event of a chassis (``mews.emulator.chassis.events``); most do not concern hosts.

        One that comes late (the fault ``events-out-of-order``) is dropped when a later one of the kind was taken.
        """
        if not self._order[chassis].is_news(number, event, fields.get("device")):
            return
        match event:
            case "table-changed":
                self._move(chassis, fields["device"], fields["old_port"], fields["new_port"], now_s)
            case "device-inserted":
                given = {name: fields[name] for name in ("uuid", "kind", "model", "serial") if name in fields}
                self._devices[(chassis, fields["device"])] = DeviceSpec(id=fields["device"], **given)
                self._move(chassis, fields["device"], None, fields["new_port"], now_s)
            case "device-removed":
                self._move(chassis, fields["device"], fields["old_port"], None, now_s)
            case "link-down" | "link-up":
                host = self._host_on(chassis, fields["port"])
                if host is not None:
                    host.set_link(chassis, fields["device"], event == "link-up", now_s)
            case "host-power" if fields["host"] in self.hosts:
                self.hosts[fields["host"]].set_power(fields["on"], now_s)
            case "reset":
                self._reset(chassis, now_s)

    def clear(self, now_s: float, name: str | None = None) -> None:
        """Undo the faults of one host, or of all.

        Raises ValueError for an unknown host.
        """
        for host in self.hosts.values() if name is None else (self.host(name),):
            host.faults.clear(now_s)

    def _move(self, chassis: str, device: str, old: str | None, new: str | None, now_s: float) -> None:
        before, after = self._host_on(chassis, old), self._host_on(chassis, new)
        for host in self.hosts.values():  # Another than it was taken from has it where an edit between is heard late.
            if host is before or _has(host, chassis, device):
                host.unplug(chassis, device, now_s)
        if after is not None:
            after.plug(chassis, self._devices[(chassis, device)], now_s)

    def _reset(self, chassis: str, now_s: float) -> None:
        """That chassis' table is as at the start."""
        start = self._chassis[chassis]
        for name, host in self.hosts.items():
            others: dict[str, list[DeviceSpec]] = {}
            for function in host.functions():
                if function.plugged and function.chassis != chassis:
                    others.setdefault(function.chassis, []).append(function.device)
            host.reconcile({**others, chassis: _first(start, name)}, now_s)
            if name in start.ports.values():
                host.set_power(True, now_s)
            for function in host.functions():
                if function.plugged and function.chassis == chassis and not function.link:
                    host.set_link(chassis, function.device.id, True, now_s)

    def _host_on(self, chassis: str, port: str | None) -> Host | None:
        name = None if port is None else self._chassis[chassis].ports.get(port)
        return None if name is None else self.hosts.get(name)

    def _on(self, host: str, ports: Ports | None) -> dict[str, list[DeviceSpec]]:
        own = {OWN: list(devices)} if (devices := self.hosts[host].spec.devices) else {}
        if ports is None:
            return {**{spec.name: _first(spec, host) for spec in self.hardware.chassis}, **own}
        return {
            **own,
            **{
                name: [
                    self._devices[(name, device)]
                    for device, port in rows.items()
                    if port is not None and self._chassis[name].ports.get(port) == host
                ]
                for name, rows in ports.items()
            },
        }


def _has(host: Host, chassis: str, device: str) -> bool:
    return any((each.chassis, each.device.id, each.plugged) == (chassis, device, True) for each in host.functions())


def _first(spec: ChassisSpec, host: str) -> list[DeviceSpec]:
    return [device for device in spec.devices if device.port is not None and spec.ports.get(device.port) == host]

"""All hosts of a hardware file together, fed by what their chassis tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec, Hardware
from mews.emulator.host.event_order import EventOrder
from mews.emulator.host.events import Listener, ignore
from mews.emulator.host.function import Function
from mews.emulator.host.host import Host
from mews.emulator.host.mig import kept_mode
from mews.emulator.host.own_slots import OWN
from mews.names import must_be

Ports = Mapping[str, Mapping[str, str | None]]
"""Chassis -> device -> host port."""


class Hosts:
    """The hosts by name, each with its own stream of chance."""

    def __init__(self, hardware: Hardware, context: EmulationContext, *, listener: Listener = ignore) -> None:
        self.hardware = hardware
        self._chassis = {spec.name: spec for spec in hardware.chassis}
        self._order = {spec.name: EventOrder() for spec in hardware.chassis}
        self._devices = {(spec.name, device.id): device for spec in hardware.chassis for device in spec.devices}
        self._hosts_of = {spec.name: frozenset(spec.ports.values()) for spec in hardware.chassis}
        self._modes: dict[str, bool] = {}
        """UUID -> MIG mode of boards that keep it, as it was when they last left a host."""
        self._links_down: set[tuple[str, str]] = set()
        """(chassis, device): an edit moves a device whose link is down, and the link stays down."""
        cabled = _cabled(hardware)
        self.hosts = {
            spec.name: Host(
                spec,
                cabled.get(spec.name, ()),
                number=number,
                rng=context.rng(f"host/{spec.name}"),
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
            raise ValueError(f"host {name!r}: {must_be(name, self.hosts)}") from None

    def begin(self, now_s: float, ports: Ports | None = None) -> None:
        """All machines boot; ``ports`` is the chassis' table now, without it that of the hardware file."""
        on = self._on_hosts(ports)
        for name, host in self.hosts.items():
            host.begin(on[name], now_s)

    def reconcile(self, ports: Ports | None, now_s: float) -> None:
        """The table is this now, however it came about."""
        self._order = {name: EventOrder() for name in self._chassis}
        on = self._on_hosts(ports)
        for name, host in self.hosts.items():
            host.reconcile(on[name], now_s)

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
                self._links_down.discard((chassis, fields["device"]))
                self._move(chassis, fields["device"], None, fields["new_port"], now_s)
            case "device-removed":
                self._move(chassis, fields["device"], fields["old_port"], None, now_s)
            case "link-down" | "link-up":
                note = self._links_down.add if event == "link-down" else self._links_down.discard
                note((chassis, fields["device"]))
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
        cabled = self._hosts_of[chassis]
        for name, host in self.hosts.items():  # Not only where it was taken from: an edit between may be heard late.
            if name not in cabled:
                continue
            if host is before or _has(host, chassis, device):
                self._note_mode(host, chassis, device)
                host.unplug(chassis, device, now_s)
        if after is not None:
            link = (chassis, device) not in self._links_down
            after.plug(chassis, self._devices[(chassis, device)], now_s, link=link)
            for function in _on(after, chassis, device):
                function.mig = function.mig.switched(self._modes.get(function.device.uuid, False))

    def _note_mode(self, host: Host, chassis: str, device: str) -> None:
        for function in _on(host, chassis, device):
            if (mode := kept_mode(function)) is not None:
                self._modes[function.device.uuid] = mode

    def _reset(self, chassis: str, now_s: float) -> None:
        """That chassis' table is as at the start."""
        start = self._chassis[chassis]
        self._links_down = {place for place in self._links_down if place[0] != chassis}
        for name, host in self.hosts.items():
            others: dict[str, list[DeviceSpec]] = {}
            for function in host.bus.functions():
                if function.plugged and function.chassis != chassis:
                    others.setdefault(function.chassis, []).append(function.device)
            host.reconcile({**others, chassis: _first(start, name)}, now_s)
            if name in start.ports.values():
                host.set_power(True, now_s)
            for function in host.bus.functions():
                if function.plugged and function.chassis == chassis and not function.link:
                    host.set_link(chassis, function.device.id, True, now_s)

    def _host_on(self, chassis: str, port: str | None) -> Host | None:
        name = None if port is None else self._chassis[chassis].ports.get(port)
        return None if name is None else self.hosts.get(name)

    def _on_hosts(self, ports: Ports | None) -> dict[str, dict[str, list[DeviceSpec]]]:
        """Host -> chassis -> the devices that it has on the host's port; the server's own under ``OWN``."""
        found: dict[str, dict[str, list[DeviceSpec]]] = {name: {} for name in self.hosts}
        if ports is not None:
            self._add_own(found)
        for name, device, port in self._starts() if ports is None else self._rows(ports):
            host = None if port is None else self._chassis[name].ports.get(port)
            if host in found:
                found[host].setdefault(name, []).append(device)
        if ports is None:
            self._add_own(found)
        return found

    def _starts(self) -> Iterator[tuple[str, DeviceSpec, str | None]]:
        """Yield the tables of the hardware file."""
        for spec in self.hardware.chassis:
            yield from ((spec.name, device, device.port) for device in spec.devices)

    def _rows(self, ports: Ports) -> Iterator[tuple[str, DeviceSpec, str | None]]:
        for name, rows in ports.items():
            yield from ((name, self._devices[(name, device)], port) for device, port in rows.items())

    def _add_own(self, found: Mapping[str, dict[str, list[DeviceSpec]]]) -> None:
        for name, host in self.hosts.items():
            if host.spec.devices:
                found[name][OWN] = list(host.spec.devices)


def _cabled(hardware: Hardware) -> dict[str, list[ChassisSpec]]:
    """Host -> the chassis that have a port for it."""
    found: dict[str, list[ChassisSpec]] = {}
    for spec in hardware.chassis:
        for host in dict.fromkeys(spec.ports.values()):
            if host is not None:
                found.setdefault(host, []).append(spec)
    return found


def _has(host: Host, chassis: str, device: str) -> bool:
    return any(_on(host, chassis, device))


def _on(host: Host, chassis: str, device: str) -> Iterator[Function]:
    return (f for f in host.bus.functions() if (f.chassis, f.device.id, f.plugged) == (chassis, device, True))


def _first(spec: ChassisSpec, host: str) -> list[DeviceSpec]:
    return [device for device in spec.devices if device.port is not None and spec.ports.get(device.port) == host]

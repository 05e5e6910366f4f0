"""Invariant 1: a device is on at most one host port."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.observed_hardware import Device
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class SinglePort(Invariant[ObservedState]):
    """No device, by its chassis ID, is attached while it is on another port. No GPU, by its UUID, is in two places."""

    number = 1
    name = "a device is on at most one host port"

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a change of a chassis' table."""
        if line.layer != "chassis":
            return
        touched = [device for device in state.world.devices.values() if device.changed is line]
        for device in touched:
            yield from self._by_id(device, line)
        if touched:
            yield from self._by_uuid(touched, line, state)

    def _by_id(self, device: Device, line: Line) -> Iterator[Breach]:
        if line.event != "attached":
            return
        claimed = line.fields.get("old_port")
        for before in dict.fromkeys((device.port_before, claimed)):
            if before is not None and before != device.port:
                what = f"device {device.gpuid} was attached to port {device.port} while on port {before}"
                yield Breach((device.gpuid, str(line.number)), what, line, device.gpuid)

    def _by_uuid(self, touched: Sequence[Device], line: Line, state: ObservedState) -> Iterator[Breach]:
        on_ports: dict[str, list[Device]] = {}
        for device in state.world.devices.values():
            if device.port is not None and device.uuid:
                on_ports.setdefault(device.uuid, []).append(device)
        for device in touched:
            for other in on_ports.get(device.uuid, ()) if device.port is not None else ():
                if other.gpuid != device.gpuid:
                    what = f"{device.uuid} is on two ports: {_place(device)}, {_place(other)}"
                    yield Breach((device.uuid,), what, line, device.gpuid)


def _place(device: Device) -> str:
    return f"{device.gpuid} on port {device.port} of {device.chassis}"

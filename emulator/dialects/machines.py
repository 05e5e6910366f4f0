"""Host ports as machines with UUIDs, and devices by theirs: what CoHDI's fabric managers have in common."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.errors import RefusalError, UnknownDeviceError
from mews.emulator.chassis.operation import Operation
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.identities import machine_uuid, resource_uuid
from mews.emulator.hardware.inventory import ChassisSpec


class MovedElsewhereError(RefusalError):
    """The device is not on the machine that it was to leave."""

    code = "elsewhere"


class CabledMachine(Struct, frozen=True):
    """What is cabled to a host port; its number is the port's."""

    uuid: str
    name: str
    port: str


class CabledMachines:
    """All machines of one chassis, by UUID and by host port."""

    def __init__(self, spec: ChassisSpec) -> None:
        self.machines = {
            machine.uuid: machine
            for port, host in spec.ports.items()
            if host is not None
            for machine in (CabledMachine(machine_uuid(host), host, port),)
        }
        self.by_port = {machine.port: machine for machine in self.machines.values()}

    def seen(self, rows: Iterable[DeviceRow]) -> dict[str, CabledMachine]:
        """Return all machines by UUID, also one that only a listing knows."""
        found = dict(self.machines)
        for row in rows:
            if row.port is not None and row.port not in self.by_port:
                strange = CabledMachine(machine_uuid(f"port-{row.port}"), f"port-{row.port}", row.port)
                found[strange.uuid] = strange
        return found


def model_of(box: EmulatedChassis, device: str) -> str:
    """Return the model of a device; "unknown" of one that only a listing knows."""
    try:
        return box.table.spec(device).model
    except UnknownDeviceError:
        return "unknown"


def device_of(box: EmulatedChassis, uuid: str) -> str | None:
    """Return the device with that resource UUID, in any case."""
    wanted = uuid.lower()
    return next((each for each in box.table.devices() if resource_uuid(box.spec.name, each) == wanted), None)


def leave_only(box: EmulatedChassis, operation: Operation, port: str) -> None:
    """Refuse a detach if another client moves the device to another port while the request waits for the management
    CPU. A device that is free by then is detached."""

    def check() -> None:
        if box.table.spec(operation.device).port not in (port, None):
            operation.refuse(MovedElsewhereError(f"device {operation.device!r}: has left port {port}"))

    operation.before.append(check)

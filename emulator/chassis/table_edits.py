"""Changes of a chassis' table: by its operations, and out of band by other editors, by hands and by faults."""

from __future__ import annotations

from mews.emulator.chassis.agenda import SettledAgenda
from mews.emulator.chassis.errors import MissingPortError, UncabledPortError, UnknownPortError
from mews.emulator.chassis.event_outlet import EventOutlet
from mews.emulator.chassis.table import DeviceTable
from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec


class TableEdits:
    """Changes the device table of one chassis and emits an event for each change."""

    def __init__(self, spec: ChassisSpec, table: DeviceTable, agenda: SettledAgenda, events: EventOutlet) -> None:
        self._spec = spec
        self._table = table
        self._agenda = agenda
        self._events = events

    def edit(self, device: str, port: str | None, now_s: float, *, cause: str = "edit") -> None:
        """Change the table at once, behind every client's back; straight from port to port if need be.

        Raises UnknownDeviceError, UnknownPortError, UncabledPortError, NotStoredError.
        """
        self._agenda.settle(now_s)
        self._table.row(device)
        if port is not None:
            self.check_port(port)
        self.move(device, port, cause)

    def insert(self, spec: DeviceSpec, now_s: float) -> None:
        """Put one more device into a slot.

        Raises SlotsFullError, DuplicateDeviceError, UnknownPortError, UncabledPortError, NotStoredError.
        """
        self._agenda.settle(now_s)
        if spec.port is not None:
            self.check_port(spec.port)
        self._table.insert(spec)
        self._events.emit(
            "device-inserted",
            device=spec.id,
            uuid=spec.uuid,
            kind=spec.kind,
            model=spec.model,
            serial=spec.serial,
            new_port=spec.port,
        )

    def remove(self, device: str, now_s: float) -> None:
        """Pull a device out of its slot.

        Raises UnknownDeviceError, NotStoredError.
        """
        self._agenda.settle(now_s)
        old = self._table.remove(device)
        self._events.emit("device-removed", device=device, old_port=old)

    def check_port(self, port: str | None) -> None:
        """Raise MissingPortError, UnknownPortError or UncabledPortError for a port that no device can be put on."""
        if not port:
            raise MissingPortError("no host port is given")
        if port not in self._spec.ports:
            raise UnknownPortError(f"port {port!r}: chassis {self._spec.name} has {', '.join(self._spec.ports)}")
        if self._spec.ports[port] is None:
            raise UncabledPortError(f"port {port!r}: no host is cabled to it")

    def move(self, device: str, port: str | None, cause: str) -> None:
        """Put a device on a port, or on none, without any check.

        Raises UnknownDeviceError, NotStoredError.
        """
        old = self._table.row(device).port
        if old == port:
            return
        self._table.move(device, port, self._agenda.now_s)
        self._events.emit("table-changed", device=device, old_port=old, new_port=port, cause=cause)

    def set_link(self, device: str, up: bool) -> None:
        """Take a device's link down or up, the table staying as it is."""
        row = self._table.row(device)
        if row.link is up:
            return
        self._table.show(device, link=up)
        self._events.emit("link-up" if up else "link-down", device=device, port=row.port)

    def set_uuid(self, device: str, uuid: str | None) -> None:
        """Show another UUID than the device has; None shows its own again."""
        own = self._table.spec(device).uuid
        self._table.show(device, uuid=own if uuid is None else uuid)
        self._events.emit("uuid-changed", device=device, uuid=own if uuid is None else uuid)

"""What a Redfish service knows beyond the chassis' table, and one look at both."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.chassis.operation import OperationKind
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import chassis_events, uris
from mews.emulator.dialects.redfish.accounts import Accounts
from mews.emulator.dialects.redfish.events import Hub, RedfishEvent
from mews.emulator.dialects.redfish.rendered import RenderedReplies
from mews.emulator.dialects.redfish.settings import RedfishSettings
from mews.emulator.dialects.redfish.tasks import Task, TaskList
from mews.emulator.dialects.stamps import utc_text
from mews.emulator.hardware.inventory import ChassisSpec, HostSpec

LOG_KEPT = 1000
"""Log entries; the oldest goes first."""


def service_uuid(spec: ChassisSpec) -> str:
    """Return the UUID of a chassis' service, the same at each start."""
    return str(uuid5(NAMESPACE_DNS, f"{spec.name}.{spec.index}.chassis"))


class ServiceState:
    """One service's memory. The table itself is the chassis'."""

    def __init__(self, box: EmulatedChassis, settings: RedfishSettings) -> None:
        self.box = box
        self.settings = settings
        self.accounts = Accounts(settings)
        self.rendered = RenderedReplies(box)
        self.hub = Hub(self.rendered.changed)
        self.tasks = TaskList(self._on_task)
        self.log: deque[dict[str, Any]] = deque(maxlen=LOG_KEPT)
        self.uuid = service_uuid(box.spec)
        self.certificate = settings.certificate
        self.signing_key = ""
        self._logged = 0
        self._begin_anew()
        for published, about in chassis_events.beginnings(box.spec.ports):
            self._note(published.record(0, self.stamp(box.now_s)), about)
        box.events.listen(self._on_event)

    def _begin_anew(self) -> None:
        self.overlays: dict[str, dict[str, Any]] = {}
        self.revisions: dict[str, int] = {}
        self.composed: dict[str, str] = {}
        self.ready: set[str] = set()
        self.power: dict[str, Any] = {}
        self.slots: dict[str, int] = {}
        self.sync()

    def sync(self) -> None:
        """Give each device its slot: the lowest free one when it comes, none when it goes."""
        there = self.box.table.devices()
        if len(there) == len(self.slots) and all(device in self.slots for device in there):
            return
        self.slots = {device: slot for device, slot in self.slots.items() if device in there}
        taken = set(self.slots.values())
        free = (slot for slot in range(1, self.box.spec.slots + 1) if slot not in taken)
        for device in there:
            if device not in self.slots:
                self.slots[device] = next(free)

    def touch(self, uri: str) -> None:
        """A resource was written: its tag changes though it may look the same."""
        self.rendered.changed()
        self.revisions[uri] = self.revisions.get(uri, 0) + 1

    def stamp(self, t: float) -> str:
        """Emulated time as a date."""
        return utc_text(self.settings.epoch_s + t)

    def emit(self, published: RedfishEvent, t: float, *, log: bool, about: Mapping[str, Any] | None = None) -> None:
        """Tell the subscribers, and write it into the log with what is known ``about`` it."""
        self.rendered.changed()
        record = self.hub.emit(published, self.stamp(t))
        if log:
            self._note(record, about or {})

    def clear_log(self, t: float) -> None:
        """Forget all entries; that it was done is the first of the next ones."""
        self.log.clear()
        self._note(chassis_events.cleared().record(0, self.stamp(t)), {"event": "log-cleared"})

    def _note(self, record: dict[str, Any], about: Mapping[str, Any]) -> None:
        self._logged += 1
        self.log.append({**record, "EventId": str(self._logged), "about": dict(about)})

    def _on_event(self, event: ChassisEvent) -> None:
        self.rendered.changed()
        if event.event == "reset":
            self.tasks.sweep(event.t)
            self._begin_anew()
        slot = self.slots.get(str(event.fields.get("device")))
        if event.event in ("device-inserted", "device-removed"):
            self.sync()
        if event.event == "table-changed" and event.fields["new_port"] is not None:
            self.ready.discard(event.fields["device"])
        for uri in chassis_events.touched(event, dict(self.box.spec.ports)):
            self.touch(uri)
        for published in chassis_events.happenings(event, slot):
            self.emit(published, event.t, log=True, about={"event": event.event, **event.fields})
        if event.event == "operation-finished":
            self.tasks.sweep(event.t)

    def _on_task(self, name: str, task: Task) -> None:
        self.emit(chassis_events.of_task(name, task), self.box.now_s, log=False)


class RedfishView:
    """One look: the rows that this request is to see, at a time. ``timed``: the time has been asked for, so that what
    was seen is another one at another time."""

    __slots__ = ("_now_s", "rows", "state", "timed")

    def __init__(self, state: ServiceState, rows: tuple[DeviceRow, ...], now_s: float) -> None:
        self.state = state
        self.rows = rows
        self.timed = False
        self._now_s = now_s

    @property
    def now_s(self) -> float:
        """Emulated seconds."""
        self.timed = True
        return self._now_s

    @property
    def box(self) -> EmulatedChassis:
        """The chassis."""
        return self.state.box

    @property
    def name(self) -> str:
        """The chassis' name."""
        return self.state.box.spec.name

    @property
    def ports(self) -> Mapping[str, str | None]:
        """Host port -> host."""
        return self.state.box.spec.ports

    def row(self, device: str) -> DeviceRow | None:
        """Return one device's row."""
        return next((row for row in self.rows if row.device == device), None)

    def on(self, port: str) -> list[DeviceRow]:
        """Return the devices on a host port."""
        return [row for row in self.rows if row.port == port]

    def hosts(self) -> dict[str, str]:
        """Host -> its port here; a host with two cables counts by its first."""
        found: dict[str, str] = {}
        for port, host in self.ports.items():
            if host is not None:
                found.setdefault(host, port)
        return found

    def host(self, name: str) -> HostSpec:
        """Return a server that is cabled, as the hardware file has it; one like any other where none is known."""
        return self.state.settings.hosts.get(name) or HostSpec(name)

    def of_host(self, host: str) -> list[DeviceRow]:
        """Return the devices on any of a host's ports."""
        return [row for row in self.rows if row.port is not None and self.ports.get(row.port) == host]

    def pending(self) -> Mapping[str, OperationKind]:
        """Device -> the write that runs on it."""
        return self.state.box.operations.pending()

    def slot(self, device: str) -> int:
        """Return the slot that a device is in."""
        return self.state.slots[device]

    def device_in(self, slot: int) -> str | None:
        """Return the device in a slot."""
        return next((device for device, at in self.state.slots.items() if at == slot), None)

    def stamp(self) -> str:
        """Now, as a date."""
        return self.state.stamp(self.now_s)

    def device_uri(self, device: str) -> str:
        """Return the PCIe device."""
        return f"{uris.chassis(self.name)}/PCIeDevices/{device}"

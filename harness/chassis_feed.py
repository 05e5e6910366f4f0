"""Turns what a chassis tells (``mews.emulator.chassis.events``) into journal lines.

The same in process and over the wire: ``on_event`` takes an event's number, name and fields. Events that come late (the
fault ``events-out-of-order``) are put back into their true order by number, so that the journal tells what happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mews.emulator.hardware.inventory import ChassisSpec
from mews.harness.journal import Journal

Fields = Mapping[str, Any]

MOVES: Mapping[str, str] = {"attach": "attached", "detach": "detached"}
"""Cause of a table change -> event; every other cause is ``edited``."""

RENAMED: Mapping[str, str] = {"management-down": "down", "management-up": "up", "host-power": "host-power"}

EVENTS = (
    *("table", "attach-begun", *MOVES.values(), "detach-begun", "operation-finished", "edited", "inserted", "removed"),
    *("link-down", "link-up", "device-changed", *RENAMED.values()),
)
"""Every event that it writes of layer ``chassis``."""

KEYS = (
    *("t", "layer", "actor", "event", "paper", "pool", "ports", "devices"),
    *("device", "uuid", "gpuid", "port", "host", "old_port", "old_host", "old_uuid", "cause"),
    *("operation", "kind", "answer", "truth", "reason", "on", "boot", "until_s"),
)
"""What its lines may have."""


class ChassisFeed:
    """The feed of one chassis. ``begin()`` writes the table as the hardware file has it, or ``rows`` where the table
    outlived its process (device -> {"uuid", "port"})."""

    def __init__(self, journal: Journal, spec: ChassisSpec, rows: Mapping[str, Fields] | None = None) -> None:
        self._journal = journal
        self._spec = spec
        self._actor = f"chassis/{spec.name}"
        self._start = {device.id: {"uuid": device.uuid, "port": device.port} for device in spec.devices}
        self._rows = {device: dict(row) for device, row in (rows or self._start).items()}
        self._next: int | None = None
        self._early: dict[int, tuple[str, Fields]] = {}

    def begin(self, next_number: int | None = 1) -> None:
        """Write the table; ``next_number`` is the number of the first event to come, None if any may be."""
        self._next = next_number
        self._table()

    def on_event(self, number: int, event: str, fields: Fields) -> None:
        """Take one event; it is written once all before it are."""
        self._early[number] = (event, fields)
        if self._next is None or number < self._next:
            # A restarted chassis counts from 1 again; nothing that is merely late bears a number already passed.
            self._next = number
        while self._next in self._early:
            name, content = self._early.pop(self._next)
            self._next += 1
            self._write(name, content)

    def _write(self, event: str, fields: Fields) -> None:
        if event.startswith("fault-"):
            self._fault(event.removeprefix("fault-"), fields)
        elif event == "reset":
            self._rows = {device: dict(row) for device, row in self._start.items()}
            self._table()
        elif event == "operation-begun":
            device, target = fields["device"], fields["port"]
            self._device(f"{fields['kind']}-begun", device, port=target, operation=fields["operation"])
        elif event in RENAMED:
            self._journal.write("chassis", self._actor, RENAMED[event], **fields)
        else:
            self._change(event, fields)

    def _change(self, event: str, fields: Fields) -> None:
        device = fields["device"]
        row = self._rows.get(device) or {"uuid": fields.get("uuid", ""), "port": None}
        old_port = row["port"]
        match event:
            case "table-changed":
                row["port"] = fields["new_port"]
                cause = fields["cause"]
                extra = {} if cause in MOVES else {"cause": cause}
                self._device(MOVES.get(cause, "edited"), device, old_port=old_port, **extra)
            case "device-inserted" | "device-removed":
                self._rows[device] = {**row, "port": fields.get("new_port")}
                self._device(event.removeprefix("device-"), device, old_port=old_port)
                if event == "device-removed":
                    del self._rows[device]
            case "uuid-changed":
                old_uuid, row["uuid"] = row["uuid"], fields["uuid"]
                self._device("device-changed", device, old_port=old_port, old_uuid=old_uuid)
            case "operation-finished":
                extra = {name: fields[name] for name in ("operation", "kind", "answer", "truth", "reason")}
                self._device(event, device, old_port=old_port, **extra)
            case _:
                self._device(event, device, old_port=old_port)

    def _device(self, event: str, device: str, **extra: Any) -> None:
        row = self._rows.get(device, {"uuid": "", "port": None})
        port, old_port = extra.pop("port", row["port"]), extra.pop("old_port", row["port"])
        place = {"port": port, "host": self._host(port), "old_port": old_port, "old_host": self._host(old_port)}
        names = {"device": device, "uuid": row["uuid"], "gpuid": self._spec.gpuid(device)}
        self._journal.write("chassis", self._actor, event, **names, **place, **extra)

    def _fault(self, event: str, fields: Fields) -> None:
        written = {name: value for name, value in fields.items() if name not in ("may_break", "grace_s")}
        if "may_break" in fields:
            written["excuses"] = {str(number): fields["grace_s"] for number in fields["may_break"]}
        if written.get("device"):
            written["gpuid"] = self._spec.gpuid(written["device"])
        self._journal.write("fault", self._actor, event, **written)

    def _table(self) -> None:
        devices = {
            device: {**row, "gpuid": self._spec.gpuid(device), "host": self._host(row["port"])}
            for device, row in self._rows.items()
        }
        self._journal.write(
            "chassis", self._actor, "table", pool=self._spec.pool, ports=dict(self._spec.ports), devices=devices
        )

    def _host(self, port: str | None) -> str | None:
        return None if port is None else self._spec.ports.get(port)

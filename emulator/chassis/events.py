"""What a chassis tells its one listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

EVENTS = (
    "table-changed",  # device, old_port, new_port, cause
    "device-inserted",  # device, uuid, kind, model, serial, new_port
    "device-removed",  # device, old_port
    "link-down",  # device, port: surprise removal; the table keeps the row, listings leave it out
    "link-up",  # device, port
    "uuid-changed",  # device, uuid
    "host-power",  # host, on, boot: a cabled server was switched off, or on, and from what it starts
    "operation-begun",  # operation, kind, device, port, due_s
    "operation-finished",  # operation, kind, device, port, answer, reason, truth
    "fault-added",  # fault, kind, spec (parameters and conditions as given), count (null: no limit)
    "fault-fired",  # fault, kind, fired, left, operation, may_break, grace_s, device where it is about one
    "fault-cleared",  # fault, kind
    "management-down",  # until_s
    "management-up",
    "reset",
)


class ChassisEvent(Struct, frozen=True):
    """Something happened in chassis ``chassis`` at ``t`` (emulated seconds). ``number`` counts up from 1 in true order.

    With the fault ``events-out-of-order`` a listener hears some of them late: then ``number`` and ``t`` tell the truth.
    """

    number: int
    t: float
    chassis: str
    event: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the event for the wire, JSON-serialisable; t to the microsecond."""
        return {
            "number": self.number,
            "t": round(self.t, 6),
            "chassis": self.chassis,
            "event": self.event,
            **self.fields,
        }


Listener = Callable[[ChassisEvent], None]


def ignore(event: ChassisEvent) -> None:
    """A listener that drops every event, for a chassis to which nobody listens."""

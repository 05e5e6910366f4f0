"""What a host tells its one listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

ROSE: Mapping[str, str] = {
    "link": "link-up",
    "function": "function-added",
    "driver": "driver-bound",
    "node": "node-added",
    "nvml": "nvml-visible",
}
"""Arrow -> the event when that layer has come up."""

FELL: Mapping[str, str] = {
    "link": "link-down",
    "function": "function-removed",
    "driver": "driver-unbound",
    "node": "node-removed",
    "nvml": "nvml-hidden",
}
"""Arrow -> the event when that layer has gone."""

EVENTS = (
    "table",  # devices {gpuid: row}: what is there when the host begins
    *ROSE.values(),  # device
    *FELL.values(),  # device
    "xid",  # device, xid, text
    "lost",  # device: fallen off the bus
    "ecc",  # device, corrected, uncorrected: counters
    "nvml-failing",  # device: NVML answers "unknown error"
    "nvml-recovered",  # device
    "stuck",  # device, arrow: a fault keeps that layer from coming up
    "draining",  # device, on
    "persistence",  # device, on
    "gpu-set",  # device, name, values: a setter of NVML was called; without values the default is back
    "mig-mode",  # device, on
    "mig-instances",  # device, act, instances: what was created or destroyed, and all GPU instances with their profiles
    "gpu-shut-down",  # device: nobody has it open and persistence mode is off, so what was set is gone
    "rescanned",  # below: the bridge below which functions were looked for, None for everywhere
    "virtual-functions",  # device, count: how many it has from now on
    "powered-off",  # the whole machine: nothing runs on it any more
    "powered-on",  # it boots
    "waiting",  # device, what: a write blocks until nobody uses the device
    "used",  # device, holders
    "fault-added",  # fault, kind, spec (parameters and conditions as given), count (null: no limit)
    "fault-fired",  # fault, kind, fired, may_break, grace_s
    "fault-cleared",  # fault, kind
)


class HostEvent(Struct, frozen=True):
    """Something happened on host ``host`` at ``t`` (emulated seconds); ``number`` counts up from 1.

    ``device`` above stands for device, uuid, gpuid, kind, bdf, minor, and healthy: whether all its layers are up and
    it answers (a GPU: NVML shows it).
    """

    number: int
    t: float
    host: str
    event: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the event for the wire, JSON-serialisable; t to the microsecond."""
        return {"number": self.number, "t": round(self.t, 6), "host": self.host, "event": self.event, **self.fields}


Listener = Callable[[HostEvent], None]


def ignore(event: HostEvent) -> None:
    """A listener that drops every event, for a host to which nobody listens."""

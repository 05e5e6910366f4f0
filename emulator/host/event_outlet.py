"""What a host tells: its events to their listener, XIDs also into the kernel log and to NVML."""

from __future__ import annotations

from typing import Any

from mews.emulator.host.driver_events import DriverEvents
from mews.emulator.host.events import HostEvent, Listener
from mews.emulator.host.function import Function
from mews.emulator.host.klog import KernelLog
from mews.emulator.host.pending_actions import PendingActions
from mews.emulator.host.state_versions import StateVersions


class HostEventOutlet:
    """Numbers the events of one host and tells them. ``driver_events`` are those of NVML's event sets."""

    def __init__(self, host: str, listener: Listener, actions: PendingActions, versions: StateVersions) -> None:
        self.driver_events = DriverEvents()
        self.log = KernelLog()
        self._host = host
        self._listener = listener
        self._actions = actions
        self._versions = versions
        self._emitted = 0

    def emit(self, event: str, function: Function | None, /, **fields: Any) -> None:
        """Tell the listener; the state has changed."""
        self._versions.changed()
        self._emitted += 1
        about = {**({} if function is None else function.named()), **fields}
        self._listener(HostEvent(self._emitted, self._actions.now_s, self._host, event, about))

    def xid(self, function: Function, xid: int, instance: tuple[int, int] = (-1, -1)) -> None:
        """The driver reports an XID, maybe of one MIG device: into the kernel log and to NVML's event sets."""
        self.log.xid(self._actions.now_s, function.bdf, xid, instance[0])
        self.driver_events.add("xid", function.bdf, xid, instance=instance)
        self.emit("xid", function, xid=xid, **({"instance": list(instance)} if instance[0] >= 0 else {}))

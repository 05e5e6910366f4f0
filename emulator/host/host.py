"""One server, put together: which devices its chassis ports give it, and how far each has come up.

Pure, like a chassis' ``EmulatedChassis``: no clock, no I/O.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec, HostSpec
from mews.emulator.host.bring_up import BringUp
from mews.emulator.host.bus import HostBus
from mews.emulator.host.control import close_unused
from mews.emulator.host.event_outlet import HostEventOutlet
from mews.emulator.host.events import Listener, ignore
from mews.emulator.host.faults.board import HostFaults
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.holders import FIRST_PID, DeviceHolders, Holder
from mews.emulator.host.joints import host_report
from mews.emulator.host.mig import holding_whole, powered_off
from mews.emulator.host.own_slots import own_chassis
from mews.emulator.host.pending_actions import PendingActions
from mews.emulator.host.state_versions import StateVersions

SHOWN_LINES = 50
"""Lines of the kernel log in a host's view."""

VIEW_KEYS = ("topology", "devices", "holders", "waiting", "log")
"""What a host's view may have."""


class Host:
    """One emulated server, and ``chassis``: those that have a port for it. All methods take ``now_s``, emulated seconds
    that never go back.

    Its parts: the ``bus`` with its devices, their ``bring_up``, what is going to happen as ``actions``, ``events``,
    ``faults``, ``holders`` and ``versions``.
    """

    def __init__(
        self,
        spec: HostSpec,
        cabled: Sequence[ChassisSpec],
        *,
        number: int,
        rng: random.Random,
        listener: Listener = ignore,
    ) -> None:
        self.spec = spec
        self.profile = spec.profile
        self.number = number
        self.chassis = (*cabled, *own_chassis(spec))
        self.persistence_daemon = False
        self.holders = DeviceHolders()
        self._pids = 0
        chance = random.Random(rng.getrandbits(64))
        self.versions = StateVersions()
        self.bus = HostBus(spec, self.chassis, number)
        self.actions = PendingActions(chance, self.versions)
        self.events = HostEventOutlet(spec.name, listener, self.actions, self.versions)
        self.faults = HostFaults(self, random.Random(rng.getrandbits(64)))
        self.bring_up = BringUp(
            self.profile,
            chance,
            bus=self.bus,
            actions=self.actions,
            events=self.events,
            faults=self.faults,
            busy=self.busy,
        )

    # Looking

    @property
    def now_s(self) -> float:
        """The time up to which everything has happened."""
        return self.actions.now_s

    def cpus_near(self, numa_node: int) -> str:
        """Return the processors of a NUMA node as a list such as ``0-23``: each node has as many as any other."""
        if numa_node < 0:
            return f"0-{self.spec.cpus - 1}"
        share = max(self.spec.cpus // self.spec.numa_nodes, 1)
        return f"{numa_node * share}-{numa_node * share + share - 1}"

    def busy(self, function: Function, *, but: Sequence[str] = ()) -> bool:
        """Return whether somebody has the GPU open: a process, a pod, or the driver's own persistence."""
        return function.persistence or bool(self.holders.of(function.device.uuid, but=but))

    def view(self) -> dict[str, Any]:
        """Devices by GPUID, holders, what waits, and the end of the kernel log; of a server with a tree or links of its
        own also how its GPUs are joined."""
        joined = self.spec.pcie is not None or self.spec.links is not None
        return {
            **({"topology": host_report(self)} if joined else {}),
            "devices": {function.gpuid: function.row() for function in self.bus.functions() if function.plugged},
            "holders": [
                {"key": h.key, "pid": h.pid, "name": h.name, "uuids": list(h.uuids), "computing": h.computing}
                for h in self.holders
            ],
            "waiting": self.actions.waiting(),
            "log": list(self.events.log.lines())[-SHOWN_LINES:],
        }

    # The chassis' side

    def begin(self, devices: Mapping[str, Sequence[DeviceSpec]], now_s: float) -> None:
        """The machine boots: the devices on its ports (by chassis) are all up, without delay and without a word but
        ``table``."""
        self.actions.now_s = now_s
        for chassis, found in devices.items():
            for device in found:
                self.bring_up.stand_up(self.bus.enter(chassis, device))
        self.versions.changed()
        self.events.emit("table", None, devices={f.gpuid: f.named() for f in self.bus.functions()})

    def reconcile(self, devices: Mapping[str, Sequence[DeviceSpec]], now_s: float) -> None:
        """The chassis' table is this now, however it came about: plug in and pull out what differs."""
        wanted = {(chassis, device.id): device for chassis, found in devices.items() for device in found}
        for function in [f for f in self.bus.functions() if f.plugged]:
            if (function.chassis, function.device.id) not in wanted:
                self.unplug(function.chassis, function.device.id, now_s)
        there = {(f.chassis, f.device.id) for f in self.bus.functions() if f.plugged}
        for (chassis, name), device in wanted.items():
            if (chassis, name) not in there:
                self.plug(chassis, device, now_s)

    def plug(self, chassis: str, device: DeviceSpec, now_s: float, *, link: bool = True) -> None:
        """The chassis has put a device on our port, its link being up or down."""
        self.actions.settle(now_s)
        self.bring_up.climb(self.bus.enter(chassis, device, link))
        self.actions.settle(self.now_s)

    def unplug(self, chassis: str, device: str, now_s: float) -> None:
        """The chassis has taken a device off our port. What is still there of it is removed by surprise."""
        self.actions.settle(now_s)
        for function in self.bus.functions():
            if (function.chassis, function.device.id, function.plugged) == (chassis, device, True):
                function.plugged = False
                self.bring_up.cut(function)
        self.actions.settle(self.now_s)

    def set_link(self, chassis: str, device: str, up: bool, now_s: float) -> None:
        """The chassis' side of a device's link went down or came up."""
        self.actions.settle(now_s)
        follow = self.bring_up.climb if up else self.bring_up.cut
        for function in self.bus.functions():
            if (function.chassis, function.device.id, function.plugged) == (chassis, device, True):
                function.link = up
                follow(function)
        self.actions.settle(self.now_s)

    def set_power(self, on: bool, now_s: float) -> None:
        """The machine is switched off: what runs on it ends, and its devices go, in order. Or it is switched on, and
        they come up again."""
        self.actions.settle(now_s)
        if on is self.bring_up.running:
            return
        self.bring_up.running = on
        self.events.emit("powered-on" if on else "powered-off", None)
        for key in self.holders.keys("") if not on else ():
            self.holders.release(key)
        for function in self.bus.functions():
            if on:
                self.bring_up.climb(function)
                continue
            self.bring_up.take_down(function, BringUpStage.ABSENT)
            powered_off(function)
            function.plucked, function.unbound, function.powered = False, False, True
            if not function.plugged:
                self.bus.leave(function)
        self.versions.changed()
        self.actions.settle(self.now_s)

    # Use

    def hold(self, holder: Holder, now_s: float) -> None:
        """Let a process open devices, as a container's process does."""
        self.actions.settle(now_s)
        if not holder.pid:
            self._pids += 1
            holder = replace(holder, pid=FIRST_PID + self._pids)
        self.holders.hold(holding_whole(holder, self.bus.functions()))
        self.versions.use_changed()

    def release(self, key: str, now_s: float) -> None:
        """Somebody closes what it had open; what waited for that happens."""
        self.actions.settle(now_s)
        if self.holders.release(key) is not None:
            self.versions.use_changed()
            close_unused(self)
        self.actions.settle(self.now_s)

    def settle(self, now_s: float) -> None:
        """Let everything happen that was due by now, each at its own time, and then what waited for it."""
        self.actions.settle(now_s)

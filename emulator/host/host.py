"""One server: which devices its chassis ports give it, and how far each has come up.

Pure, like a chassis' ``EmulatedChassis``: no clock, no I/O.
A device climbs the layers of ``ARROWS`` one by one, each with its own delay from the profile. It comes down at once:
orderly from the top, or by surprise, when the chassis takes a device away that is still there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mews.emulator.chassis.agenda import Agenda
from mews.emulator.hardware.cards import RDMA_DRIVER, card_of
from mews.emulator.hardware.host_profiles import ARROWS
from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec, HostSpec
from mews.emulator.hardware.latency import Latency
from mews.emulator.host.control import close_unused
from mews.emulator.host.driver_events import DriverEvents
from mews.emulator.host.errors import NoSuchDeviceError
from mews.emulator.host.events import FELL, ROSE, HostEvent, Listener, ignore
from mews.emulator.host.faults.board import HostFaults
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.holders import FIRST_PID, DeviceHolders, Holder
from mews.emulator.host.joints import host_report
from mews.emulator.host.klog import KernelLog
from mews.emulator.host.mig import holding_whole, powered_off
from mews.emulator.host.own_slots import HostSlots, address_pools, own_chassis
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.virtual_functions import virtual_function

SHOWN_LINES = 50
"""Lines of the kernel log in a host's view."""

VIEW_KEYS = ("topology", "devices", "holders", "waiting", "log")
"""What a host's view may have."""


class Host:
    """One emulated server, and ``cabled``, the chassis that have a port for it. All methods take ``now_s``, emulated
    seconds that never go back."""

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
        self._slots = HostSlots(self.chassis)
        self._addresses, self.own_switches = address_pools(spec, self.chassis, number)
        self._listener = listener
        self._rng = random.Random(rng.getrandbits(64))
        self._numbers = self._emitted = 0
        self._functions: list[Function] = []
        self._agenda = Agenda()
        self._pending: list[PendingAction] = []
        self.persistence_daemon = False
        self._pids, self._settling = 0, False
        self.running = True
        self._now_s = 0.0
        self.version = 0
        self._use_changes = 0
        self.driver_events = DriverEvents()
        self.log = KernelLog()
        self.holders = DeviceHolders()
        self.faults = HostFaults(self, random.Random(rng.getrandbits(64)))

    # Looking

    @property
    def now_s(self) -> float:
        """The time up to which everything has happened."""
        return self._now_s

    @property
    def hardware_version(self) -> int:
        """``version`` without who has devices open: another one once sysfs or the driver's files may have changed."""
        return self.version - self._use_changes

    def functions(self) -> tuple[Function, ...]:
        """Return all devices of which anything is left, by address."""
        return tuple(self._functions)

    def on_bus(self) -> list[Function]:
        """Return all PCI functions that sysfs shows, virtual ones after the physical one that has them."""
        return [f for own in self._functions for f in (own, *own.virtual) if f.has_function]

    def cpus_near(self, numa_node: int) -> str:
        """Return the processors of a NUMA node as a list such as ``0-23``: each node has as many as any other."""
        if numa_node < 0:
            return f"0-{self.spec.cpus - 1}"
        share = max(self.spec.cpus // self.spec.numa_nodes, 1)
        return f"{numa_node * share}-{numa_node * share + share - 1}"

    def find(self, bdf: str) -> Function:
        """Return the function at that address.

        Raises NoSuchDeviceError.
        """
        for function in self.on_bus():
            if function.bdf == bdf:
                return function
        there = ", ".join(f.bdf for f in self.on_bus()) or "none"
        raise NoSuchDeviceError(f"PCI function {bdf!r}: {self.spec.name} has {there}")

    def holding(self, device: str) -> Function:
        """Return the living entry of a device, by its own ID or GPUID.

        Raises NoSuchDeviceError.
        """
        for function in reversed(self._functions):
            if device in (function.device.id, function.gpuid) and function.plugged:
                return function
        there = ", ".join(f.gpuid for f in self._functions if f.plugged) or "none"
        raise NoSuchDeviceError(f"device {device!r}: {self.spec.name} has {there}")

    def busy(self, function: Function, *, but: Sequence[str] = ()) -> bool:
        """Return whether somebody has the GPU open: a process, a pod, or the driver's own persistence."""
        return function.persistence or bool(self.holders.of(function.device.uuid, but=but))

    def view(self) -> dict[str, Any]:
        """Devices by GPUID, holders, what waits, and the end of the kernel log; of a server with a tree or links of its
        own also how its GPUs are joined."""
        joined = self.spec.pcie is not None or self.spec.links is not None
        return {
            **({"topology": host_report(self)} if joined else {}),
            "devices": {function.gpuid: function.row() for function in self._functions if function.plugged},
            "holders": [
                {"key": h.key, "pid": h.pid, "name": h.name, "uuids": list(h.uuids), "computing": h.computing}
                for h in self.holders
            ],
            "waiting": [pending.what for pending in self._pending if not pending.done],
            "log": list(self.log.lines())[-SHOWN_LINES:],
        }

    def next_due(self) -> float | None:
        """Return when something will happen next."""
        return self._agenda.next_s()

    # The chassis' side

    def begin(self, devices: Mapping[str, Sequence[DeviceSpec]], now_s: float) -> None:
        """The machine boots: the devices on its ports (by chassis) are all up, without delay and without a word but
        ``table``."""
        self._now_s = now_s
        for chassis, found in devices.items():
            for device in found:
                function = self._enter(chassis, device)
                for arrow in ARROWS[: function.top]:
                    self._reach(function, arrow)
        self.version += 1
        self.emit("table", None, devices={f.gpuid: f.named() for f in self._functions})

    def reconcile(self, devices: Mapping[str, Sequence[DeviceSpec]], now_s: float) -> None:
        """The chassis' table is this now, however it came about: plug in and pull out what differs."""
        wanted = {(chassis, device.id): device for chassis, found in devices.items() for device in found}
        for function in [f for f in self._functions if f.plugged]:
            if (function.chassis, function.device.id) not in wanted:
                self.unplug(function.chassis, function.device.id, now_s)
        there = {(f.chassis, f.device.id) for f in self._functions if f.plugged}
        for (chassis, name), device in wanted.items():
            if (chassis, name) not in there:
                self.plug(chassis, device, now_s)

    def plug(self, chassis: str, device: DeviceSpec, now_s: float, *, link: bool = True) -> None:
        """The chassis has put a device on our port, its link being up or down."""
        self.settle(now_s)
        self.climb(self._enter(chassis, device, link))
        self.settle(self._now_s)

    def unplug(self, chassis: str, device: str, now_s: float) -> None:
        """The chassis has taken a device off our port. What is still there of it is removed by surprise."""
        self.settle(now_s)
        for function in self._functions:
            if (function.chassis, function.device.id, function.plugged) == (chassis, device, True):
                function.plugged = False
                self._cut(function)
        self.settle(self._now_s)

    def set_link(self, chassis: str, device: str, up: bool, now_s: float) -> None:
        """The chassis' side of a device's link went down or came up."""
        self.settle(now_s)
        follow = self.climb if up else self._cut
        for function in [f for f in self._functions if (f.chassis, f.device.id, f.plugged) == (chassis, device, True)]:
            function.link = up
            follow(function)
        self.settle(self._now_s)

    def set_power(self, on: bool, now_s: float) -> None:
        """The machine is switched off: what runs on it ends, and its devices go, in order. Or it is switched on, and
        they come up again."""
        self.settle(now_s)
        if on is self.running:
            return
        self.running = on
        self.emit("powered-on" if on else "powered-off", None)
        for key in self.holders.keys("") if not on else ():
            self.holders.release(key)
        for function in list(self._functions):
            if on:
                self.climb(function)
                continue
            self.take_down(function, BringUpStage.ABSENT)
            powered_off(function)
            function.plucked, function.unbound, function.powered = False, False, True
            if not function.plugged:
                self._leave(function)
        self.version += 1
        self.settle(self._now_s)

    def _enter(self, chassis: str, device: DeviceSpec, link: bool = True) -> Function:
        self._numbers += 1
        place = self._slots.place(chassis, device.id)
        address = self._addresses[chassis].give(place)
        ordinal = next(n for n, one in enumerate(self.chassis) if one.name == chassis)
        function = Function(
            number=self._numbers,
            chassis=chassis,
            gpuid=self.chassis[ordinal].gpuid(device.id),
            device=device,
            card=card_of(device.kind, device.model, device.virtual_functions),
            bdf=address.bdf,
            above=address.above,
            slot=self._slots.number(ordinal, place),
            link=link,
        )
        self._functions.append(function)
        self._functions.sort(key=lambda f: (f.bdf, f.number))
        return function

    def _leave(self, function: Function) -> None:
        self._functions.remove(function)
        self._addresses[function.chassis].take(function.bdf)

    # Up

    def climb(self, function: Function) -> None:
        """Let the next layer come up, if nothing stands against it."""
        arrow = function.next_arrow
        if arrow is None or function.lost or not self._may(function, arrow):
            return
        self._agenda.forget(function)
        if self.faults.cuts(function, arrow):
            if function.stuck != arrow:
                function.stuck = arrow
                self.emit("stuck", function, arrow=arrow)
            return
        function.stuck = ""
        delay_s = self.profile.arrow(arrow).draw(self._rng) + self.faults.delay(function, arrow)
        self._agenda.at(self._now_s + delay_s, lambda t: self._arrive(function, arrow), function)

    def is_climbing(self, function: Function) -> bool:
        """Return whether its next layer (or its sweeping away) is under way."""
        return self._agenda.has(function)

    def _may(self, function: Function, arrow: str) -> bool:
        if not (self.running and function.plugged and function.link and function.powered):
            return False
        if arrow == "function":
            return not function.plucked
        return not (arrow == "driver" and function.unbound)

    def _arrive(self, function: Function, arrow: str) -> None:
        self._reach(function, arrow)
        if arrow == "link" and not self.profile.pciehp:
            function.plucked = True
        if arrow == function.top_arrow:
            self.faults.at_top(function)
        if arrow == "driver" and function.is_gpu:
            self.driver_events.add("bind", function.bdf)
        self.emit(ROSE[arrow], function)
        self.climb(function)

    def _reach(self, function: Function, arrow: str) -> None:
        function.stage = BringUpStage(ARROWS.index(arrow) + 1)
        if function.stage == BringUpStage.DRIVER:
            function.driver = function.takes
        if function.stage == BringUpStage.DRIVER and function.is_gpu:
            taken = {f.minor for f in self._functions if f is not function and f.stage >= BringUpStage.DRIVER}
            function.minor = next(n for n in range(len(self._functions) + 1) if n not in taken)
        if function.stage == BringUpStage.DRIVER and function.driver == RDMA_DRIVER:
            numbers = {f.rdma for f in self.on_bus()}
            function.rdma = next(n for n in range(len(numbers) + 1) if n not in numbers)
        if function.stage == BringUpStage.NODE:
            function.node_hidden = False

    # Down

    def take_down(self, function: Function, stage: BringUpStage) -> None:
        """Orderly, layer by layer from the top, at once."""
        self._agenda.forget(function)
        function.stuck = ""
        while function.stage > stage:
            arrow = ARROWS[function.stage - 1]
            function.stage = BringUpStage(function.stage - 1)
            if arrow == "driver":
                self.disable_virtual(function)
                function.unload()
                if function.is_gpu:
                    self.driver_events.add("unbind", function.bdf)
            self.emit(FELL[arrow], function)
            if arrow == "driver":
                function.minor, function.rdma, function.driver = None, None, ""
        if function.stage < BringUpStage.FUNCTION:
            function.lost = False
            function.driver_override = ""

    def fall(self, function: Function) -> None:
        """The GPU falls off the bus: XID 79. It stays in sysfs, dead, until somebody removes it."""
        if function.lost or not function.has_function:
            return
        self._agenda.forget(function)
        if function.stage >= BringUpStage.DRIVER and function.is_gpu:
            self.xid(function, 79)
        for one in (function, *function.virtual):
            one.lost = True
        self.emit("lost", function)

    # Virtual functions

    def enable_virtual(self, function: Function, count: int) -> None:
        """The driver makes that many of a function that has none; each comes up as any function does."""
        function.virtual = [virtual_function(function, place) for place in range(count)]
        for one in function.virtual:
            self.climb(one)

    def disable_virtual(self, function: Function) -> None:
        """A function's virtual ones go, in order."""
        for one in function.virtual:
            self.take_down(one, BringUpStage.LINK)
        function.virtual = []

    def xid(self, function: Function, xid: int, instance: tuple[int, int] = (-1, -1)) -> None:
        """The driver reports an XID, maybe of one MIG device: into the kernel log and to NVML's event sets."""
        self.log.xid(self._now_s, function.bdf, xid, instance[0])
        self.driver_events.add("xid", function.bdf, xid, instance=instance)
        self.emit("xid", function, xid=xid, **({"instance": list(instance)} if instance[0] >= 0 else {}))

    def _cut(self, function: Function) -> None:
        """The link is gone under the device: what is there of it is lost, and goes once nobody has it open."""
        if not function.has_function:
            self.take_down(function, BringUpStage.ABSENT)
            if not function.plugged:
                self._leave(function)
            return
        self.fall(function)
        self._agenda.forget(function)
        delay_s = self.profile.surprise.draw(self._rng)
        self._agenda.at(self._now_s + delay_s, lambda t: self._sweep(function), function)

    def _sweep(self, function: Function) -> None:
        """pciehp takes the dead function away; the driver lets go only when nobody has it open any more."""
        function.persistence = False

        def gone() -> None:
            if function not in self._functions or not function.lost:
                return
            self.take_down(function, BringUpStage.ABSENT)
            if function.plugged:
                self.climb(function)
            else:
                self._leave(function)

        self.do(PendingAction(f"surprise removal of {function.bdf}", lambda: not self.busy(function), gone))

    # Use

    def hold(self, holder: Holder, now_s: float) -> None:
        """Let a process open devices, as a container's process does."""
        self.settle(now_s)
        if not holder.pid:
            self._pids += 1
            holder = replace(holder, pid=FIRST_PID + self._pids)
        self.holders.hold(holding_whole(holder, self._functions))
        self._use_changed()

    def release(self, key: str, now_s: float) -> None:
        """Somebody closes what it had open; what waited for that happens."""
        self.settle(now_s)
        if self.holders.release(key) is not None:
            self._use_changed()
            close_unused(self)
        self.settle(self._now_s)

    def _use_changed(self) -> None:
        self.version += 1
        self._use_changes += 1

    # Waiting and time

    def do(self, pending: PendingAction) -> PendingAction:
        """Let it happen now, or as soon as it can."""
        self._pending.append(pending)
        pending.advance()
        self.version += 1
        return pending

    def slowly(self, pending: PendingAction, latency: Latency) -> PendingAction:
        """Let it happen once a call of that latency is through; at once without one."""
        delay_s = latency.draw(self._rng)
        if delay_s > 0:
            due_s, ready = self._now_s + delay_s, pending.ready
            pending.ready = lambda: self._now_s >= due_s and ready()
            self._agenda.at(due_s, lambda t: None, pending)
        return self.do(pending)

    def at(self, at_s: float, action: Callable[[float], None], owner: object) -> None:
        """Let an action happen at a time; for faults and daemons."""
        self._agenda.at(at_s, action, owner)

    def forget(self, owner: object) -> None:
        """Cancel the timed actions of one owner."""
        self._agenda.forget(owner)

    def settle(self, now_s: float) -> None:
        """Let everything happen that was due by now, each at its own time, and then what waited for it."""
        if self._settling:
            return
        self._settling = True
        try:
            while True:
                for at_s, action in self._agenda.due(max(now_s, self._now_s)):
                    self._now_s = max(self._now_s, at_s)
                    action(self._now_s)
                    self.version += 1
                self._now_s = max(self._now_s, now_s)
                if not [pending for pending in list(self._pending) if not pending.done and pending.advance()]:
                    break
                self.version += 1
            self._pending = [pending for pending in self._pending if not pending.done]
        finally:
            self._settling = False

    def emit(self, event: str, function: Function | None, /, **fields: Any) -> None:
        """Tell the listener; the state has changed."""
        self.version += 1
        self._emitted += 1
        about = {**({} if function is None else function.named()), **fields}
        self._listener(HostEvent(self._emitted, self._now_s, self.spec.name, event, about))

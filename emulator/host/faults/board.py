"""The faults that sit in one host."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mews.emulator.chassis.faults.bench import ChassisFault
from mews.emulator.chassis.faults.placed import FaultPlacer, chosen, declared, described, ending, fires, parameters
from mews.emulator.chassis.faults.spec import FaultTrigger
from mews.emulator.host.faults.bench import (
    ArrivalFault,
    BlockingFault,
    DelayingFault,
    TimedHostFault,
    UndoableHostFault,
)
from mews.emulator.host.faults.registry import HOST_FAULTS
from mews.emulator.host.function import BringUpStage, Function

if TYPE_CHECKING:
    from mews.emulator.host.host import Host

DOUBLE_BIT = 48


class ArmedHostFault(Struct, eq=False):
    """A fault in place: also the bench at which it works on its host."""

    id: str
    fault: ChassisFault
    when: FaultTrigger
    host: Host
    rng: random.Random
    spec: Mapping[str, Any]
    until_s: float

    def fire(self, after_s: float) -> None:
        """Have the fault happen after that time."""
        self.host.actions.agenda.at(self.host.now_s + after_s, lambda t: self.host.faults.happen(self), self)

    def _function(self, device: str) -> Function | None:
        living = [f for f in self.host.bus.functions() if f.plugged and device in (f.device.id, f.gpuid)]
        return living[-1] if living else None

    def xid(self, device: str, xid: int, mig_device: int | None = None) -> None:
        """Report an XID of a GPU that a driver has, or of one of its MIG devices; of one that is not there, nothing."""
        function = self._function(device)
        if function is None or not function.is_gpu or function.stage < BringUpStage.DRIVER:
            return
        if mig_device is None:
            self.host.events.xid(function, xid)
        elif mig_device < len(function.mig.devices()):
            instance, compute = function.mig.devices()[mig_device]
            self.host.events.xid(function, xid, (instance.id, compute.id))

    def fall(self, device: str) -> None:
        """Let it fall off the bus."""
        function = self._function(device)
        if function is not None:
            self.host.bring_up.fall(function)

    def revive(self, device: str) -> None:
        """Take a fallen device out of the PCI bus and rescan for it."""
        function = self._function(device)
        if function is not None and function.lost and function.link:
            self.host.bring_up.take_down(function, BringUpStage.LINK)
            self.host.bring_up.climb(function)

    def ecc(self, device: str, corrected: int, uncorrected: int) -> None:
        """Count memory errors of a GPU that a driver has."""
        function = self._function(device)
        if function is None or not function.is_gpu or function.stage < BringUpStage.DRIVER:
            return
        ecc = function.ecc
        ecc.corrected, ecc.total_corrected = ecc.corrected + corrected, ecc.total_corrected + corrected
        ecc.uncorrected, ecc.total_uncorrected = ecc.uncorrected + uncorrected, ecc.total_uncorrected + uncorrected
        if corrected:
            self.host.events.driver_events.add("ecc-single", function.bdf)
        if uncorrected:
            self.host.events.driver_events.add("ecc-double", function.bdf)
        self.host.events.emit("ecc", function, corrected=ecc.corrected, uncorrected=ecc.uncorrected)
        if uncorrected:
            self.host.events.xid(function, DOUBLE_BIT)

    def fail(self, function: Function, for_s: float) -> None:
        """NVML does not know what to say about it."""
        function.failing = True
        self.host.actions.agenda.at(self.host.now_s + for_s, lambda t: self._well(function), self)

    def recover(self) -> None:
        """Let NVML answer about every device again."""
        for function in self.host.bus.functions():
            self._well(function)

    def _well(self, function: Function) -> None:
        if function.failing:
            function.failing = False
            self.host.events.emit("nvml-recovered", function)

    def retry(self) -> None:
        """Everything that does not climb tries again."""
        for function in self.host.bus.functions():
            if function.stuck:
                self.host.bring_up.climb(function)


class HostFaults:
    """Adds, lists, fires and clears faults; their specs are written as those of a chassis
    (``mews.emulator.chassis.faults.spec``), ``operation`` being one of the arrows."""

    def __init__(self, host: Host, rng: random.Random) -> None:
        self._host = host
        self._placer = FaultPlacer("h", HOST_FAULTS, rng)
        self._armed: list[ArmedHostFault] = []

    def add(self, spec: Mapping[str, Any], now_s: float) -> str:
        """Put a fault in place and return its ID.

        Raises ValueError naming what is allowed.
        """
        parts = self._placer.parts(spec, now_s, self._check_device)
        self._host.settle(now_s)
        fault = parts.fault
        armed = ArmedHostFault(parts.id, fault, parts.when, self._host, parts.rng, parts.spec, parts.until_s)
        self._armed.append(armed)
        self._host.events.emit("fault-added", None, **declared(armed))
        if isinstance(fault, TimedHostFault):
            fault.arm(armed)
        self._host.settle(now_s)
        return armed.id

    def _check_device(self, fault: ChassisFault, when: FaultTrigger) -> None:
        device = getattr(fault, "device", None) or when.device
        known = [(one.gpuid(each.id), each.id) for one in self._host.chassis for each in one.devices]
        if device is not None and not any(device in names for names in known):
            shown = ", ".join(gpuid for gpuid, _ in known[:12])
            raise ValueError(f"fault {fault.kind}: device {device!r}: {self._host.spec.name} is cabled to {shown}")

    def listed(self) -> list[dict[str, Any]]:
        """Return what is in place, as a chassis lists its own."""
        return [
            {**described(armed), "spec": parameters(armed), **ending(armed, self._host.now_s)} for armed in self._armed
        ]

    def clear(self, now_s: float, fault_id: str | None = None) -> None:
        """Undo one fault, or all.

        Raises ValueError for an unknown ID.
        """
        self._host.settle(now_s)
        for armed in chosen(self._armed, fault_id):
            self._armed.remove(armed)
            self._host.actions.agenda.forget(armed)
            if isinstance(armed.fault, UndoableHostFault):
                armed.fault.undo(armed)
            self._host.events.emit("fault-cleared", None, fault=armed.id, kind=armed.fault.kind)
        self._host.settle(now_s)

    def cuts(self, function: Function, arrow: str) -> bool:
        """Return whether a fault keeps that layer from coming up."""
        for armed in self._armed:
            fault = armed.fault
            if not isinstance(fault, BlockingFault) or not self._admits(armed, function, arrow):
                continue
            if fault.cuts(function, arrow) and self._fires(armed):
                self._count(armed, function)
                return True
        return False

    def delay(self, function: Function, arrow: str) -> float:
        """Return seconds that faults add to that layer's coming up."""
        total_s = 0.0
        for armed in self._armed:
            if isinstance(armed.fault, DelayingFault) and self._admits(armed, function, arrow):
                delay_s = armed.fault.slows(function, arrow)
                if delay_s > 0 and self._fires(armed):
                    self._count(armed, function)
                    total_s += delay_s
        return total_s

    def at_top(self, function: Function) -> None:
        """A device has just come up whole."""
        for armed in self._armed:
            fault = armed.fault
            if not isinstance(fault, ArrivalFault) or not self._admits(armed, function, function.top_arrow):
                continue
            if self._fires(armed) and fault.tops(function, armed):
                self._count(armed, function)

    def happen(self, armed: ArmedHostFault) -> None:
        """The time of a fault has come."""
        if isinstance(armed.fault, TimedHostFault) and not armed.when.spent:
            device = getattr(armed.fault, "device", "")
            living = [f for f in self._host.bus.functions() if f.plugged and device in (f.device.id, f.gpuid)]
            self._count(armed, living[-1] if living else None)
            armed.fault.happen(armed)

    def _admits(self, armed: ArmedHostFault, function: Function, arrow: str) -> bool:
        when = armed.when
        if arrow not in armed.fault.on or when.operation not in (None, arrow):
            return False
        return when.device in (None, function.device.id, function.gpuid)

    def _fires(self, armed: ArmedHostFault) -> bool:
        return fires(armed, self._host.now_s)

    def _count(self, armed: ArmedHostFault, function: Function | None) -> None:
        armed.when.fired += 1
        named = {} if function is None else {"device": function.device.id, "gpuid": function.gpuid}
        self._host.events.emit("fault-fired", None, **described(armed), **named)

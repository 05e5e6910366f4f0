"""What an operator or a program does to a host by the kernel: writes into sysfs, removals of device nodes.

Each write returns a ``PendingAction``: what cannot happen while the GPU is open waits, as the kernel lets the write
wait (contract host.md sections 2 to 4).
"""

from __future__ import annotations

from collections.abc import Callable

from mews.emulator.host.errors import (
    AlreadyBoundError,
    BadWriteError,
    DeviceInUseError,
    DriverFailedError,
    NoSuchDeviceError,
    NotConfigurableError,
    OutOfRangeError,
)
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.host import Host
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.virtual_functions import makes_virtual_functions


class HostOperator:
    """Changes the devices of one host as writes into its files with root's rights do."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def remove(self, bdf: str, now_s: float) -> PendingAction:
        """``devices/<BDF>/remove``: driver off, function gone until a rescan. Waits while the GPU is open.

        Raises NoSuchDeviceError.
        """
        self._host.settle(now_s)
        function = self._host.bus.find(bdf)

        def act() -> None:
            if function.has_function:
                function.plucked = True
                self._host.bring_up.take_down(function, BringUpStage.LINK)

        return self._when_closed(f"remove of {bdf}", function, act)

    def rescan(self, now_s: float, below: str | None = None) -> PendingAction:
        """``rescan``: find functions that are there and not known, everywhere or below one bridge; done when their
        drivers are bound (or could not be).

        Raises NoSuchDeviceError for a bridge that there is not.
        """
        self._host.settle(now_s)
        found = [f for f in self._host.bus.functions() if below is None or below in bridges_above(f)]
        if below is not None and not found:
            raise NoSuchDeviceError(f"bridge {below!r}: nothing is below it")
        for function in found:
            if function.stage <= BringUpStage.LINK:
                function.plucked = False
                function.unbound = False
            # What is training or being enumerated goes on: looking for it does not start it anew.
            if (
                function.stage < BringUpStage.FUNCTION
                and function.link
                and not self._host.bring_up.is_climbing(function)
            ):
                self._host.bring_up.climb(function)
        self._host.events.emit("rescanned", None, below=below)

        def settled() -> bool:
            return all(
                f.stage != BringUpStage.LINK or f.stuck or f.plucked or not f.link or not f.powered for f in found
            )

        return self._now(PendingAction("rescan", settled, _nothing))

    def power(self, slot: int, on: bool, now_s: float) -> PendingAction:
        """``slots/<n>/power``. Switching off waits while the GPU is open.

        Raises NoSuchDeviceError.
        """
        self._host.settle(now_s)
        function = next((f for f in self._host.bus.functions() if f.slot == slot and f.plugged), None)
        if function is None:
            raise NoSuchDeviceError(f"slot {slot}: is not ours, or empty")
        chosen = function

        def act() -> None:
            if on:
                if not chosen.powered:
                    chosen.powered, chosen.plucked, chosen.unbound = True, False, False
                    self._host.bring_up.climb(chosen)
            elif chosen.powered:
                chosen.powered = False
                self._host.bring_up.take_down(chosen, BringUpStage.ABSENT)

        what = f"power {'on' if on else 'off'} of slot {slot}"
        return self._now(PendingAction(what, _always, act)) if on else self._when_closed(what, chosen, act)

    def unbind(self, bdf: str, now_s: float, driver: str | None = None) -> PendingAction:
        """``drivers/<driver>/unbind``. Waits while the GPU is open.

        Raises NoSuchDeviceError.
        """
        self._host.settle(now_s)
        function = self._host.bus.find(bdf)
        if not function.bound or driver not in (None, function.bound):
            raise NoSuchDeviceError(f"{bdf}: is not bound to {driver or 'a driver'}")

        def act() -> None:
            if function.stage >= BringUpStage.DRIVER:
                function.unbound = True
                self._host.bring_up.take_down(function, BringUpStage.FUNCTION)

        return self._when_closed(f"unbind of {bdf}", function, act)

    def bind(self, bdf: str, now_s: float, driver: str | None = None) -> PendingAction:
        """``drivers/<driver>/bind``: done when the driver has taken it.

        Raises NoSuchDeviceError (also for a driver that is not its), AlreadyBoundError, DriverFailedError.
        """
        self._host.settle(now_s)
        function = self._host.bus.find(bdf)
        matching = function.driver_override or function.card.driver
        if driver not in (None, matching):
            raise NoSuchDeviceError(f"{bdf}: {driver} does not take it, {matching} would")
        if function.bound:
            raise AlreadyBoundError(f"{bdf}: is bound to {function.bound}")
        function.unbound = False
        self._host.bring_up.climb(function)
        self._host.settle(now_s)

        def done() -> bool:
            return (
                function.stage >= BringUpStage.DRIVER or bool(function.stuck) or function.stage < BringUpStage.FUNCTION
            )

        def act() -> None:
            if function.stage < BringUpStage.DRIVER:
                raise DriverFailedError(f"{bdf}: probe failed")

        return self._now(PendingAction(f"bind of {bdf}", done, act))

    def override(self, bdf: str, driver: str, now_s: float) -> PendingAction:
        """``driver_override``: another driver than its own shall take it at the next bind; "" ends that.

        Raises NoSuchDeviceError.
        """
        self._host.settle(now_s)
        function = self._host.bus.find(bdf)

        def act() -> None:
            function.driver_override = driver
            self._host.versions.changed()

        return self._now(PendingAction(f"driver_override of {bdf}", _always, act))

    def set_virtual(self, bdf: str, count: int, now_s: float) -> PendingAction:
        """``sriov_numvfs``: that many virtual functions; done when those that have a driver have it.

        Raises NoSuchDeviceError, OutOfRangeError, NotConfigurableError, and DeviceInUseError where there is another
        number of them already.
        """
        self._host.settle(now_s)
        function = self._host.bus.find(bdf)
        if count > function.card.virtual_functions:
            raise OutOfRangeError(f"{bdf}: {count} virtual functions; at most {function.card.virtual_functions}")
        if count != len(function.virtual):
            if not makes_virtual_functions(function):
                raise NotConfigurableError(
                    f"{bdf}: {function.bound or 'no driver'} is bound and makes no virtual functions"
                )
            if count and function.virtual:
                raise DeviceInUseError(f"{bdf}: has {len(function.virtual)} virtual functions; take them away first")
            if count:
                self._host.bring_up.enable_virtual(function, count)
            else:
                self._host.bring_up.disable_virtual(function)
            self._host.events.emit("virtual-functions", function, count=count)
        made = tuple(function.virtual)

        def settled() -> bool:
            return all(_has_come(f) or f not in function.virtual for f in made)

        return self._now(PendingAction(f"sriov_numvfs of {bdf}", settled, _nothing))

    def set_autoprobe(self, bdf: str, on: bool, now_s: float) -> PendingAction:
        """``sriov_drivers_autoprobe``: whether a driver takes the virtual functions that come.

        Raises NoSuchDeviceError.
        """
        self._host.settle(now_s)
        function = self._host.bus.find(bdf)

        def act() -> None:
            function.autoprobe = on
            self._host.versions.changed()

        return self._now(PendingAction(f"sriov_drivers_autoprobe of {bdf}", _always, act))

    def unlink_node(self, minor: int, now_s: float) -> None:
        """Remove a device node, as ``rm /dev/nvidia<minor>`` does.

        Raises NoSuchDeviceError.
        """
        self._host.settle(now_s)
        function = next((f for f in self._host.bus.functions() if f.has_node and f.minor == minor), None)
        if function is None:
            raise NoSuchDeviceError(f"/dev/nvidia{minor}: is not there")
        function.node_hidden = True
        self._host.events.emit("node-removed", function)

    def _when_closed(self, what: str, function: Function, act: Callable[[], None]) -> PendingAction:
        """Now if nobody has the GPU open, else once that is so; a function without a driver is open to nobody."""

        def closed() -> bool:
            return function.stage < BringUpStage.DRIVER or not function.is_gpu or not self._host.busy(function)

        pending = self._now(PendingAction(what, closed, act))
        if not pending.done:
            self._host.events.emit("waiting", function, what=what)
        return pending

    def _now(self, pending: PendingAction) -> PendingAction:
        self._host.actions.do(pending)
        self._host.settle(self._host.now_s)
        return pending


def bridges_above(function: Function) -> tuple[str, ...]:
    """Return the ports above a device, from the root down."""
    return tuple(bridge.bdf for bridge in function.above)


def parse_switch(text: str) -> bool:
    """``0`` or ``1``, as sysfs takes it.

    Raises BadWriteError.
    """
    if text.strip() not in ("0", "1"):
        raise BadWriteError(f"{text.strip()[:40]!r}: must be 0 or 1")
    return text.strip() == "1"


def _has_come(function: Function) -> bool:
    """Return whether a virtual function is as far up as it will come by itself."""
    if function.stage < BringUpStage.FUNCTION:
        return function.plucked or function.lost or bool(function.stuck)
    return function.stage == function.top or function.unbound or function.lost or bool(function.stuck)


def _always() -> bool:
    return True


def _nothing() -> None:
    return

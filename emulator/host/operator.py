"""What an operator or a program does to a host: writes into sysfs, hot-plug calls of NVML.

Each returns a ``PendingAction``: what cannot happen while the GPU is open waits, as the kernel lets the write wait;
what NVML refuses is refused at once (contract host.md sections 2 to 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mews.emulator.host.control import close_unused, set_gpu
from mews.emulator.host.errors import (
    AlreadyBoundError,
    BadWriteError,
    DeviceInUseError,
    DeviceLostError,
    DriverFailedError,
    NoSuchDeviceError,
    NotConfigurableError,
    OutOfRangeError,
)
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.host import Host
from mews.emulator.host.mig import change_mig
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.virtual_functions import makes_virtual_functions

DAEMON_S = 0.5
"""How soon a persistence daemon notices that the mode was switched off; assumed."""


class HostOperator:
    """What an operator, or a program with root's rights, can do to one host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    # Writes into sysfs

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

    # NVML's hot-plug calls

    def persistence(self, bdf: str, on: bool, now_s: float) -> None:
        """Switch a GPU's persistence mode (nvmlDeviceSetPersistenceMode).

        Raises NoSuchDeviceError.
        """
        function = self._gpu(bdf, now_s)
        if function.persistence != on:
            function.persistence = on
            self._host.events.emit("persistence", function, on=on)
            if not on and self._host.persistence_daemon:
                self._host.actions.agenda.at(now_s + DAEMON_S, lambda t: self._persist(function), function.device.uuid)
            close_unused(self._host)
        self._host.settle(now_s)

    def set_gpu(self, bdf: str, name: str, numbers: Sequence[int], now_s: float) -> None:
        """One of NVML's setters (``mews.emulator.host.control``).

        Raises NoSuchDeviceError, DeviceLostError, NotSupportedError, BadWriteError.
        """
        function = self._gpu(bdf, now_s)
        if function.lost:
            raise DeviceLostError(f"{bdf}: GPU is lost")
        set_gpu(self._host, function, name, numbers)
        self._host.settle(now_s)

    def mig(self, bdf: str, act: str, numbers: Sequence[int], now_s: float, *, asker: Sequence[str] = ()) -> int:
        """Change MIG of a GPU (``mews.emulator.host.mig``), for a program whose holds are ``asker``.

        Raises NoSuchDeviceError, DeviceLostError, NotSupportedError, BadWriteError, NoRoomLeftError, DeviceInUseError.
        """
        function = self._gpu(bdf, now_s)
        if function.lost:
            raise DeviceLostError(f"{bdf}: GPU is lost")
        made = change_mig(self._host, function, act, numbers, asker)
        self._host.settle(now_s)
        return made

    def persistence_daemon(self, on: bool, now_s: float) -> None:
        """A program that keeps persistence mode on, as nvidia-persistenced and site scripts do: switched off, it is on
        again a moment later."""
        self._host.settle(now_s)
        self._host.persistence_daemon = on
        for function in self._host.bus.functions() if on else ():
            self._persist(function)
        self._host.settle(now_s)

    def _persist(self, function: Function) -> None:
        alive = self._host.persistence_daemon and function.plugged and not function.lost
        if alive and function.is_gpu and function.stage >= BringUpStage.DRIVER and not function.persistence:
            function.persistence = True
            self._host.events.emit("persistence", function, on=True)

    def drain(self, bdf: str, on: bool, now_s: float) -> None:
        """nvmlDeviceModifyDrainState: new processes do not see a draining GPU.

        Raises NoSuchDeviceError; InUse while persistence mode is on.
        """
        function = self._gpu(bdf, now_s)
        if on and function.persistence:
            raise DeviceInUseError(f"{bdf}: persistence mode is on")
        if function.draining != on:
            function.draining = on
            self._host.events.emit("draining", function, on=on)

    def remove_gpu(
        self, bdf: str, now_s: float, *, detach: bool = True, shut_link: bool = False, asker: Sequence[str] = ()
    ) -> None:
        """nvmlDeviceRemoveGpu(_v2): unbind, and with ``detach`` remove the function, with ``shut_link`` its link too.

        Raises NoSuchDeviceError; InUse while a process (other than the asker's own holds) is attached.
        """
        function = self._gpu(bdf, now_s)
        if self._host.busy(function, but=asker):
            raise DeviceInUseError(f"{bdf}: {self._users(function, asker)}")
        function.unbound = not detach
        function.plucked = detach
        if shut_link:
            function.powered = False
        self._host.bring_up.take_down(
            function, BringUpStage.ABSENT if shut_link else BringUpStage.LINK if detach else BringUpStage.FUNCTION
        )
        self._host.settle(now_s)

    def reset_gpu(self, bdf: str, now_s: float, *, asker: Sequence[str] = ()) -> None:
        """Reset a GPU, as ``nvidia-smi --gpu-reset`` does: the driver lets go of it and takes it again, layer by layer.

        Raises NoSuchDeviceError; DeviceLostError for one that has fallen off the bus; InUse while a process (other than
        the asker's own holds) has it open.
        """
        function = self._gpu(bdf, now_s)
        if function.lost:
            raise DeviceLostError(f"{bdf}: GPU is lost")
        if self._host.busy(function, but=asker):
            raise DeviceInUseError(f"{bdf}: {self._users(function, asker)}")
        self._host.bring_up.take_down(function, BringUpStage.FUNCTION)
        self._host.bring_up.climb(function)
        self._host.settle(now_s)

    def called(self, what: str, act: Callable[[], None], now_s: float, *, removal: bool = False) -> PendingAction:
        """Return one of the calls above, with what it takes on this host (``profiles``): its refusal comes with its
        end."""
        self._host.settle(now_s)
        profile = self._host.profile
        pending = PendingAction(what, _always, act)
        self._host.actions.slowly(pending, profile.remove if removal else profile.drain)
        self._host.settle(self._host.now_s)
        return pending

    def discover(self, now_s: float, below: str | None = None) -> PendingAction:
        """nvmlDeviceDiscoverGpus: a rescan; slots that ``shut_link`` switched off are powered again."""
        self._host.settle(now_s)
        for function in self._host.bus.functions():
            if not function.powered and (below is None or below in (function.bdf, *bridges_above(function))):
                function.powered = True
        return self.rescan(now_s, None)

    def _gpu(self, bdf: str, now_s: float) -> Function:
        self._host.settle(now_s)
        function = self._host.bus.find(bdf)
        if function.stage < BringUpStage.DRIVER or not function.is_gpu:
            raise NoSuchDeviceError(f"{bdf}: the driver does not have it")
        return function

    def _users(self, function: Function, asker: Sequence[str]) -> str:
        if function.persistence:
            return "persistence mode is on"
        users = self._host.holders.of(function.device.uuid, but=asker)
        return "in use by " + ", ".join(f"{user.name or user.key} (pid {user.pid})" for user in users[:4])

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

"""What a program changes on a host by NVML: its setters, and its hot-plug calls.

Who is refused is refused at once (contract host.md sections 2 to 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mews.emulator.host.control import close_unused, set_gpu
from mews.emulator.host.errors import DeviceInUseError, DeviceLostError, NoSuchDeviceError
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.host import Host
from mews.emulator.host.mig import change_mig
from mews.emulator.host.operator import HostOperator, bridges_above
from mews.emulator.host.pending import PendingAction

DAEMON_S = 0.5
"""How soon a persistence daemon notices that the mode was switched off; assumed."""


class NvmlCalls:
    """Changes the GPUs of one host as calls of NVML with root's rights do."""

    def __init__(self, host: Host, operator: HostOperator) -> None:
        self._host = host
        self._operator = operator

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
        pending = PendingAction(what, lambda: True, act)
        self._host.actions.slowly(pending, profile.remove if removal else profile.drain)
        self._host.settle(self._host.now_s)
        return pending

    def discover(self, now_s: float, below: str | None = None) -> PendingAction:
        """nvmlDeviceDiscoverGpus: a rescan; slots that ``shut_link`` switched off are powered again."""
        self._host.settle(now_s)
        for function in self._host.bus.functions():
            if not function.powered and (below is None or below in (function.bdf, *bridges_above(function))):
                function.powered = True
        return self._operator.rescan(now_s)

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

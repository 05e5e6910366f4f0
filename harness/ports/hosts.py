"""The hosts in process: the emulator's core on the running loop, no files."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host import act
from mews.emulator.host.errors import HostRefusalError
from mews.emulator.host.events import Listener
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.function import Function
from mews.emulator.host.holders import Holder
from mews.emulator.host.host import Host
from mews.emulator.host.joints import shown_gpus
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.telemetry import report_of
from mews.emulator.host.tree import HostTree
from mews.emulator.telemetry.chassis import ChassisTelemetry
from mews.emulator.telemetry.load import IDLE, parse_load
from mews.emulator.telemetry.record import BoardRecord
from mews.kube.clock import Pace
from mews.kube.system.gpu_driver import DriverRefusalError


class LocalHosts:
    """All hosts of a hardware file on the running loop; emulated time is ``pace.now()``."""

    def __init__(self, hardware: Hardware, *, pace: Pace, seed: int | str, listener: Listener) -> None:
        self.hosts = Hosts(hardware, EmulationContext(seed), listener=listener)
        self.pace = pace
        self.trees = {name: HostTree(host) for name, host in self.hosts.hosts.items()}
        self.telemetry: Mapping[str, ChassisTelemetry] = {}
        self._reported: dict[str, int] = {}
        self._cabled = _cabled(hardware)
        self._timers: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        self._waiting: list[tuple[PendingAction, asyncio.Future[None]]] = []
        self._watching: dict[str, dict[str, Callable[[], None]]] = {}
        self._shown: dict[str, tuple[tuple[str, bool, bool], ...]] = {}

    def begin(self) -> None:
        """All machines boot with the devices of the hardware file."""
        self.hosts.begin(self.pace.now())

    def on_event(self, event: ChassisEvent) -> None:
        """Take an event of a chassis."""
        self.hosts.on_event(event.chassis, event.number, event.event, event.fields, self.pace.now())
        self.stirred()

    def tree(self, host: str) -> CachedTree:
        """Return the host's files, for whoever only reads."""
        return CachedTree(self, host)

    async def operate(self, host: str, action: Mapping[str, Any]) -> None:
        """What an operator does there, until it is done.

        Raises HostRefusalError.
        """
        await self.done(act.begin(self.trees[host], action, self.pace.now()))

    def hold(self, host: str, holder: Holder) -> None:
        """A pod's process opens devices."""
        self.hosts.host(host).hold(holder, self.pace.now())
        self.stirred()

    def release(self, host: str, key: str) -> None:
        """It has ended."""
        self.hosts.host(host).release(key, self.pace.now())
        self.stirred()

    def watch(self, host: str, key: str, changed: Callable[[], None]) -> None:
        """Have that called whenever NVML shows other GPUs on the host than before."""
        self._shown.setdefault(host, _shown(self.hosts.host(host)))
        self._watching.setdefault(host, {})[key] = changed

    def unwatch(self, host: str, key: str) -> None:
        """It is called no more."""
        self._watching.get(host, {}).pop(key, None)

    async def done(self, pending: PendingAction) -> None:
        """Wait until a deed is done, as a write into sysfs waits.

        Raises HostRefusalError as it was refused.
        """
        self.stirred()
        if not pending.done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((pending, waiter))
            await waiter
        if pending.refusal is not None:
            raise pending.refusal

    def stirred(self) -> None:
        """Something changed: set timers for what is due next, wake who waited for what is done, report."""
        for name, host in self.hosts.hosts.items():
            self._pump(name, host)
            self._report(name, host)
        still: list[tuple[PendingAction, asyncio.Future[None]]] = []
        for pending, waiter in self._waiting:
            if not pending.done:
                still.append((pending, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiting = still

    def _report(self, name: str, host: Host) -> None:
        if self._reported.get(name) == host.versions.all:
            return
        self._reported[name] = host.versions.all
        if name in self._watching and (shown := _shown(host)) != self._shown[name]:
            self._shown[name] = shown
            for changed in self._watching[name].values():
                changed()
        reports = report_of(host)
        for chassis in self._cabled.get(name, ()):
            if (telemetry := self.telemetry.get(chassis)) is not None:
                telemetry.report(name, reports, self.pace.now())

    def records(self) -> dict[str, BoardRecord]:
        """UUID -> telemetry of every board, from now on."""
        found: dict[str, BoardRecord] = {}
        for telemetry in self.telemetry.values():
            found |= telemetry.records(self.pace.now(), 1)
        return found

    def _pump(self, name: str, host: Host) -> None:
        due_s, timed = host.actions.agenda.next_s(), self._timers.get(name)
        if timed is not None and timed[0] == due_s:
            return
        if timed is not None:
            timed[1].cancel()
            del self._timers[name]
        if due_s is not None:
            delay_s = self.pace.loop_s(max(due_s - self.pace.now(), 0.0))
            handle = asyncio.get_running_loop().call_later(delay_s, self._due, name, due_s)
            self._timers[name] = (due_s, handle)

    def _due(self, name: str, due_s: float) -> None:
        del self._timers[name]
        self.hosts.host(name).settle(max(due_s, self.pace.now()))
        self.stirred()

    def close(self) -> None:
        """Cancel all timers and waits."""
        for _, handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        for _, waiter in self._waiting:
            waiter.cancel()
        self._waiting.clear()


def _cabled(hardware: Hardware) -> dict[str, list[str]]:
    """Host -> the chassis that it may have boards of."""
    found: dict[str, list[str]] = {}
    for spec in hardware.chassis:
        for host in dict.fromkeys(spec.ports.values()):
            if host is not None:
                found.setdefault(host, []).append(spec.name)
    return found


def _shown(host: Host) -> tuple[tuple[str, bool, bool], ...]:
    """Return what NVML shows of the host, as far as it makes another list of GPUs."""
    return tuple((gpu.device.uuid, gpu.lost, gpu.draining) for gpu in shown_gpus(host))


class LocalUsers:
    """``Users`` of one host in process."""

    def __init__(self, hosts: LocalHosts, host: str) -> None:
        self._hosts = hosts
        self._host = host

    def check(self, load: Any) -> None:
        """Raises ValueError for what is no load."""
        parse_load(load)

    def begin(
        self, key: str, uuids: Sequence[str], *, pid: int, name: str, load: Any = None, cgroup: str = "/"
    ) -> None:
        """A container's process opens devices."""
        given = IDLE if load is None else parse_load(load)
        self._hosts.hold(
            self._host, Holder(key, self._by_uuid(uuids), pid, name, computing=True, load=given, cgroup=cgroup)
        )

    def _by_uuid(self, words: Sequence[str]) -> tuple[str, ...]:
        """Numbers are NVML's indexes, as the container runtime reads them."""
        if not any(word.isdecimal() for word in words):
            return tuple(words)
        shown = shown_gpus(self._hosts.hosts.host(self._host))
        numbered = {str(index): function.device.uuid for index, function in enumerate(shown)}
        return tuple(numbered.get(word, word) for word in words)

    def end(self, key: str) -> None:
        """It has ended."""
        self._hosts.release(self._host, key)


class CachedTree:
    """A host's files as a component on it sees them (``FileTree``); what was read stays until the host's state
    changes, that there is no such file as well: who looks for a device asks every bridge for it."""

    def __init__(self, hosts: LocalHosts, host: str) -> None:
        self._hosts = hosts
        self._tree = hosts.trees[host]
        self._version = -1
        self._read: dict[str, bytes | OSError] = {}
        self._names: dict[str, Sequence[str]] = {}

    def hardware_version(self) -> int:
        """Return the host's own count of its changes."""
        return self._tree.host.versions.hardware

    async def read(self, path: str) -> bytes:
        """Return a file's content. Raises OSError."""
        self._fresh()
        if path not in self._read:
            try:
                self._read[path] = self._tree.read(path)
            except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
                self._read[path] = error
        found = self._read[path]
        if isinstance(found, OSError):
            raise found.with_traceback(None)
        return found

    async def names(self, path: str) -> Sequence[str]:
        """Return a folder's names, sorted. Raises OSError."""
        self._fresh()
        if path not in self._names:
            self._names[path] = self._tree.names(path)
        return self._names[path]

    async def target(self, path: str) -> str:
        """Return what a symbolic link points to. Raises OSError."""
        try:
            return self._tree.target(path)
        except ValueError as error:
            raise OSError(errno.EINVAL, path) from error

    async def write(self, path: str, text: str) -> None:
        """Write into a file, and wait as the kernel lets the write wait. Raises OSError."""
        try:
            await self._hosts.done(self._tree.write(path, text, self._hosts.pace.now()))
        except HostRefusalError as refusal:
            raise OSError(refusal.errno, str(refusal)) from refusal
        finally:
            self._hosts.stirred()

    def _fresh(self) -> None:
        version = self._tree.host.versions.all
        if version != self._version:
            self._version = version
            self._read.clear()
            self._names.clear()


class LocalDriver:
    """``GpuDriver`` of one host in process: the emulated driver, with what its calls take there."""

    def __init__(self, hosts: LocalHosts, host: str) -> None:
        self._hosts = hosts
        self._host = host

    async def persistence(self, bdf: str) -> bool:
        """Return whether persistence mode is on. Raises DriverRefusalError."""
        return self._function(bdf).persistence

    async def set_persistence(self, bdf: str, on: bool) -> None:
        """Switch persistence mode. Raises DriverRefusalError."""
        await self._call({"do": "persistence", "bdf": bdf, "on": on})

    async def divided(self) -> frozenset[str]:
        """Return the addresses of the GPUs in MIG mode. Raises DriverRefusalError."""
        return frozenset(
            function.bdf for function in shown_gpus(self._hosts.hosts.host(self._host)) if function.mig.enabled
        )

    async def draining(self, bdf: str) -> bool:
        """Return whether the GPU is being drained. Raises DriverRefusalError."""
        return self._function(bdf).draining

    async def set_draining(self, bdf: str, on: bool) -> None:
        """Begin or end the drain. Raises DriverRefusalError."""
        await self._call({"do": "drain", "bdf": bdf, "on": on})

    async def remove(self, bdf: str) -> None:
        """Unbind the driver and remove the PCI function. Raises DriverRefusalError."""
        await self._call({"do": "remove-gpu", "bdf": bdf})

    async def reset(self, bdf: str) -> None:
        """Reset the GPU. Raises DriverRefusalError."""
        await self._call({"do": "reset-gpu", "bdf": bdf})

    def _function(self, bdf: str) -> Function:
        try:
            return self._hosts.hosts.host(self._host).bus.find(bdf)
        except HostRefusalError as refusal:
            raise DriverRefusalError(str(refusal)) from refusal

    async def _call(self, action: Mapping[str, Any]) -> None:
        try:
            await self._hosts.operate(self._host, action)
        except HostRefusalError as refusal:
            raise DriverRefusalError(f"{refusal.code}: {refusal}") from refusal
        finally:
            self._hosts.stirred()

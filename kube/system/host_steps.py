"""The steps by which a host lets go of a GPU, and gets one: on the host's own files, holding no NVML (contract host.md
section 4).

Out: persistence mode off, drain, nobody has it open, remove. Back, or after an attach: rescan, driver bound, drain and
persistence as they were. A step that needs NVML is a call of ``GpuDriver``, which has NVML open for that call alone.
Every step may be repeated: where a removal was interrupted does not matter.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct

from mews.kube.system.files import FileTree
from mews.kube.system.gpu_driver import DriverMissingError, DriverRefusalError, GpuDriver
from mews.kube.system.sysfs import GPUS, PCI, SysfsConfirm

CAPABILITIES = "proc/driver/nvidia/capabilities"
_NVIDIA = "0x10de"
_BRIDGE = "0x0604"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_LOOK_S = 0.2
_DAEMON_S = 1.0
"""A daemon that minds persistence mode has switched it on again by then."""
_CAME_BACK = "persistence mode came back on"
_SHOWN = 3
"""So many holders are named in a refusal."""


class RemovalRefusedError(Exception):
    """The host keeps the GPU; the message says why, in words for an event on the pod that wants it. ``pending``: a
    write that removes it still blocks, and may take it away at any time."""

    def __init__(self, message: str, *, pending: bool = False) -> None:
        super().__init__(message)
        self.pending = pending


class RemovalLimits(Protocol):
    """How patient the steps are, in seconds."""

    @property
    def holder_patience_s(self) -> float:
        """How long a process may have the device open that merely looks at it."""
        ...

    @property
    def removal_timeout_s(self) -> float:
        """How long a write may block that removes a device, or looks for some."""
        ...


class HostPlace(Struct, frozen=True):
    """Where a host has a device: its address, the bridge above it ("" for none), its driver ("" for none), and the
    number of its device node (None: it has none)."""

    bdf: str
    bridge: str
    driver: str
    minor: str | None


class HostSteps:
    """The steps on one host. Methods raise OSError while its files cannot be read or written. ``driver``: None where
    nothing makes NVML's calls; ``remove`` in sysfs is then all there is, as where the driver's program is missing."""

    def __init__(self, tree: FileTree, driver: GpuDriver | None, timing: RemovalLimits) -> None:
        self._tree = tree
        self._driver = driver
        self._timing = timing
        self._finder = SysfsConfirm(tree)

    async def find(self, uuid: str) -> HostPlace | None:
        """Return where the device is, None while the host does not have it."""
        await self._tree.names(PCI)  # A host whose files are not there says nothing of its devices.
        try:
            bdf = await self._finder.address(uuid)
            if bdf is None:
                return None
            uevent = (await self._tree.read(f"{PCI}/{bdf}/uevent")).decode("utf-8", "replace")
            target = await self._tree.target(f"{PCI}/{bdf}")
        except (FileNotFoundError, NotADirectoryError):
            return None  # It went while it was looked at.
        driver = next((line[len("DRIVER=") :] for line in uevent.splitlines() if line.startswith("DRIVER=")), "")
        above = target.split("/")[-2:-1]
        bridge = above[0] if above and _ADDRESS.fullmatch(above[0]) else ""
        return HostPlace(bdf, bridge, driver, await self._minor(bdf))

    async def _minor(self, bdf: str) -> str | None:
        try:
            text = (await self._tree.read(f"{GPUS}/{bdf}/information")).decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        for line in text.splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "Device Minor":
                return value.strip()
        return None

    async def divisible(self, uuids: Collection[str]) -> dict[str, tuple[str, bool]]:
        """Return those of the devices that MIG can divide, by the driver's files (MIG User Guide, "Device Nodes and
        Capabilities"): UUID -> their address, and whether they have GPU instances."""
        try:
            names = await self._tree.names(CAPABILITIES)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        if not any(name.startswith("gpu") for name in names):
            return {}
        found = {}
        for uuid in uuids:
            place = await self.find(uuid)
            if place is None or f"gpu{place.minor}" not in names:
                continue
            try:
                inside = await self._tree.names(f"{CAPABILITIES}/gpu{place.minor}/mig")
            except (FileNotFoundError, NotADirectoryError):
                continue
            found[uuid] = place.bdf, any(name.startswith("gi") for name in inside)
        return found

    async def in_mig_mode(self) -> frozenset[str]:
        """Return the addresses of the GPUs in MIG mode, as the driver says; none where nothing makes its calls.

        Raises DriverRefusalError.
        """
        try:
            return frozenset() if self._driver is None else await self._driver.divided()
        except DriverMissingError:
            return frozenset()

    # Out

    async def persistence(self, place: HostPlace) -> bool:
        """Return whether persistence mode is on; where nobody can say it is not."""
        if self._driver is None or place.driver != "nvidia":
            return False
        try:
            return await self._driver.persistence(place.bdf)
        except DriverRefusalError:
            return False

    async def take_out(self, place: HostPlace) -> None:
        """Let the host give up the device that is there.

        Raises RemovalRefusedError: nothing then says how far it came, and the device is to be given back.
        """
        await self.check_closed(place)
        if self._driver is not None and place.driver == "nvidia":
            await self._drain(self._driver, place)
            await self.check_closed(place)
        await self._remove(place)

    async def check_closed(self, place: HostPlace) -> None:
        """Return once no process has the device node open.

        Raises RemovalRefusedError naming those that have it open for longer than a program that merely looks.
        """
        deadline_s = asyncio.get_running_loop().time() + self._timing.holder_patience_s
        while holders := await self.holders(place):
            if asyncio.get_running_loop().time() >= deadline_s:
                more = f" and {len(holders) - _SHOWN} more" if len(holders) > _SHOWN else ""
                raise RemovalRefusedError(f"in use by {', '.join(holders[:_SHOWN])}{more}")
            await asyncio.sleep(_LOOK_S)

    async def holders(self, place: HostPlace) -> list[str]:
        """Return who has the device node open, as ``fuser`` finds them: ``name (pid N)``."""
        if place.minor is None:
            return []
        node = f"/nvidia{place.minor}"
        return [
            f"{await self._name(pid)} (pid {pid})"
            for pid in sorted((name for name in await self._tree.names("proc") if name.isdecimal()), key=int)
            if any([target.endswith(node) async for target in self._opened(pid)])
        ]

    async def _opened(self, pid: str) -> AsyncIterator[str]:
        try:
            names = await self._tree.names(f"proc/{pid}/fd")
        except OSError:
            return  # It has ended, or is somebody else's.
        for name in names:
            try:
                yield await self._tree.target(f"proc/{pid}/fd/{name}")
            except OSError:
                continue

    async def _name(self, pid: str) -> str:
        try:
            return (await self._tree.read(f"proc/{pid}/comm")).decode("utf-8", "replace").strip()
        except OSError:
            return "a process"

    async def _drain(self, driver: GpuDriver, place: HostPlace) -> None:
        try:
            if await driver.persistence(place.bdf):
                await driver.set_persistence(place.bdf, False)
                await asyncio.sleep(_DAEMON_S)
                if await driver.persistence(place.bdf):
                    raise RemovalRefusedError(_CAME_BACK)
            await driver.set_draining(place.bdf, True)
        except DriverMissingError:
            return
        except DriverRefusalError as refusal:
            raise RemovalRefusedError(_CAME_BACK if await self.persistence(place) else str(refusal)) from refusal

    async def _remove(self, place: HostPlace) -> None:
        """By the driver, or the last one it has, and what is not its, by sysfs: a write that blocks while the device is
        open, and then happens whenever it is closed."""
        limit_s = self._timing.removal_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                if not await self._remove_by_driver(place):
                    await self._tree.write(f"{PCI}/{place.bdf}/remove", "1")
                while await self._is_there(place.bdf):  # noqa: ASYNC110 - a host's files announce nothing
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError as error:
            raise RemovalRefusedError(f"its removal did not end within {limit_s:g} s", pending=True) from error
        except DriverRefusalError as refusal:
            raise RemovalRefusedError(_CAME_BACK if await self.persistence(place) else str(refusal)) from refusal
        except FileNotFoundError:
            return  # Somebody was faster.
        except OSError as error:
            raise RemovalRefusedError(f"its removal failed: {error.strerror or error}") from error

    async def _remove_by_driver(self, place: HostPlace) -> bool:
        if self._driver is None or place.driver != "nvidia" or len(await self._tree.names(GPUS)) <= 1:
            return False
        try:
            await self._driver.remove(place.bdf)
        except DriverMissingError:
            return False
        return True

    async def _is_there(self, bdf: str) -> bool:
        return bdf in await self._tree.names(PCI)

    # Back

    async def rescan(self, bridges: Collection[str], *, kept_out: Collection[str]) -> None:
        """Look for devices below these bridges, everywhere without one. Nothing is looked for below a bridge of
        ``kept_out``: what was taken out there must not come back before the chassis has it."""
        async with aclosing(self._rescans(bridges, kept_out)) as paths:
            async for path in paths:
                try:
                    async with asyncio.timeout(self._timing.removal_timeout_s):
                        await self._tree.write(path, "1")
                except (TimeoutError, FileNotFoundError):
                    continue

    async def _rescans(self, bridges: Collection[str], kept_out: Collection[str]) -> AsyncGenerator[str, None]:
        there = set(await self._tree.names(PCI))
        if not bridges and not kept_out:
            yield "sys/bus/pci/rescan"
            return
        if bridges and set(bridges) <= there:
            for bridge in sorted(bridges):
                yield f"{PCI}/{bridge}/rescan"
            return
        for bdf in sorted(there):
            if bdf not in kept_out and await self._is_empty_bridge(bdf):
                yield f"{PCI}/{bdf}/rescan"

    async def _is_empty_bridge(self, bdf: str) -> bool:
        try:
            kind = (await self._tree.read(f"{PCI}/{bdf}/class")).decode("ascii", "replace")
            names = await self._tree.names(f"{PCI}/{bdf}")
        except OSError:
            return False
        return kind.startswith(_BRIDGE) and "rescan" in names and not any(map(_ADDRESS.fullmatch, names))

    async def bind(self, place: HostPlace) -> None:
        """Offer a device without a driver to its own. A refusal shows by its having none still."""
        vendor = (await self._tree.read(f"{PCI}/{place.bdf}/vendor")).decode("ascii", "replace").strip()
        if vendor != _NVIDIA:
            return  # Whose it is the kernel knows, and binds by itself.
        try:
            async with asyncio.timeout(self._timing.removal_timeout_s):
                await self._tree.write("sys/bus/pci/drivers/nvidia/bind", place.bdf)
        except (TimeoutError, OSError):
            return

    async def undrain(self, place: HostPlace, *, persistence: bool) -> bool:
        """Drain off, persistence mode as it was; whether the driver did it."""
        if self._driver is None or place.driver != "nvidia":
            return True
        try:
            if await self._driver.draining(place.bdf):
                await self._driver.set_draining(place.bdf, False)
            if persistence and not await self._driver.persistence(place.bdf):
                await self._driver.set_persistence(place.bdf, True)
        except DriverMissingError:
            return True
        except DriverRefusalError:
            return False
        return True

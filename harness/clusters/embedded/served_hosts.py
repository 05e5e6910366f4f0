"""The hosts of a wall-clock cluster: their process, its events and its files, and the hardware's one back door."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.emulator.nvml.compile import SMI
from mews.harness.clusters.embedded.host_process import HostProcess
from mews.harness.host_feed import HostFeed
from mews.harness.ports.hosts_http import HttpHosts, WireUsers
from mews.harness.run_context import RunContext
from mews.kube.clock import rest
from mews.kube.deviceplugin.port import Mount
from mews.kube.nvml_library import LIBRARY, NvmlLibrary
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.files import FileTree, FolderTree
from mews.kube.system.gpu_driver import GpuDriver, NvidiaSmi

if TYPE_CHECKING:
    from mews.harness.ports.hardware_http import HttpHardwareControl
    from mews.kube.emulated.kubelet.users import DeviceUsers


class ServedHosts:
    """A HostsPort and a HostServer: one process serves all hosts. The journal gets their events."""

    def __init__(
        self,
        folder: Path,
        hardware: Path,
        chassis: Path,
        run: RunContext,
        *,
        env: Mapping[str, str],
        options: Sequence[str] = (),
    ) -> None:
        self._process = HostProcess(folder, hardware, chassis, run, env=env, options=options)
        self._journal = run.journal
        self._speed = run.speed
        self._ready: dict[str, Any] = {}
        self._control: HttpHosts | None = None
        self._users = WireUsers(lambda: self._control)
        self._alive = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start the process, hear its events, tell it who uses what."""
        await self.start()
        feeding = asyncio.create_task(self._feed(), name="host-feed")
        reporting = asyncio.create_task(self._users.run(), name="host-users")
        self._tasks = [feeding, reporting]

    async def start(self) -> None:
        """Start the process; nothing while it runs."""
        if self._control is not None:
            return
        self._ready = await self._process.start()
        control = self._ready["control"]
        self._control = HttpHosts(control["url"], control["token"], self._ready["ca"])
        self._users.retell()
        self._alive.set()

    async def kill(self) -> None:
        """Kill -9."""
        self._alive.clear()
        await self._process.kill()
        await self._drop_control()

    async def close(self) -> None:
        """End it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._drop_control()
        await self._process.stop()

    async def _drop_control(self) -> None:
        control, self._control = self._control, None
        if control is not None:
            await control.close()

    async def _feed(self) -> None:
        import aiohttp

        feeds = {name: HostFeed(self._journal, name) for name in self._ready["hosts"]}
        while True:
            await self._alive.wait()
            control, last = self.control(), 0
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, RuntimeError):
                async for event in control.events(last):
                    last = event["seq"]
                    fields = {k: v for k, v in event.items() if k not in ("seq", "number", "t", "host", "event")}
                    feeds[event["host"]].on_event(event["event"], fields)
            await rest(0.05)

    def control(self) -> HttpHosts:
        """Return the back door of the running process.

        Raises RuntimeError while none runs.
        """
        if self._control is None:
            raise RuntimeError("the hosts' process does not run")
        return self._control

    def control_ready(self) -> dict[str, str]:
        """``{"url", "token"}`` of the hosts' back door."""
        output: dict[str, str] = self._ready["control"]
        return output

    def root(self, host: str) -> Path:
        """Return the folder with the host's ``sys``, ``proc`` and ``dev``."""
        return Path(self._ready["hosts"][host]["root"])

    def env(self, host: str) -> dict[str, str]:
        """Return what a shell needs to see the host's GPUs."""
        from mews.kube.emulated.kubelet.runtime import SEARCH_PATH

        found = {"MEWS_HOST_ROOT": str(self.root(host))}
        if self._ready["without_library"] is None:
            folder = str(self._ready["hosts"][host]["nvml"])
            found |= {"LD_LIBRARY_PATH": folder, "PATH": f"{folder}:{os.environ.get('PATH', SEARCH_PATH)}"}
        return found

    def driver_root(self, host: str) -> Path | None:
        """Return the host's driver root; None without the library."""
        found = self._ready["hosts"][host]["driver_root"]
        return None if found is None else Path(found)

    def files(self, host: str) -> FileTree:
        """Return the host's files, where its process serves them."""
        return FolderTree(self.root(host))

    def driver(self, host: str) -> GpuDriver | None:
        """Return the host's nvidia-smi, a process per call."""
        if self._ready["without_library"] is not None:
            return None
        return NvidiaSmi(str(Path(self._ready["hosts"][host]["nvml"]) / SMI))

    def extras(self, host: str) -> ContainerExtras:
        """Return it for every container with a device."""
        if self._ready["without_library"] is not None:
            return ContainerExtras()
        from mews.kube.emulated.kubelet.runtime import SEARCH_PATH

        folder = str(self._ready["hosts"][host]["nvml"])
        envs = {"LD_LIBRARY_PATH": folder, "PATH": f"{folder}:{SEARCH_PATH}"}
        return ContainerExtras(envs=envs, mounts=(Mount(folder, folder, read_only=True),))

    def nvml(self, host: str, name: str) -> NvmlLibrary | None:
        """Return the host's library, in this process: each host's is a file of its own, and so has a state of its
        own."""
        if self._ready["without_library"] is not None:
            return None
        folder = Path(self._ready["hosts"][host]["nvml"])
        own = folder / f"in-process-{LIBRARY}"
        if not own.exists():
            shutil.copy2(folder / LIBRARY, own)
        return NvmlLibrary(str(own))

    def users(self, host: str) -> DeviceUsers:
        """Return who tells this process which devices containers use."""
        return self._users.of(host)

    def lacks(self, requirement: str) -> str | None:
        """Return why ``fuse`` or ``nvml`` cannot be had, None where they can."""
        reason: str | None = self._ready["without_fuse" if requirement == "fuse" else "without_library"]
        return reason

    async def write(self, host: str, path: str, text: str, wait_s: float) -> str:
        """Write into one of the host's files as any program would: ``done``, an errno's name, or ``waiting``.

        Only where FUSE serves the files does a write fail or wait.
        """
        writing = asyncio.ensure_future(asyncio.to_thread(_write, self.root(host) / path, text))
        done, _ = await asyncio.wait([writing], timeout=wait_s / self._speed)
        return writing.result() if done else "waiting"


_CODES = {"EBUSY": "IN_USE", "ENODEV": "NO_DEVICE", "ENXIO": "LOST", "EINVAL": "INVALID", "EIO": "DRIVER_FAILED"}


def _write(path: Path, text: str) -> str:
    try:
        with open(path, "wb", buffering=0) as file:
            file.write(text.encode())
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, str(error))
        return _CODES.get(name, name)
    return "done"


class ServedHardware:
    """HardwareControl of whichever processes serve chassis and hosts at the time of a call."""

    def __init__(self, control: Callable[[], HttpHardwareControl], hosts: ServedHosts, names: Sequence[str]) -> None:
        self._control = control
        self._hosts = hosts
        self._names = tuple(names)

    async def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the device lookup tables."""
        return await self._control().table()

    async def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change a table at once. Raises ValueError."""
        await self._control().edit(chassis, device, port)

    async def fault(self, chassis: str, spec: Mapping[str, Any]) -> None:
        """Add a fault. Raises ValueError."""
        await self._control().fault(chassis, spec)

    async def clear(self, name: str | None = None) -> None:
        """Undo all faults, or those of one chassis or host."""
        if name is None or name in self._names:
            await self._hosts.control().clear(name)
        if name not in self._names:
            await self._control().clear(name)

    async def faults(self) -> dict[str, list[dict[str, Any]]]:
        """Return what is in place, by chassis and host."""
        return {**await self._control().faults(), **await self._hosts.control().faults()}

    async def telemetry(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return what every board shows now."""
        return await self._control().telemetry()

    async def set_telemetry(self, chassis: str, device: str, values: Mapping[str, Any]) -> None:
        """Set values of boards. Raises ValueError."""
        await self._control().set_telemetry(chassis, device, values)

    async def reset(self) -> None:
        """As at the start."""
        await self._hosts.control().clear()
        await self._control().reset()

    async def hosts(self) -> dict[str, dict[str, Any]]:
        """Return what each host sees."""
        return await self._hosts.control().view()

    async def host_fault(self, host: str, spec: Mapping[str, Any]) -> None:
        """Add a fault to a host. Raises ValueError."""
        await self._hosts.control().fault(host, spec)

    async def operate(self, host: str, action: Mapping[str, Any], wait_s: float = 0.0) -> str:
        """Return what an operator does there; a ``write`` goes into the very file."""
        if action.get("do") != "write":
            return await self._hosts.control().operate(host, action, wait_s)
        path = str(action.get("path", ""))
        if "{" in path:
            row = await self._row(host, str(action.get("device")))
            for name, value in (("bdf", row["bdf"]), ("slot", str(row["slot"])), ("bridge", row["bridge"])):
                path = path.replace("{" + name + "}", value)
        return await self._hosts.write(host, path, str(action.get("text", "1")), wait_s)

    async def _row(self, host: str, device: str) -> dict[str, Any]:
        view = await self.hosts()
        for gpuid, row in view.get(host, {}).get("devices", {}).items():
            if device in (gpuid, row["device"]):
                found: dict[str, Any] = row
                return found
        raise ValueError(f"device {device!r}: {host} does not have it")

"""The GPUs of a host, their XIDs and who has them open, from the host's files alone.

NVML is left alone: whoever has it open holds every GPU of the host, and no GPU that is held can be reset. XIDs come
from the kernel log, as in NVSentinel's syslog health monitor; a GPU that has fallen off the bus has a configuration
space that reads as ones (contract host.md section 2).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress

from msgspec import Struct

from mews.kube.system.cgroups import pod_of_cgroup
from mews.kube.system.files import FileTree

_PCI = "sys/bus/pci/devices"
_GPUS = "proc/driver/nvidia/gpus"
_LOG = "var/log/kern.log"
_XID = re.compile(rb"\[ *(\d+\.\d+)\] NVRM: Xid \(PCI:([0-9a-f:]+)\): (\d+),")
_GONE = b"\xff\xff"


class HostGpu(Struct, frozen=True):
    """A GPU that the driver has: its address, device node (/dev/nvidiaN), and whether it answers."""

    bdf: str
    minor: str
    answers: bool


class LoggedXid(Struct, frozen=True):
    """An XID of the kernel log: its stamp, the address without the function."""

    stamp: float
    place: str
    xid: int


class HostGpus:
    """The GPUs of one host, as its files show them. Methods raise OSError while its files cannot be read."""

    def __init__(self, files: FileTree) -> None:
        self._files = files
        self._log: tuple[bytes, tuple[LoggedXid, ...]] = (b"", ())

    async def gpus(self) -> dict[str, HostGpu]:
        """UUID -> GPU, of all that the driver has."""
        found = {}
        try:
            places = await self._files.names(_GPUS)
        except (FileNotFoundError, NotADirectoryError):
            return {}  # No driver is loaded.
        for bdf in places:
            try:
                information = (await self._files.read(f"{_GPUS}/{bdf}/information")).decode("utf-8", "replace")
                config = await self._files.read(f"{_PCI}/{bdf}/config")
            except (FileNotFoundError, NotADirectoryError):
                continue  # It went while it was looked at.
            fields = dict(_pair(line) for line in information.splitlines() if ":" in line)
            if uuid := fields.get("GPU UUID", ""):
                found[uuid] = HostGpu(bdf, fields.get("Device Minor", ""), config[:2] != _GONE)
        return found

    async def functions(self) -> frozenset[str]:
        """Return the addresses of all PCI functions, with or without a driver."""
        return frozenset(await self._files.names(_PCI))

    async def xids(self) -> tuple[LoggedXid, ...]:
        """Return all that the kernel log has, in its order; none where there is no such file."""
        try:
            text = await self._files.read(_LOG)
        except FileNotFoundError:
            return ()
        if text != self._log[0]:
            self._log = (text, tuple(_logged(found) for found in _XID.finditer(text)))
        return self._log[1]

    async def users(self, gpus: Collection[HostGpu]) -> dict[str, tuple[str, ...]]:
        """BDF -> the uids of the pods that have the GPU open, sorted; of GPUs that any pod has open."""
        nodes = {f"/dev/nvidia{gpu.minor}": gpu.bdf for gpu in gpus if gpu.minor}
        found: dict[str, set[str]] = {}
        for pid in [name for name in await self._files.names("proc") if name.isdecimal()] if nodes else ():
            opened = {nodes[target] for target in await self._opened(pid) if target in nodes}
            if opened and (pod := await self._pod(pid)):
                for bdf in opened:
                    found.setdefault(bdf, set()).add(pod)
        return {bdf: tuple(sorted(pods)) for bdf, pods in found.items()}

    async def _opened(self, pid: str) -> list[str]:
        folder = f"proc/{pid}/fd"
        targets = []
        with suppress(OSError):  # The process may have ended.
            for name in await self._files.names(folder):
                with suppress(OSError):  # Only this file may have been closed: the others are still open.
                    targets.append(await self._files.target(f"{folder}/{name}"))
        return targets

    async def _pod(self, pid: str) -> str:
        try:
            return pod_of_cgroup((await self._files.read(f"proc/{pid}/cgroup")).decode("utf-8", "replace"))
        except OSError:
            return ""


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip(), value.strip()


def _logged(found: re.Match[bytes]) -> LoggedXid:
    return LoggedXid(float(found[1]), found[2].decode("ascii"), int(found[3]))


def unseen(logged: Collection[LoggedXid], seen: tuple[float, int]) -> tuple[list[LoggedXid], tuple[float, int]]:
    """Return the XIDs that came after what was seen, and what is seen then."""
    stamp, count = seen
    new = [each for each in logged if each.stamp > stamp]
    new = [each for each in logged if each.stamp == stamp][count:] + new
    return new, last_seen(logged) if logged and last_seen(logged) > seen else seen


def last_seen(logged: Collection[LoggedXid]) -> tuple[float, int]:
    """Return the stamp of the last one, and how many have it."""
    stamp = max((each.stamp for each in logged), default=0.0)
    return stamp, sum(each.stamp == stamp for each in logged)


def uuid_at(gpus: Mapping[str, HostGpu], place: str) -> str | None:
    """Return the GPU at an address of the log."""
    return next((uuid for uuid, gpu in gpus.items() if gpu.bdf.rpartition(".")[0] == place), None)

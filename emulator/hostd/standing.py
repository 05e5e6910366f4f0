"""The files of hosts whose time stands still: written once, for programs that look at them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mews.emulator.clock import StoppedClock, monotonic_ns
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.tree import HostTree
from mews.emulator.hostd.driver_root import DriverRoot
from mews.emulator.hostd.mirror import Mirror
from mews.emulator.hostd.nvml_files import NvmlFolder
from mews.emulator.hostd.rack import HostRack
from mews.emulator.hostd.telemetry import KnownTelemetry
from mews.emulator.http_server import stop_all
from mews.emulator.nvml import library
from mews.emulator.nvml.compile import CompileError, CompilerMissingError
from mews.emulator.nvml.state import state_beside
from mews.emulator.telemetry.bulletin import TimeAnchor
from mews.emulator.telemetry.record import BoardRecord
from mews.emulator.telemetry.units import ns

FILES = "fs"
"""Folder of the hosts' files below the root."""
_CRAWL = 1e-9
"""The speed of a time that stands still, for readers who divide by it."""


class StandingHosts:
    """All hosts of a hardware file as they are at ``now_s``, below ``root``. ``records`` are their boards'; who asks
    NVML for a change is refused by ``reads_only``.

    Raises OSError where something cannot be written.
    """

    def __init__(
        self,
        hardware: Hardware,
        hosts: Hosts,
        root: Path,
        *,
        now_s: float,
        records: Mapping[str, BoardRecord],
        reads_only: str,
    ) -> None:
        self._root = root.resolve()
        self._rack = HostRack(hardware, clock=StoppedClock(now_s), hosts=hosts)
        self._known = KnownTelemetry(records, TimeAnchor(monotonic_ns(), ns(now_s), _CRAWL))
        self._drivers: dict[str, DriverRoot] = {}
        self.without_library: str | None = None
        self._nvml = {name: self._folder(name, reads_only) for name in self._rack.names()}
        self._mirror = Mirror(self._rack, self._root / FILES)

    def _folder(self, host: str, reads_only: str) -> NvmlFolder:
        files = self._root / FILES / host
        folder = NvmlFolder(self._root / host, self._rack, host, dev_root=str(files / "dev"), reads_only=reads_only)
        try:
            library.install(folder.folder)
            driver = self._rack.host(host).spec.driver
            self._drivers[host] = DriverRoot(folder.folder / "root", state_beside(folder.folder), files, driver)
        except (CompilerMissingError, CompileError, OSError) as error:
            self.without_library = " ".join(str(error).split())
        return folder

    def start(self) -> None:
        """Write all of it, and answer on the sockets."""
        self._rack.publish(self._mirror.write)
        self._rack.publish(self._write)
        for folder in self._nvml.values():
            folder.start()

    def _write(self, name: str, tree: HostTree) -> None:
        if name in self._drivers:
            self._drivers[name].write(tree)
        self._nvml[name].write(tree, self._known)

    def stop(self) -> None:
        """Close the sockets; the files stay."""
        stop_all(self._nvml.values())

    def ready(self) -> dict[str, dict[str, Any]]:
        """Host -> ``{"root", "nvml", "driver_root"}``, as those of a running ``HostServer``."""
        return {
            name: {
                "root": str(self._root / FILES / name),
                "nvml": str(folder.folder),
                "driver_root": str(self._drivers[name].root) if name in self._drivers else None,
            }
            for name, folder in self._nvml.items()
        }

"""NVML of an emulated host in process: what the library would show, and who holds it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from mews.emulator.host.function import Function
from mews.emulator.host.holders import Holder
from mews.emulator.host.host import Host
from mews.emulator.host.joints import joints, shown_gpus
from mews.emulator.host.nvml_view import processes_on, shown_profile
from mews.harness.ports.hosts import LocalHosts
from mews.kube.system.nvml import (
    GpuDescription,
    GpuProcess,
    ListedGpu,
    NvmlDescription,
    NvmlReading,
    ReportedXid,
)


class LocalNvml:
    """One process that uses NVML on one host: a NvmlPort."""

    _numbers = itertools.count(1)

    def __init__(self, hosts: LocalHosts, host: str, name: str) -> None:
        self._hosts = hosts
        self._host = host
        self._name = name
        self._key = f"nvml/{name}"
        self._held: tuple[str, ...] | None = None
        self._seen = 0

    async def read(self) -> NvmlReading:
        """Return what it shows now, and the XIDs since the reading before; it is held from then on."""
        host = self._hosts.hosts.host(self._host)
        # Not the whole view: a component that polls would have all boards' telemetry computed each time.
        shown, events = shown_gpus(host), host.events.driver_events.last()
        uuids = tuple(function.device.uuid for function in shown)
        if self._held is None:
            self._seen = max((event.sequence for event in events), default=0)
        if self._held != uuids:
            self._hosts.hold(self._host, Holder(self._key, uuids, name=self._name))
            self._held = uuids
        by_bus = {function.bdf: function.device.uuid for function in shown}
        xids = tuple(
            ReportedXid(by_bus[event.bus_id], event.data)
            for event in events
            if event.sequence > self._seen and event.kind == "xid" and event.bus_id in by_bus
        )
        self._seen = max((event.sequence for event in events), default=self._seen)
        gpus = tuple(_listed(host, index, function) for index, function in enumerate(shown) if not function.draining)
        return NvmlReading(gpus, xids)

    async def describe(self) -> NvmlDescription:
        """Return the driver, and the GPUs as the host joins them."""
        host = self._hosts.hosts.host(self._host)
        shown = [function for function in shown_gpus(host) if not function.draining]
        return NvmlDescription(host.spec.driver, tuple(map(_described, shown)), joints(host, shown).matrix)

    def watch(self, changed: Callable[[], None]) -> None:
        """Have ``changed`` called whenever other GPUs are shown than before, until the process is gone."""
        self._hosts.watch(self._host, self._key, changed)

    def release(self) -> None:
        """The process is gone."""
        self._hosts.unwatch(self._host, self._key)
        self._let_go()

    async def close(self) -> None:
        """Let go of all GPUs."""
        self._let_go()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held = None
            self._hosts.release(self._host, self._key)


def _listed(host: Host, index: int, function: Function) -> ListedGpu:
    memory_mib = shown_profile(function).memory_mib
    computing = [process for process in processes_on(host, function) if process.kind == "C"]
    processes = tuple(GpuProcess(process.pid, process.used_mib) for process in computing)
    uuid, minor = function.device.uuid, function.minor or 0
    divided = function.mig.enabled
    return ListedGpu(index, uuid, function.bdf, minor, memory_mib, function.lost, processes, divided)


def _described(function: Function) -> GpuDescription:
    profile = shown_profile(function)
    return GpuDescription(
        function.device.uuid, profile.name, profile.architecture, profile.pcie_gen, profile.pcie_width
    )

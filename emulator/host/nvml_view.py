"""What NVML shows of a host, derived from its state (``mews.emulator.nvml.state``)."""

from __future__ import annotations

from dataclasses import replace

from mews.emulator.host.cards import gpu_profile
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.holders import Holder
from mews.emulator.host.host import Host
from mews.emulator.nvml.state import EccCounts, NvmlGpu, NvmlHost, NvmlProcess

DRIVER_VERSION = NvmlHost().driver_version
BUSY_PERCENT = 87
"""Utilisation of a GPU on which a pod runs; assumed."""

FILLED_PERCENT = 72
"""Share of its memory that such a pod fills; assumed."""


def nvml_host(host: Host, *, dev_root: str = "") -> NvmlHost:
    """The state for the library; GPUs in order of bus address, as NVML numbers them. One that the chassis took away is
    shown no more, though its function stays on the bus for as long as a process has it open."""
    shown = [f for f in host.functions() if f.stage == BringUpStage.NVML and (f.plugged or not f.lost)]
    return NvmlHost(
        gpus=tuple(_gpu(host, function, index) for index, function in enumerate(shown)),
        dev_root=dev_root,
        events=host.driver_events.last(),
    )


def _gpu(host: Host, function: Function, index: int) -> NvmlGpu:
    profile = gpu_profile(function.device.model)
    if function.device.memory_mib is not None:
        profile = replace(profile, memory_mib=function.device.memory_mib)
    computing = [holder for holder in host.holders.of(function.device.uuid) if holder.computing]
    used = profile.memory_mib * FILLED_PERCENT // 100 // max(len(computing), 1)
    half = max(host.spec.cpus // 2, 1)
    first = function.numa_node * half
    return NvmlGpu(
        index=index,
        minor=function.minor or 0,
        bus_id=function.bdf,
        uuid=function.device.uuid,
        profile=profile,
        serial=function.device.serial,
        numa_node=function.numa_node,
        cpus=f"{first}-{first + half - 1}",
        utilization_percent=BUSY_PERCENT if computing and not function.lost else 0,
        memory_used_mib=used * len(computing),
        persistence=function.persistence,
        draining=function.draining,
        lost=function.lost,
        unknown_error=function.failing,
        ecc=EccCounts(
            function.ecc.corrected,
            function.ecc.uncorrected,
            function.ecc.total_corrected,
            function.ecc.total_uncorrected,
        ),
        processes=tuple(_process(holder, used) for holder in computing),
    )


def _process(holder: Holder, used_mib: int) -> NvmlProcess:
    return NvmlProcess(holder.pid, holder.name, used_mib)

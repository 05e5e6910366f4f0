"""What a GPU measures as a processor of a system or of a resource block: ProcessorMetrics, MemoryMetrics,
EnvironmentMetrics; and the metrics of a system's memory."""

from __future__ import annotations

from collections.abc import Callable

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.blocks import block_processor
from mews.emulator.dialects.redfish.resources.chassis import ENVIRONMENT, MEMORY_METRICS, PROCESSOR_METRICS
from mews.emulator.dialects.redfish.resources.environment import board_environment
from mews.emulator.dialects.redfish.resources.hosts import (
    any_processor,
    cpu_environment,
    memory,
    module_metrics,
)
from mews.emulator.dialects.redfish.resources.inventory import profile_of
from mews.emulator.dialects.redfish.resources.sensors import gpu_reading
from mews.emulator.dialects.redfish.resources.systems import processor
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.telemetry.reading import GpuReading

Owned = Callable[[RedfishView, str, str], Body | None]
"""(view, owner, device) -> the GPU as the owner's processor, if it is one."""


def processor_metrics(view: RedfishView, device: str, uri: str) -> Body:
    """Load, clock and errors of a GPU."""
    shown = gpu_reading(view, device)
    return resource(
        "ProcessorMetrics",
        uri,
        f"Metrics of {device}",
        BandwidthPercent=shown.utilization_percent,
        OperatingSpeedMHz=shown.sm_clock_mhz,
        PCIeErrors={"ReplayCount": shown.counters.pcie_replays},
    )


def memory_metrics(view: RedfishView, device: str, uri: str) -> Body:
    """Use, clock and errors of a GPU's memory."""
    shown = gpu_reading(view, device)
    counters = shown.counters
    return resource(
        "MemoryMetrics",
        uri,
        f"Metrics of the memory of {device}",
        BandwidthPercent=shown.memory_utilization_percent,
        CapacityUtilizationPercent=used_percent(shown),
        OperatingSpeedMHz=shown.memory_clock_mhz,
        CurrentPeriod={
            "CorrectableECCErrorCount": counters.ecc_volatile_corrected,
            "UncorrectableECCErrorCount": counters.ecc_volatile_uncorrected,
        },
        LifeTime={
            "CorrectableECCErrorCount": counters.ecc_aggregate_corrected,
            "UncorrectableECCErrorCount": counters.ecc_aggregate_uncorrected,
        },
    )


def used_percent(shown: GpuReading) -> float:
    """Share of its memory that is filled."""
    return round(100 * shown.memory_used_mib / shown.memory_total_mib, 2)


def environment(view: RedfishView, device: str, uri: str) -> Body:
    """Return that of a board, or of a socket of a host."""
    return cpu_environment(view, uri, device) if view.row(device) is None else board_environment(view, device, uri)


def system_memory(view: RedfishView, name: str, which: str) -> Body | None:
    """Metrics of a module of a host, or of a GPU's memory."""
    shown = memory(view, name, which)
    if shown is None:
        return None
    uri = f"{shown['@odata.id']}/MemoryMetrics"
    return module_metrics(uri, which) if view.row(which) is None else memory_metrics(view, which, uri)


def _route(home: str, owned: Owned, tail: str, body: Callable[[RedfishView, str, str], Body]) -> RedfishRoute:
    def read(view: RedfishView, owner: str, which: str) -> Body | None:
        shown = owned(view, owner, which)
        if shown is None or (tail != ENVIRONMENT and profile_of(view, which) is None):
            return None
        return body(view, which, f"{shown['@odata.id']}/{tail}")

    return RedfishRoute(f"{home}/{tail}", read)


SYSTEM, BLOCK = (
    f"{uris.SYSTEMS}/{{system}}/Processors/{{processor}}",
    f"{uris.BLOCKS}/{{block}}/Processors/{{processor}}",
)
BODIES = ((PROCESSOR_METRICS, processor_metrics), (MEMORY_METRICS, memory_metrics))
ROUTES = (
    *(_route(SYSTEM, processor, tail, body) for tail, body in BODIES),
    *(_route(BLOCK, block_processor, tail, body) for tail, body in BODIES),
    _route(SYSTEM, any_processor, ENVIRONMENT, environment),
    _route(BLOCK, block_processor, ENVIRONMENT, environment),
    RedfishRoute(f"{uris.SYSTEMS}/{{system}}/Memory/{{memory}}/MemoryMetrics", system_memory),
)

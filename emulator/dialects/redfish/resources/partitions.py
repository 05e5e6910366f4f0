"""The MIG devices of a GPU: processors of the type Partition below it (DSP8010, Processor: ``SubProcessors``)."""

from __future__ import annotations

from collections.abc import Callable

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.blocks import block_processor
from mews.emulator.dialects.redfish.resources.chassis import MEMORY_METRICS, PARTS, PROCESSOR_METRICS
from mews.emulator.dialects.redfish.resources.inventory import cores_of, profile_of
from mews.emulator.dialects.redfish.resources.sensors import gpu_reading
from mews.emulator.dialects.redfish.resources.systems import processor
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.telemetry.parts import BoardPart

Owned = Callable[[RedfishView, str, str], Body | None]
"""(view, owner, device) -> the GPU as the owner's processor, if it is one."""


def _body(view: RedfishView, gpu: Body, device: str, part: BoardPart) -> Body:
    profile = profile_of(view, device)
    assert profile is not None, "boards of known models alone are divided"
    return resource(
        "Processor",
        f"{gpu['@odata.id']}/{PARTS}/{part.name}",
        f"MIG {part.profile} of {device}",
        ProcessorType="Partition",
        Manufacturer=gpu["Manufacturer"],
        Model=f"{gpu['Model']} MIG {part.profile}",
        UUID=part.uuid.removeprefix("MIG-"),
        TotalCores=cores_of(profile, part.multiprocessors),
        MemorySummary={
            "TotalMemorySizeMiB": part.memory_mib,
            "Metrics": {"@odata.id": f"{gpu['@odata.id']}/{PARTS}/{part.name}/{MEMORY_METRICS}"},
        },
        Status=dict(OK),
        Metrics={"@odata.id": f"{gpu['@odata.id']}/{PARTS}/{part.name}/{PROCESSOR_METRICS}"},
        Links=links([gpu["Links"]["PCIeDevice"]["@odata.id"] + "/PCIeFunctions/0"], "PCIeFunctions"),
    )


def _processor_metrics(view: RedfishView, device: str, part: BoardPart, uri: str) -> Body:
    """Return the load of a part's GPU instance, and the clock that all of the board has."""
    shown = gpu_reading(view, device)
    busy = part.busy_percent(shown.utilization_percent, shown.processes)
    clock = shown.sm_clock_mhz
    return resource("ProcessorMetrics", uri, f"Metrics of {part.name}", BandwidthPercent=busy, OperatingSpeedMHz=clock)


def _memory_metrics(view: RedfishView, device: str, part: BoardPart, uri: str) -> Body:
    """Return how full a part's memory is, which it shares with the others of its GPU instance."""
    shown = gpu_reading(view, device)
    filled = round(100 * part.used_mib(shown.processes) / part.memory_mib, 2)
    return resource(
        "MemoryMetrics",
        uri,
        f"Metrics of the memory of {part.name}",
        CapacityUtilizationPercent=filled,
        OperatingSpeedMHz=shown.memory_clock_mhz,
    )


_METRICS = ((PROCESSOR_METRICS, _processor_metrics), (MEMORY_METRICS, _memory_metrics))


def _metrics_route(home: str, owned: Owned, tail: str, body: Callable[..., Body]) -> RedfishRoute:
    def read(view: RedfishView, owner: str, device: str, name: str) -> Body | None:
        gpu, parts = owned(view, owner, device), view.box.telemetry.parts(device) or ()
        part = next((part for part in parts if part.name == name), None)
        if gpu is None or part is None:
            return None
        return body(view, device, part, f"{gpu['@odata.id']}/{PARTS}/{part.name}/{tail}")

    return RedfishRoute(f"{home}/{PARTS}/{{part}}/{tail}", read)


def _routes(home: str, owned: Owned) -> tuple[RedfishRoute, ...]:
    def every(view: RedfishView, owner: str, device: str) -> Body | None:
        gpu, parts = owned(view, owner, device), view.box.telemetry.parts(device)
        if gpu is None or parts is None:
            return None
        uri = f"{gpu['@odata.id']}/{PARTS}"
        return collection("Processor", uri, f"MIG devices of {device}", [f"{uri}/{part.name}" for part in parts])

    def one(view: RedfishView, owner: str, device: str, name: str) -> Body | None:
        gpu, parts = owned(view, owner, device), view.box.telemetry.parts(device) or ()
        part = next((part for part in parts if part.name == name), None)
        return None if gpu is None or part is None else _body(view, gpu, device, part)

    return (
        RedfishRoute(f"{home}/{PARTS}", every),
        RedfishRoute(f"{home}/{PARTS}/{{part}}", one),
        *(_metrics_route(home, owned, tail, body) for tail, body in _METRICS),
    )


ROUTES = (
    *_routes(f"{uris.SYSTEMS}/{{system}}/Processors/{{processor}}", processor),
    *_routes(f"{uris.BLOCKS}/{{block}}/Processors/{{processor}}", block_processor),
)

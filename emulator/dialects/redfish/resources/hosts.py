"""What a system has of its host: processors and memory, as the hardware file says, and the memory of its GPUs.

Hosts have no sensors here: what only they could measure is null.
"""

from __future__ import annotations

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.chassis import ENVIRONMENT, PORTS, slot_location
from mews.emulator.dialects.redfish.resources.inventory import memory_type, profile_of
from mews.emulator.dialects.redfish.resources.systems import CPU, host_of, processor
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.hardware.gpu_profiles import GpuProfile

DIMM = "DIMM"
DIMM_MHZ = 4800
"""Assumed, as is that it is DDR5."""


def _part(name: str, kind: str, count: int) -> int | None:
    """Return the number in such a name, if there are so many parts of that kind."""
    number = name.removeprefix(kind)
    known = name.startswith(kind) and number.isascii() and number.isdecimal() and str(int(number)) == number
    return int(number) if known and int(number) < count else None


def cpu(view: RedfishView, name: str, which: str) -> Body | None:
    """Return one socket of a system's host."""
    host = host_of(view, name)
    spec = view.host(host) if host is not None else None
    number = _part(which, CPU, spec.numa_nodes) if spec is not None else None
    if spec is None or number is None:
        return None
    uri, cores = f"{uris.system(name)}/Processors/{which}", spec.cpus // spec.numa_nodes
    return resource(
        "Processor",
        uri,
        f"Processor {number} of {host}",
        ProcessorType="CPU",
        Socket=f"{CPU}{number}",
        Manufacturer="Mews",
        Model="Emulated processor",
        TotalThreads=cores,
        Status=dict(OK),
        Location={
            "PartLocation": {"LocationType": "Socket", "LocationOrdinalValue": number, "ServiceLabel": f"{CPU}{number}"}
        },
        Ports=ref(f"{uri}/{PORTS}"),
        EnvironmentMetrics=ref(f"{uri}/{ENVIRONMENT}"),
        Links={"Chassis": ref(uris.chassis(view.name))},
    )


def any_processor(view: RedfishView, name: str, which: str) -> Body | None:
    """Return a system's processor, be it a GPU or one of its host's own."""
    return processor(view, name, which) or cpu(view, name, which)


def cpu_environment(view: RedfishView, uri: str, name: str) -> Body:
    """Return that of a socket."""
    return resource("EnvironmentMetrics", uri, f"Environment of {name}", TemperatureCelsius={"Reading": None})


def memories(view: RedfishView, name: str) -> Body | None:
    """Return the host's modules, then each GPU's memory."""
    host = host_of(view, name)
    if host is None:
        return None
    names = [f"{DIMM}{number}" for number in range(view.host(host).numa_nodes)]
    names += [row.device for row in view.of_host(host) if profile_of(view, row.device)]
    uri = f"{uris.system(name)}/Memory"
    return collection("Memory", uri, "Memory", [f"{uri}/{each}" for each in names])


def memory(view: RedfishView, name: str, which: str) -> Body | None:
    """Return one of them."""
    host = host_of(view, name)
    if host is None:
        return None
    uri, spec = f"{uris.system(name)}/Memory/{which}", view.host(host)
    number = _part(which, DIMM, spec.numa_nodes)
    if number is not None:
        return resource(
            "Memory",
            uri,
            f"Memory of NUMA node {number}",
            MemoryType="DRAM",
            MemoryDeviceType="DDR5",
            CapacityMiB=spec.memory_mib // spec.numa_nodes,
            AllowedSpeedsMHz=[DIMM_MHZ],
            OperatingSpeedMhz=DIMM_MHZ,
            ErrorCorrection="MultiBitECC",
            Status=dict(OK),
            Metrics=ref(f"{uri}/MemoryMetrics"),
        )
    profile = _on(view, host, which)
    return None if profile is None else _board(view, uri, which, profile)


def _on(view: RedfishView, host: str, device: str) -> GpuProfile | None:
    """Return the profile of a device that the host has."""
    row = view.row(device)
    return profile_of(view, device) if row is not None and row in view.of_host(host) else None


def _board(view: RedfishView, uri: str, device: str, profile: GpuProfile) -> Body:
    row = view.row(device)
    is_up = row is not None and row.link
    return resource(
        "Memory",
        uri,
        f"Memory of {device}",
        MemoryType="DRAM",
        MemoryDeviceType=memory_type(profile),
        CapacityMiB=profile.memory_mib,
        AllowedSpeedsMHz=sorted({profile.idle_memory_clock_mhz, profile.memory_clock_mhz}),
        ErrorCorrection="MultiBitECC" if profile.ecc else "NoECC",
        Location=slot_location(view.slot(device)),
        Status=dict(OK) if is_up else {"State": "UnavailableOffline", "Health": "Critical"},
        Metrics=ref(f"{uri}/MemoryMetrics"),
    )


def module_metrics(uri: str, which: str) -> Body:
    """Return those of a host's module: nobody measures them."""
    return resource("MemoryMetrics", uri, f"Metrics of {which}", BandwidthPercent=None)


PATH = f"{uris.SYSTEMS}/{{system}}"
ROUTES = (
    RedfishRoute(f"{PATH}/Processors/{{processor}}", any_processor),
    RedfishRoute(f"{PATH}/Memory", memories),
    RedfishRoute(f"{PATH}/Memory/{{memory}}", memory),
)

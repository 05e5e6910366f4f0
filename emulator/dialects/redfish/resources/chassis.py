"""The enclosure, and the GPUs in it as processors."""

from __future__ import annotations

from typing import Any

from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.resources.inventory import plain_uuid, profile_of
from mews.emulator.dialects.redfish.resources.resets import allowable, flap, reset_type
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref

PROCESSOR_METRICS, MEMORY_METRICS, ENVIRONMENT = "ProcessorMetrics", "MemorySummary/MemoryMetrics", "EnvironmentMetrics"
"""What lies below a processor, but for those of the chassis itself (``metrics``)."""
RESETS = ("ForceRestart", "GracefulRestart")


def all_chassis(view: RedfishView) -> Body:
    """All enclosures: one."""
    return collection("Chassis", uris.CHASSIS, "Chassis", [uris.chassis(view.name)])


def chassis(view: RedfishView, name: str) -> Body | None:
    """The enclosure."""
    if name != view.name:
        return None
    uri = uris.chassis(name)
    return resource(
        "Chassis",
        uri,
        f"GPU chassis {name}",
        ChassisType="Expansion",
        Manufacturer="H3 Platform",
        Model="Falcon (emulated)",
        SerialNumber=f"CH{view.box.spec.index:04d}",
        PartNumber="FALCON-EMU",
        AssetTag="",
        LocationIndicatorActive=False,
        PowerState="On",
        Status=dict(OK),
        PCIeDevices=ref(f"{uri}/PCIeDevices"),
        Processors=ref(f"{uri}/Processors"),
        Sensors=ref(f"{uri}/Sensors"),
        EnvironmentMetrics=ref(f"{uri}/EnvironmentMetrics"),
        ThermalSubsystem=ref(f"{uri}/ThermalSubsystem"),
        PowerSubsystem=ref(f"{uri}/PowerSubsystem"),
        Links={
            **links([uris.system(host) for host in view.hosts()], "ComputerSystems"),
            **links([uris.MANAGER], "ManagedBy"),
            **links([uris.MANAGER], "ManagersInChassis"),
            **links([uris.SWITCH], "Switches"),
            **links([processor_uri(view, row.device) for row in view.rows], "Processors"),
        },
        Actions={"#Chassis.Reset": allowable(f"{uri}/Actions/Chassis.Reset", RESETS)},
    )


def reset(call: RedfishWrite) -> Done:
    """Every link goes down and up, and the management processor restarts; gracefully only where nobody uses one."""
    kind = reset_type(call, "Chassis.Reset", RESETS)
    if kind == "GracefulRestart" and any(row.port is not None for row in call.view.rows):
        raise fail(409, "ResourceInUse")
    flap(call, [row.device for row in call.view.rows])
    call.view.box.reboot(call.state.settings.reboot_s)
    return Done()


def processor_uri(view: RedfishView, device: str) -> str:
    """A GPU as a processor."""
    return f"{uris.chassis(view.name)}/Processors/{device}"


def processors(view: RedfishView, name: str) -> Body | None:
    """All devices."""
    if name != view.name:
        return None
    found = [processor_uri(view, row.device) for row in view.rows]
    return collection("Processor", f"{uris.chassis(name)}/Processors", "Processors", found)


def processor(view: RedfishView, name: str, device: str) -> Body | None:
    """One device."""
    row = view.row(device)
    return None if name != view.name or row is None else processor_body(view, row, processor_uri(view, device))


def processor_body(view: RedfishView, row: DeviceRow, uri: str) -> Body:
    """A GPU as a processor, wherever it is shown."""
    spec, profile = view.box.device(row.device), profile_of(view, row.device)
    facts: dict[str, Any] = {}
    if profile is not None:
        facts = {
            "TotalCores": profile.cores,
            "TDPWatts": profile.power_limit_mw // 1000,
            "MaxSpeedMHz": profile.sm_clock_mhz,
            "MemorySummary": {"TotalMemorySizeMiB": profile.memory_mib},
            "PartNumber": profile.part_number,
            "FirmwareVersion": profile.vbios,
        }
        if not uri.startswith(uris.CHASSIS):
            facts["Metrics"] = ref(f"{uri}/{PROCESSOR_METRICS}")
            facts["EnvironmentMetrics"] = ref(f"{uri}/{ENVIRONMENT}")
            facts["MemorySummary"] = {**facts["MemorySummary"], "Metrics": ref(f"{uri}/{MEMORY_METRICS}")}
    device = view.device_uri(row.device)
    return resource(
        "Processor",
        uri,
        f"{row.kind} {row.device}",
        ProcessorType="GPU" if row.kind == "GPU" else "Accelerator",
        Manufacturer="NVIDIA",
        Model=profile.name if profile else spec.model,
        SerialNumber=spec.serial or None,
        UUID=plain_uuid(row.uuid),
        SystemInterface={"InterfaceType": "PCIe"},
        Status=dict(OK) if row.link else {"State": "UnavailableOffline", "Health": "Critical"},
        Links={
            "Chassis": ref(uris.chassis(view.name)),
            "PCIeDevice": ref(device),
            **links([f"{device}/PCIeFunctions/0"], "PCIeFunctions"),
            **links([uris.endpoint(row.device)], "Endpoints"),
        },
        **facts,
    )


RULES = {"AssetTag": patching.text, "LocationIndicatorActive": patching.boolean}
PATH = f"{uris.CHASSIS}/{{chassis}}"
ROUTES = (
    RedfishRoute(uris.CHASSIS, all_chassis),
    RedfishRoute(PATH, chassis, rules=RULES, privilege=MANAGER, actions={"Chassis.Reset": reset}),
    RedfishRoute(f"{PATH}/Processors", processors),
    RedfishRoute(f"{PATH}/Processors/{{processor}}", processor),
)

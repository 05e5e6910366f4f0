"""The enclosure with its baseboard, and the GPUs in it as processors."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.resources.inventory import pcie_of, plain_uuid, profile_of
from mews.emulator.dialects.redfish.resources.resets import allowable, flap, reset_type
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.telemetry import enclosure

PROCESSOR_METRICS, MEMORY_METRICS, ENVIRONMENT = "ProcessorMetrics", "MemorySummary/MemoryMetrics", "EnvironmentMetrics"
PARTS, PORTS = "SubProcessors", "Ports"
"""What lies below a processor. DSP8010 has no place for them below those of a chassis, which link to those of the GPU's
resource block."""
MAKER, MODEL, PART = "H3 Platform", "Falcon (emulated)", "FALCON-EMU"
RESETS = ("ForceRestart", "GracefulRestart")


def all_chassis(view: RedfishView) -> Body:
    """Return the enclosure, and the baseboard in it."""
    return collection("Chassis", uris.CHASSIS, "Chassis", [uris.chassis(view.name), uris.baseboard(view.name)])


def chassis(view: RedfishView, name: str) -> Body | None:
    """Return the enclosure, or its baseboard."""
    if uris.chassis(name) == uris.baseboard(view.name):
        return _baseboard(view)
    if name != view.name:
        return None
    uri = uris.chassis(name)
    return resource(
        "Chassis",
        uri,
        f"GPU chassis {name}",
        ChassisType="Expansion",
        Manufacturer=MAKER,
        Model=MODEL,
        SerialNumber=f"CH{view.box.spec.index:04d}",
        PartNumber=PART,
        SKU=f"{PART}-{view.box.spec.slots}",
        UUID=str(uuid5(NAMESPACE_DNS, f"{name}.chassis")),
        MinPowerWatts=enclosure.BASE_W,
        MaxPowerWatts=enclosure.chassis_w(sum(_most_mw(view, row.device) for row in view.rows)),
        AssetTag="",
        LocationIndicatorActive=False,
        PowerState="On",
        Status=dict(OK),
        PCIeDevices=ref(f"{uri}/PCIeDevices"),
        Assembly=ref(f"{uri}/Assembly"),
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
            **links([uris.baseboard(name)], "Contains"),
        },
        Actions={"#Chassis.Reset": allowable(f"{uri}/Actions/Chassis.Reset", RESETS)},
    )


def _most_mw(view: RedfishView, device: str) -> int:
    profile = profile_of(view, device)
    return profile.max_power_limit_mw if profile else 0


def _baseboard(view: RedfishView) -> Body:
    uri, index = uris.baseboard(view.name), view.box.spec.index
    return resource(
        "Chassis",
        uri,
        f"Baseboard of chassis {view.name}",
        ChassisType="Module",
        Manufacturer=MAKER,
        Model=f"{MODEL} baseboard",
        SerialNumber=f"BB{index:04d}",
        PartNumber=f"{PART}-BB",
        SKU=f"{PART}-BB-{view.box.spec.slots}",
        UUID=str(uuid5(NAMESPACE_DNS, f"{view.name}.baseboard")),
        AssetTag="",
        LocationIndicatorActive=False,
        PowerState="On",
        Status=dict(OK),
        Assembly=ref(f"{uri}/Assembly"),
        Links={
            "ContainedBy": ref(uris.chassis(view.name)),
            **links([uris.MANAGER], "ManagedBy"),
            **links([uris.SWITCH], "Switches"),
        },
    )


def assembly(view: RedfishView, name: str) -> Body | None:
    """Return the parts that stay in it, whichever GPUs come and go."""
    index = view.box.spec.index
    known = {
        uris.chassis(view.name): [
            ("Baseboard", f"{PART}-BB", f"BB{index:04d}", "SystemBoard"),
            *((f"Fan {fan}", f"{PART}-FAN", f"FN{index:02d}{fan}", "Fan") for fan in range(1, enclosure.FANS + 1)),
        ],
        uris.baseboard(view.name): [("PCIe switch", f"{PART}-SW", f"SW{index:04d}", "Board")],
    }
    parts = known.get(uris.chassis(name))
    if parts is None:
        return None
    uri = f"{uris.chassis(name)}/Assembly"
    members = [
        {
            "@odata.id": f"{uri}#/Assemblies/{place}",
            "MemberId": str(place),
            "Name": text,
            "PartNumber": part,
            "SerialNumber": serial,
            "Producer": MAKER,
            "PhysicalContext": context,
            "Status": dict(OK),
        }
        for place, (text, part, serial, context) in enumerate(parts)
    ]
    body = {"Assemblies": members, "Assemblies@odata.count": len(members)}
    return resource("Assembly", uri, f"Parts of {name}", **body)


def reset(call: RedfishWrite) -> Done:
    """Every link goes down and up, and the management processor restarts; gracefully only where nobody uses one."""
    if not call.shown.get("Actions"):
        raise fail(404, "ActionNotSupported", "Chassis.Reset")
    kind = reset_type(call, "Chassis.Reset", RESETS)
    if kind == "GracefulRestart" and any(row.port is not None for row in call.view.rows):
        raise fail(409, "ResourceInUse")
    flap(call, [row.device for row in call.view.rows])
    call.view.box.management.reboot(call.state.settings.reboot_s)
    return Done()


def processor_uri(view: RedfishView, device: str) -> str:
    """Return a GPU as a processor."""
    return f"{uris.chassis(view.name)}/Processors/{device}"


def processors(view: RedfishView, name: str) -> Body | None:
    """Return all devices."""
    if name != view.name:
        return None
    found = [processor_uri(view, row.device) for row in view.rows]
    return collection("Processor", f"{uris.chassis(name)}/Processors", "Processors", found)


def processor(view: RedfishView, name: str, device: str) -> Body | None:
    """Return one device."""
    row = view.row(device)
    return None if name != view.name or row is None else processor_body(view, row, processor_uri(view, device))


def processor_body(view: RedfishView, row: DeviceRow, uri: str) -> Body:
    """Return a GPU as a processor, wherever it is shown."""
    spec, profile = view.box.table.spec(row.device), profile_of(view, row.device)
    home = f"{uris.block(row.device)}/Processors/{row.device}" if uri.startswith(uris.CHASSIS) else uri
    facts: dict[str, Any] = {}
    if profile is not None:
        facts = {
            "TotalCores": profile.cores,
            "TDPWatts": profile.power_limit_mw // 1000,
            "MaxSpeedMHz": profile.sm_clock_mhz,
            "MinSpeedMHz": profile.idle_sm_clock_mhz,
            "MemorySummary": {
                "TotalMemorySizeMiB": profile.memory_mib,
                "Metrics": ref(f"{home}/{MEMORY_METRICS}"),
            },
            "Metrics": ref(f"{home}/{PROCESSOR_METRICS}"),
            "PartNumber": profile.part_number,
            "FirmwareVersion": profile.vbios,
        }
    facts |= mig_facts(view, row.device, home)
    device, slot = view.device_uri(row.device), view.slot(row.device)
    generation, _ = pcie_of(view, row.device)
    bus = {"MaxPCIeType": f"Gen{generation}", "MaxLanes": 16}
    if row.link and row.port is not None:
        bus |= {"PCIeType": f"Gen{generation}", "LanesInUse": 16}
    return resource(
        "Processor",
        uri,
        f"{row.kind} {row.device}",
        ProcessorType="GPU" if row.kind == "GPU" else "Accelerator",
        Manufacturer="NVIDIA",
        Model=profile.name if profile else spec.model,
        SerialNumber=spec.serial or None,
        UUID=plain_uuid(row.uuid),
        SystemInterface={"InterfaceType": "PCIe", "PCIe": bus},
        Location=slot_location(slot),
        Ports=ref(f"{home}/{PORTS}"),
        EnvironmentMetrics=ref(f"{home}/{ENVIRONMENT}"),
        Status=dict(OK) if row.link else {"State": "UnavailableOffline", "Health": "Critical"},
        Links={
            "Chassis": ref(uris.chassis(view.name)),
            "PCIeDevice": ref(device),
            **links([f"{device}/PCIeFunctions/0"], "PCIeFunctions"),
            **links([uris.endpoint(row.device)], "Endpoints"),
        },
        **facts,
    )


def mig_facts(view: RedfishView, device: str, home: str) -> Body:
    """Return whether a model with MIG is in MIG mode, as the management controllers of NVIDIA's baseboards say it
    (``MIGModeEnabled`` of NVIDIA's bmcweb), and where its MIG devices are: DSP8010's partitions of a processor."""
    profile, parts = profile_of(view, device), view.box.telemetry.parts(device)
    if profile is None or not profile.mig_capable:
        return {}
    nvidia = {"@odata.type": "#NvidiaProcessor.v1_0_0.NvidiaGPU", "MIGModeEnabled": parts is not None}
    return {"Oem": {"Nvidia": nvidia}} | ({} if parts is None else {PARTS: ref(f"{home}/{PARTS}")})


def slot_location(slot: int) -> Body:
    """Return where a board is."""
    return {"PartLocation": {"LocationType": "Slot", "LocationOrdinalValue": slot, "ServiceLabel": str(slot)}}


RULES = {"AssetTag": patching.text, "LocationIndicatorActive": patching.boolean}
PATH = f"{uris.CHASSIS}/{{chassis}}"
ROUTES = (
    RedfishRoute(uris.CHASSIS, all_chassis),
    RedfishRoute(PATH, chassis, rules=RULES, privilege=MANAGER, actions={"Chassis.Reset": reset}),
    RedfishRoute(f"{PATH}/Assembly", assembly),
    RedfishRoute(f"{PATH}/Processors", processors),
    RedfishRoute(f"{PATH}/Processors/{{processor}}", processor),
)

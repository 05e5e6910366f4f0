"""PCIe devices and functions: one device per slot, absent where the slot is empty."""

from __future__ import annotations

from mews.emulator.chassis.operation import OperationKind
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.resources.chassis import processor_uri, slot_location
from mews.emulator.dialects.redfish.resources.edits import detach
from mews.emulator.dialects.redfish.resources.inventory import class_of, ids_of, pcie_of, profile_of
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done, Started
from mews.emulator.dialects.redfish.uris import ref

EMPTY = "EmptySlot"


def _names(view: RedfishView) -> list[str]:
    """Return the device in each slot, or a name for the empty slot."""
    at = {slot: device for device, slot in view.state.slots.items()}
    there = {row.device for row in view.rows}
    slots = range(1, view.box.spec.slots + 1)
    return [at[slot] if at.get(slot) in there else f"{EMPTY}{slot}" for slot in slots]


def devices(view: RedfishView, name: str) -> Body | None:
    """Return all slots."""
    if name != view.name:
        return None
    found = [view.device_uri(each) for each in _names(view)]
    return collection("PCIeDevice", f"{uris.chassis(name)}/PCIeDevices", "PCIe devices", found)


def device(view: RedfishView, name: str, device: str) -> Body | None:
    """Return one slot's."""
    if name != view.name:
        return None
    row = view.row(device)
    if row is not None:
        return _present(view, row)
    return _absent(view, device) if device.startswith(EMPTY) and device in _names(view) else None


def _slot(slot: int) -> Body:
    return {
        "Lanes": 16,
        "PCIeType": "Gen5",
        "SlotType": "FullLength",
        "HotPluggable": True,
        "Location": slot_location(slot),
    }


def _absent(view: RedfishView, name: str) -> Body:
    slot = int(name.removeprefix(EMPTY))
    return resource(
        "PCIeDevice",
        view.device_uri(name),
        f"Empty slot {slot}",
        Status={"State": "Absent"},
        Slot=_slot(slot),
        Links=links([uris.chassis(view.name)], "Chassis"),
    )


def _present(view: RedfishView, row: DeviceRow) -> Body:
    spec, profile = view.box.table.spec(row.device), profile_of(view, row.device)
    generation, _ = pcie_of(view, row.device)
    uri, slot = view.device_uri(row.device), view.slot(row.device)
    trained = row.link and row.port is not None
    interface = {"MaxPCIeType": f"Gen{generation}", "MaxLanes": 16}
    if trained:
        interface |= {"PCIeType": f"Gen{generation}", "LanesInUse": 16}
    training = view.pending().get(row.device) is OperationKind.ATTACH
    status = {"State": "Starting", "Health": "OK"} if training else dict(OK)
    return resource(
        "PCIeDevice",
        uri,
        f"{row.kind} {row.device}",
        DeviceType="SingleFunction",
        Manufacturer="NVIDIA",
        Model=profile.name if profile else spec.model,
        SerialNumber=spec.serial or None,
        PartNumber=profile.part_number if profile else None,
        FirmwareVersion=profile.vbios if profile else None,
        AssetTag="",
        LocationIndicatorActive=False,
        ReadyToRemove=row.device in view.state.ready and row.port is None,
        PCIeInterface=interface,
        Slot=_slot(slot),
        Status=status if row.link else {"State": "UnavailableOffline", "Health": "Critical"},
        PCIeFunctions=ref(f"{uri}/PCIeFunctions"),
        EnvironmentMetrics=ref(f"{uri}/EnvironmentMetrics"),
        Links={
            **links([uris.chassis(view.name)], "Chassis"),
            **links([processor_uri(view, row.device)], "Processors"),
            **links([uris.switch_port(uris.downstream(slot))], "ConnectedPCIePorts"),
            "Switch": ref(uris.SWITCH),
        },
    )


def functions(view: RedfishView, name: str, device: str) -> Body | None:
    """Return a device's functions: one."""
    if name != view.name or view.row(device) is None:
        return None
    uri = f"{view.device_uri(device)}/PCIeFunctions"
    return collection("PCIeFunction", uri, "PCIe functions", [f"{uri}/0"])


def function(view: RedfishView, name: str, device: str, number: str) -> Body | None:
    """Function 0, a display controller."""
    row = view.row(device)
    if name != view.name or row is None or number != "0":
        return None
    ids = ids_of(view, device)
    return resource(
        "PCIeFunction",
        f"{view.device_uri(device)}/PCIeFunctions/0",
        f"Function 0 of {device}",
        FunctionId=0,
        FunctionType="Physical",
        FunctionProtocol="PCIe",
        DeviceClass="DisplayController" if row.kind == "GPU" else "ProcessingAccelerators",
        ClassCode=class_of(view, device),
        RevisionId="0xa1",
        VendorId=ids["VendorId"],
        DeviceId=ids["DeviceId"],
        SubsystemVendorId=ids["SubsystemVendorId"],
        SubsystemId=ids["SubsystemId"],
        Enabled=row.link,
        Status=dict(OK) if row.link else {"State": "UnavailableOffline", "Health": "Critical"},
        Links={"PCIeDevice": ref(view.device_uri(device)), "Processor": ref(processor_uri(view, device))},
    )


def patch_device(call: RedfishWrite) -> Done | Started:
    """``ReadyToRemove`` true takes the device off its host port first; false lets it be attached again."""
    changes, device = dict(call.body), call.args[1]
    ready = changes.pop("ReadyToRemove", None)
    if changes:
        call.state.overlays[call.uri] = patching.merge(call.state.overlays.get(call.uri, {}), changes)
    if ready is None:
        return Done()
    if not ready:
        call.state.ready.discard(device)
        return Done()
    operation = detach(call, device)

    def removable() -> Done:
        call.state.ready.add(device)
        return Done()

    return Started(f"Make {device} ready to be removed", (operation,), removable, call.uri)


RULES = {
    "ReadyToRemove": patching.boolean,
    "LocationIndicatorActive": patching.boolean,
    "AssetTag": patching.text,
}
PATH = f"{uris.CHASSIS}/{{chassis}}/PCIeDevices"
ROUTES = (
    RedfishRoute(PATH, devices),
    RedfishRoute(f"{PATH}/{{device}}", device, rules=RULES, patch=patch_device),
    RedfishRoute(f"{PATH}/{{device}}/PCIeFunctions", functions),
    RedfishRoute(f"{PATH}/{{device}}/PCIeFunctions/{{function}}", function),
)

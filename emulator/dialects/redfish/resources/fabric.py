"""The fabric, its switch and the switch's ports: one per host port, one per slot."""

from __future__ import annotations

from typing import Any

from mews.emulator.chassis.operation import OperationKind
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.resources.inventory import pcie_of
from mews.emulator.dialects.redfish.resources.resets import allowable, flap, reset_type
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref

METRICS = "Metrics"
PORT_RESETS = ("ForceRestart", "GracefulRestart")
SWITCH_RESETS = ("ForceRestart", "GracefulRestart")


def fabrics(view: RedfishView) -> Body:
    """Return all fabrics: one."""
    return collection("Fabric", f"{uris.ROOT}/Fabrics", "Fabrics", [uris.FABRIC])


def fabric(view: RedfishView) -> Body:
    """Return the PCIe fabric."""
    return resource(
        "Fabric",
        uris.FABRIC,
        f"PCIe fabric of chassis {view.name}",
        FabricType="PCIe",
        MaxZones=len(view.ports),
        Status=dict(OK),
        Switches=ref(f"{uris.FABRIC}/Switches"),
        Zones=ref(f"{uris.FABRIC}/Zones"),
        Endpoints=ref(f"{uris.FABRIC}/Endpoints"),
    )


def switches(view: RedfishView) -> Body:
    """Return all switches: one."""
    return collection("Switch", f"{uris.FABRIC}/Switches", "Switches", [uris.SWITCH])


def switch(view: RedfishView) -> Body:
    """Return the PCIe switch."""
    return resource(
        "Switch",
        uris.SWITCH,
        "PCIe switch",
        SwitchType="PCIe",
        SupportedProtocols=["PCIe"],
        Manufacturer="H3 Platform",
        Model="Falcon (emulated)",
        SerialNumber=f"SW{view.box.spec.index:04d}",
        FirmwareVersion="1.0.0",
        PowerState="On",
        TotalSwitchWidth=16 * (len(view.ports) + view.box.spec.slots),
        Status=dict(OK),
        Ports=ref(f"{uris.SWITCH}/Ports"),
        Links={"Chassis": ref(uris.chassis(view.name)), "ManagedBy": [ref(uris.MANAGER)]},
        Actions={"#Switch.Reset": allowable(f"{uris.SWITCH}/Actions/Switch.Reset", SWITCH_RESETS)},
    )


def ports(view: RedfishView) -> Body:
    """Upstream ports first, then the slots'."""
    names = [uris.upstream(port) for port in view.ports]
    names += [uris.downstream(slot) for slot in range(1, view.box.spec.slots + 1)]
    return collection("Port", f"{uris.SWITCH}/Ports", "Ports", [uris.switch_port(name) for name in names])


def port(view: RedfishView, name: str) -> Body | None:
    """Return one port of the switch."""
    for each, host in view.ports.items():
        if name == uris.upstream(each):
            return _upstream(view, each, host)
    slot = name.removeprefix("Slot")
    if slot.isascii() and slot.isdecimal() and name == uris.downstream(int(slot)):
        return _downstream(view, int(slot)) if 1 <= int(slot) <= view.box.spec.slots else None
    return None


def _port(name: str, text: str, **fields: Any) -> Body:
    uri = uris.switch_port(name)
    return resource(
        "Port",
        uri,
        text,
        PortId=name,
        PortProtocol="PCIe",
        Width=16,
        Metrics=ref(f"{uri}/{METRICS}"),
        ActiveWidth=fields.pop("ActiveWidth", 16),
        Actions={"#Port.Reset": allowable(f"{uri}/Actions/Port.Reset", PORT_RESETS)},
        **fields,
    )


def _upstream(view: RedfishView, port: str, host: str | None) -> Body:
    cabled = host is not None
    found = _port(
        uris.upstream(port),
        f"Host port {port}",
        PortType="UpstreamPort",
        LinkStatus="LinkUp" if cabled else "NoLink",
        LinkState="Enabled",
        InterfaceEnabled=True,
        ActiveWidth=16 if cabled else 0,
        CurrentSpeedGbps=256.0 if cabled else 0.0,
        MaxSpeedGbps=256.0,
        Status=dict(OK) if cabled else {"State": "StandbyOffline", "Health": "OK"},
        Links=links([uris.endpoint(uris.host_endpoint(port))], "AssociatedEndpoints"),
    )
    if not cabled:
        del found["Actions"]
    return found


def _downstream(view: RedfishView, slot: int) -> Body:
    device = view.device_in(slot)
    row = view.row(device) if device else None
    status, up = _link(view, device)
    state = {"State": "Absent"} if row is None else dict(OK) if row.link else {"State": "Enabled", "Health": "Critical"}
    speed = 0.0 if row is None else pcie_of(view, row.device)[1]
    found = _port(
        uris.downstream(slot),
        f"Slot {slot}",
        PortType="DownstreamPort",
        LinkStatus=status,
        LinkState="Enabled",
        InterfaceEnabled=True,
        ActiveWidth=16 if up else 0,
        CurrentSpeedGbps=speed if up else 0.0,
        MaxSpeedGbps=256.0,
        Status=state,
        Links=links([uris.endpoint(row.device)] if row else [], "AssociatedEndpoints"),
    )
    if row is None:
        del found["Actions"]
    return found


def _link(view: RedfishView, device: str | None) -> tuple[str, bool]:
    row = view.row(device) if device else None
    if row is None or not row.link:
        return "NoLink" if row is None else "LinkDown", False
    if view.pending().get(row.device) is OperationKind.ATTACH:
        return "Training", False
    return ("LinkUp", True) if row.port is not None else ("LinkDown", False)


def reset_switch(call: RedfishWrite) -> Done:
    """Every link goes down and comes up again; gracefully only where nobody uses one."""
    kind = reset_type(call, "Switch.Reset", SWITCH_RESETS)
    if kind == "GracefulRestart" and any(row.port is not None for row in call.view.rows):
        raise fail(409, "ResourceInUse")
    flap(call, [row.device for row in call.view.rows])
    return Done()


def reset_port(call: RedfishWrite) -> Done:
    """Return one slot's link, or those of all devices of a host port."""
    kind = reset_type(call, "Port.Reset", PORT_RESETS)
    devices = [uris.tail(each["@odata.id"]) for each in call.shown["Links"]["AssociatedEndpoints"]]
    rows = [row for row in call.view.rows if row.device in devices]
    for name in call.view.ports:
        if call.args[0] == uris.upstream(name):
            rows = call.view.on(name)
    if not call.shown.get("Actions"):
        raise fail(409, "OperationFailed", "the port has no link")
    if kind == "GracefulRestart" and any(row.port is not None for row in rows):
        raise fail(409, "ResourceInUse")
    flap(call, [row.device for row in rows])
    return Done()


ROUTES = (
    RedfishRoute(f"{uris.ROOT}/Fabrics", fabrics),
    RedfishRoute(uris.FABRIC, fabric),
    RedfishRoute(f"{uris.FABRIC}/Switches", switches),
    RedfishRoute(uris.SWITCH, switch, actions={"Switch.Reset": reset_switch}),
    RedfishRoute(f"{uris.SWITCH}/Ports", ports),
    RedfishRoute(f"{uris.SWITCH}/Ports/{{port}}", port, actions={"Port.Reset": reset_port}),
)

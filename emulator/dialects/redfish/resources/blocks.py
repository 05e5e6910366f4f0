"""The composition service: a resource block per host and per GPU."""

from __future__ import annotations

from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.chassis import processor_body
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref

SERVICE = f"{uris.ROOT}/CompositionService"
ZONES = f"{SERVICE}/ResourceZones"


def service(view: RedfishView) -> Body:
    """Return the composition service: specific composition only."""
    return resource(
        "CompositionService",
        SERVICE,
        "Composition service",
        AllowOverprovisioning=False,
        AllowZoneAffinity=False,
        ServiceEnabled=True,
        Status=dict(OK),
        ResourceBlocks=ref(uris.BLOCKS),
        ResourceZones=ref(ZONES),
        ReservationDuration=None,
    )


def blocks(view: RedfishView) -> Body:
    """Hosts first, then devices."""
    names = [*view.hosts(), *(row.device for row in view.rows)]
    return collection("ResourceBlock", uris.BLOCKS, "Resource blocks", [uris.block(name) for name in names])


def block(view: RedfishView, name: str) -> Body | None:
    """Return one block."""
    row = view.row(name)
    if row is not None:
        return _gpu(view, row)
    return _host(view, name) if name in view.hosts() else None


def _composition(state: str, *, reserved: bool = False) -> Body:
    return {"CompositionState": state, "Reserved": reserved, "SharingCapable": False}


def _gpu(view: RedfishView, row: DeviceRow) -> Body:
    uri, pending = uris.block(row.device), row.device in view.pending()
    state = "Composing" if pending else "Unused" if row.port is None else "Composed"
    host = view.ports.get(row.port) if row.port is not None else None
    owners = [name for name, each in view.state.composed.items() if each == host]
    systems = [uris.system(name) for name in ([host, *owners] if host else [])]
    return resource(
        "ResourceBlock",
        uri,
        f"{row.kind} {row.device}",
        ResourceBlockType=["Processor"],
        CompositionStatus=_composition(state if row.link else "Unavailable"),
        Status=dict(OK) if row.link else {"State": "UnavailableOffline", "Health": "Critical"},
        Processors=[ref(f"{uri}/Processors/{row.device}")],
        **{"Processors@odata.count": 1},
        Links=links(systems, "ComputerSystems")
        | links([uris.chassis(view.name)], "Chassis")
        | links([f"{ZONES}/{view.name}"], "Zones"),
    )


def _host(view: RedfishView, host: str) -> Body:
    composed = [name for name, each in view.state.composed.items() if each == host]
    return resource(
        "ResourceBlock",
        uris.block(host),
        f"Host {host}",
        ResourceBlockType=["ComputerSystem"],
        CompositionStatus=_composition("Composed" if composed else "Unused"),
        Status=dict(OK),
        ComputerSystems=[ref(uris.system(host))],
        **{"ComputerSystems@odata.count": 1},
        Links=links([uris.system(name) for name in composed], "ComputerSystems")
        | links([f"{ZONES}/{view.name}"], "Zones"),
    )


def block_processors(view: RedfishView, name: str) -> Body | None:
    """Return the processors of a GPU's block."""
    if view.row(name) is None:
        return None
    uri = f"{uris.block(name)}/Processors"
    return collection("Processor", uri, "Processors", [f"{uri}/{name}"])


def block_processor(view: RedfishView, name: str, device: str) -> Body | None:
    """Return the GPU itself."""
    row = view.row(name)
    return None if row is None or name != device else processor_body(view, row, f"{uris.block(name)}/Processors/{name}")


def zones(view: RedfishView) -> Body:
    """All blocks of a chassis go together."""
    return collection("Zone", ZONES, "Resource zones", [f"{ZONES}/{view.name}"])


def zone(view: RedfishView, name: str) -> Body | None:
    """Return the one zone."""
    if name != view.name:
        return None
    members = [*view.hosts(), *(row.device for row in view.rows)]
    return resource(
        "Zone",
        f"{ZONES}/{name}",
        f"Blocks of chassis {name}",
        ZoneType="ZoneOfResourceBlocks",
        Status=dict(OK),
        Links=links([uris.block(each) for each in members], "ResourceBlocks"),
    )


ROUTES = (
    RedfishRoute(SERVICE, service),
    RedfishRoute(uris.BLOCKS, blocks),
    RedfishRoute(f"{uris.BLOCKS}/{{block}}", block),
    RedfishRoute(f"{uris.BLOCKS}/{{block}}/Processors", block_processors),
    RedfishRoute(f"{uris.BLOCKS}/{{block}}/Processors/{{processor}}", block_processor),
    RedfishRoute(ZONES, zones),
    RedfishRoute(f"{ZONES}/{{zone}}", zone),
)

"""Endpoints: one per host port, one per device. A device's zone tells the host port that it is on."""

from __future__ import annotations

from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.inventory import class_of, ids_of, plain_uuid
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref

URI = f"{uris.FABRIC}/Endpoints"


def endpoints(view: RedfishView) -> Body:
    """Host ports first, then the devices whose links are up."""
    names = [uris.host_endpoint(port) for port in view.ports]
    names += [row.device for row in view.rows if row.link]
    return collection("Endpoint", URI, "Endpoints", [uris.endpoint(name) for name in names])


def endpoint(view: RedfishView, name: str) -> Body | None:
    """Return one endpoint."""
    for port, host in view.ports.items():
        if name == uris.host_endpoint(port):
            return _host(view, port, host)
    row = view.row(name)
    return None if row is None else _device(view, row)


def _host(view: RedfishView, port: str, host: str | None) -> Body:
    entity = {"EntityType": "RootComplex", "EntityRole": "Initiator"}
    return resource(
        "Endpoint",
        uris.endpoint(uris.host_endpoint(port)),
        f"Host port {port}" + (f", cabled to {host}" if host else ""),
        EndpointProtocol="PCIe",
        ConnectedEntities=[{**entity, "EntityLink": ref(uris.system(host))} if host else entity],
        Status=dict(OK) if host else {"State": "StandbyOffline", "Health": "OK"},
        Links=links([uris.switch_port(uris.upstream(port))], "ConnectedPorts") | links([uris.zone(port)], "Zones"),
    )


def _device(view: RedfishView, row: DeviceRow) -> Body:
    entity = {
        "EntityType": "Processor",
        "EntityRole": "Target",
        "EntityLink": ref(f"{uris.chassis(view.name)}/Processors/{row.device}"),
        "EntityPciId": {"ClassCode": class_of(view, row.device), **ids_of(view, row.device)},
    }
    plain = plain_uuid(row.uuid)
    zones = [] if row.port is None else [uris.zone(row.port)]
    return resource(
        "Endpoint",
        uris.endpoint(row.device),
        f"{row.kind} {row.device}",
        EndpointProtocol="PCIe",
        ConnectedEntities=[entity],
        Identifiers=[{"DurableName": plain or row.uuid, "DurableNameFormat": "UUID" if plain else None}],
        Status=dict(OK) if row.link else {"State": "UnavailableOffline", "Health": "Critical"},
        Links=links([uris.switch_port(uris.downstream(view.slot(row.device)))], "ConnectedPorts")
        | links(zones, "Zones"),
    )


ROUTES = (RedfishRoute(URI, endpoints, listing=True), RedfishRoute(f"{URI}/{{endpoint}}", endpoint))

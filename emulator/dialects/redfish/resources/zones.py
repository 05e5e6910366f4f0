"""Zones: one per host port, holding the port's endpoint and those of its devices; the composition service's as well.

Two ways to edit, as the contract has it (chassis.md 4): the standard's actions AddEndpoint and RemoveEndpoint, and H3's
PATCH of the whole list, whose body is assumed and can be set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import etags, patching, uris
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.patching import Rules
from mews.emulator.dialects.redfish.resources.edits import attach, detach
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done, Started

URI = f"{uris.FABRIC}/Zones"
ADD, REMOVE = "Zone.AddEndpoint", "Zone.RemoveEndpoint"


def zones(view: RedfishView) -> Body:
    """Return one zone per host port."""
    return collection("Zone", URI, "Zones", [uris.zone(port) for port in view.ports])


def zone(view: RedfishView, port: str) -> Body | None:
    """Return the zone of a host port: the port's endpoint first, then its devices'."""
    if port not in view.ports:
        return None
    uri, names = uris.zone(port), [uris.host_endpoint(port), *(row.device for row in view.on(port) if row.link)]
    return resource(
        "Zone",
        uri,
        f"Zone of host port {port}",
        ZoneType="ZoneOfEndpoints",
        ExternalAccessibility="ZoneOnly",
        DefaultRoutingEnabled=False,
        Status=dict(OK) if view.ports[port] else {"State": "StandbyOffline", "Health": "OK"},
        Links=links([uris.endpoint(name) for name in names], "Endpoints") | links([uris.SWITCH], "InvolvedSwitches"),
        Actions={f"#{name}": {"target": f"{uri}/Actions/{name}"} for name in (ADD, REMOVE)},
    )


# The standard's actions


def add_endpoint(call: RedfishWrite) -> Started:
    """``#Zone.AddEndpoint``: attach."""
    row = _asked(call, ADD)
    operation = attach(call, row.device, call.args[0])
    return Started(f"Attach {row.device} to host port {call.args[0]}", (operation,), Done, call.uri)


def remove_endpoint(call: RedfishWrite) -> Started:
    """``#Zone.RemoveEndpoint``: detach what is in this zone."""
    row = _asked(call, REMOVE)
    if row.port != call.args[0]:
        raise fail(400, "ActionParameterValueConflict", "Endpoint", row.device, f"zone {call.args[0]}")
    operation = detach(call, row.device)
    return Started(f"Detach {row.device} from host port {call.args[0]}", (operation,), Done, call.uri)


def _asked(call: RedfishWrite, action: str) -> DeviceRow:
    """Return the device that an action names; tags given as parameters must be the current ones.

    Raises RedfishError: 400, 404, 428 (the rule of both actions' ETag parameters).
    """
    for name in call.body:
        if name not in ("Endpoint", "EndpointETag", "ZoneETag"):
            raise fail(400, "ActionParameterUnknown", action, name)
    link = call.body.get("Endpoint")
    if link is None:
        raise fail(400, "ActionParameterMissing", action, "Endpoint")
    if not isinstance(link, dict) or not isinstance(link.get("@odata.id"), str):
        raise fail(400, "ActionParameterValueTypeError", str(link)[:100], "Endpoint", action)
    row = _device(call, link["@odata.id"])
    _same_tag(call, action, "ZoneETag", call.shown)
    _same_tag(call, action, "EndpointETag", call.read(uris.endpoint(row.device)))
    return row


def _same_tag(call: RedfishWrite, action: str, name: str, shown: Mapping[str, Any] | None) -> None:
    given = call.body.get(name)
    if given is None:
        return
    if not isinstance(given, str):
        raise fail(400, "ActionParameterValueTypeError", str(given)[:100], name, action)
    if shown is None or not etags.is_same(given, shown["@odata.etag"]):
        raise fail(428, "PreconditionRequired")


def _device(call: RedfishWrite, uri: str) -> DeviceRow:
    """Return the row of a device's endpoint."""
    name = uris.tail(uri)
    row = call.view.row(name) if uri == uris.endpoint(name) else None
    if row is not None:
        return row
    if any(uri == uris.endpoint(uris.host_endpoint(port)) for port in call.view.ports):
        raise fail(400, "ActionParameterValueConflict", "Endpoint", name, "a zone of another host port")
    raise fail(404, "ResourceNotFound", "Endpoint", name[:100])


# H3's PATCH


def patch_rules(view: RedfishView) -> Rules:
    """Return the one property that may be written, wherever the settings have it."""
    settings = view.state.settings
    rules: Any = patching.links(settings.zone_patch_key)
    for name in reversed(settings.zone_patch):
        rules = {name: rules}
    found: Rules = rules
    return found


def replace_endpoints(call: RedfishWrite) -> Started | Done:
    """The list given takes the place of the one there was: what is missing is detached, what is new attached.

    Raises RedfishError: 400 without the host port's own endpoint first, 409 for a device of another zone; nothing is
    begun.
    """
    port, settings = call.args[0], call.state.settings
    asked: Any = call.body
    for name in settings.zone_patch:
        asked = asked[name]
    named = [_endpoint(each[settings.zone_patch_key]) for each in asked]
    if named[:1] != [uris.endpoint(uris.host_endpoint(port))] or len(set(named)) != len(named):
        raise fail(400, "PropertyValueConflict", "Links/Endpoints", "the host port's endpoint, which comes first")
    wanted = [_device(call, uri) for uri in named[1:]]
    if any(row.port not in (None, port) or row.device in call.view.pending() for row in wanted):
        raise fail(409, "ResourceInUse")
    if wanted and (call.view.ports[port] is None or not all(row.link for row in wanted)):
        raise fail(409, "OperationFailed", "a link of the list is down")
    if any(row.device in call.state.ready for row in wanted):
        raise fail(409, "OperationFailed", "a device of the list is ready to be removed")
    keep = {row.device for row in wanted}
    begun = [detach(call, row.device) for row in call.view.on(port) if row.link and row.device not in keep]
    begun += [attach(call, row.device, port) for row in wanted if row.port is None]
    return Started(f"Replace the endpoints of zone {port}", tuple(begun), Done, call.uri) if begun else Done()


def _endpoint(name: str) -> str:
    return name if name.startswith("/") else uris.endpoint(name)


ROUTES = (
    RedfishRoute(URI, zones, listing=True),
    RedfishRoute(
        f"{URI}/{{port}}",
        zone,
        rules=patch_rules,
        patch=replace_endpoints,
        actions={ADD: add_endpoint, REMOVE: remove_endpoint},
    ),
)

"""The update service: what firmware there is."""

from __future__ import annotations

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.inventory import profile_of
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref

FIRMWARE = f"{uris.UPDATE}/FirmwareInventory"


def service(view: RedfishView) -> Body:
    """The update service; nothing can be updated."""
    return resource(
        "UpdateService",
        uris.UPDATE,
        "Update service",
        ServiceEnabled=True,
        Status=dict(OK),
        FirmwareInventory=ref(FIRMWARE),
    )


def inventory(view: RedfishView) -> Body:
    """The management processor's and the switch's firmware, and each GPU's VBIOS where it is known."""
    names = ["BMC", "Switch1", *(row.device for row in view.rows if profile_of(view, row.device))]
    return collection("SoftwareInventory", FIRMWARE, "Firmware", [f"{FIRMWARE}/{name}" for name in names])


def firmware(view: RedfishView, name: str) -> Body | None:
    """One image."""
    row = view.row(name)
    profile = profile_of(view, name) if row else None
    known = {"BMC": (uris.MANAGER, "1.0.0"), "Switch1": (uris.SWITCH, "1.0.0")}
    if profile is not None:
        known[name] = (view.device_uri(name), profile.vbios)
    if name not in known:
        return None
    uri, version = known[name]
    return resource(
        "SoftwareInventory",
        f"{FIRMWARE}/{name}",
        f"Firmware of {name}",
        Version=version,
        Updateable=False,
        Status=dict(OK),
        **links([uri], "RelatedItem"),
    )


ROUTES = (
    RedfishRoute(uris.UPDATE, service),
    RedfishRoute(FIRMWARE, inventory),
    RedfishRoute(f"{FIRMWARE}/{{image}}", firmware),
)

"""The update service: what firmware and software there is. None of it can be replaced."""

from __future__ import annotations

from mews import __version__
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.messages import RedfishError, RedfishMessage, fail
from mews.emulator.dialects.redfish.replies import PreparedReply
from mews.emulator.dialects.redfish.resources.chassis import MAKER
from mews.emulator.dialects.redfish.resources.inventory import profile_of
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.dialects.wire import Request

FIRMWARE, SOFTWARE = f"{uris.UPDATE}/FirmwareInventory", f"{uris.UPDATE}/SoftwareInventory"
PUSH = f"{uris.UPDATE}/Push"
SERVICE = "RedfishService"


def service(view: RedfishView) -> Body:
    """Return the update service; nothing can be updated."""
    return resource(
        "UpdateService",
        uris.UPDATE,
        "Update service",
        ServiceEnabled=True,
        Status=dict(OK),
        FirmwareInventory=ref(FIRMWARE),
        SoftwareInventory=ref(SOFTWARE),
        HttpPushUri=PUSH,
        HttpPushUriOptions={"HttpPushUriApplyTime": {"ApplyTime": "Immediate"}},
    )


def inventory(view: RedfishView) -> Body:
    """Return the management processor's and the switch's firmware, and each GPU's VBIOS where it is known."""
    names = ["BMC", "Switch1", *(row.device for row in view.rows if profile_of(view, row.device))]
    return collection("SoftwareInventory", FIRMWARE, "Firmware", [f"{FIRMWARE}/{name}" for name in names])


def firmware(view: RedfishView, name: str) -> Body | None:
    """Return one image."""
    row = view.row(name)
    profile = profile_of(view, name) if row else None
    known = {"BMC": (uris.MANAGER, "1.0.0", MAKER), "Switch1": (uris.SWITCH, "1.0.0", MAKER)}
    if profile is not None:
        known[name] = (view.device_uri(name), profile.vbios, "NVIDIA")
    if name not in known:
        return None
    uri, version, maker = known[name]
    return _image(f"{FIRMWARE}/{name}", f"Firmware of {name}", version, maker, uri)


def software(view: RedfishView) -> Body:
    """Return what runs beside firmware: this service."""
    return collection("SoftwareInventory", SOFTWARE, "Software", [f"{SOFTWARE}/{SERVICE}"])


def program(view: RedfishView, name: str) -> Body | None:
    """Return the service, by its version."""
    if name != SERVICE:
        return None
    return _image(f"{SOFTWARE}/{SERVICE}", "Redfish service", __version__, "Mews", uris.MANAGER)


def _image(home: str, name: str, version: str, maker: str, uri: str) -> Body:
    return resource(
        "SoftwareInventory",
        home,
        name,
        Version=version,
        Manufacturer=maker,
        Updateable=False,
        WriteProtected=True,
        Status=dict(OK),
        **links([uri], "RelatedItem"),
    )


def push(call: RedfishWrite) -> Done:
    """An image is refused: nothing takes one.

    Raises RedfishError: 400.
    """
    raise fail(400, "OperationFailed", "no component can be updated: each is WriteProtected")


def push_target(view: RedfishView) -> Body:
    """Return a stub of the place for images, which routing needs."""
    return {"@odata.id": PUSH}


def no_reading(view: RedfishView, request: Request, args: tuple[str, ...]) -> PreparedReply:
    """Images are sent there, and none is read.

    Raises RedfishError: 405.
    """
    raise RedfishError(405, (RedfishMessage("OperationNotAllowed"),), {"Allow": "POST"})


ROUTES = (
    RedfishRoute(uris.UPDATE, service),
    RedfishRoute(FIRMWARE, inventory),
    RedfishRoute(f"{FIRMWARE}/{{image}}", firmware),
    RedfishRoute(SOFTWARE, software),
    RedfishRoute(f"{SOFTWARE}/{{image}}", program),
    RedfishRoute(PUSH, push_target, post=push, privilege=MANAGER, answer=no_reading),
)

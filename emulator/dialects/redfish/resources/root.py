"""The service root."""

from __future__ import annotations

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.documents import SERVICES
from mews.emulator.dialects.redfish.query import FEATURES
from mews.emulator.dialects.redfish.route import Body, Route, resource
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.dialects.redfish.world import View


def service_root(view: View) -> Body:
    """``/redfish/v1/``."""
    body = resource(
        "ServiceRoot",
        f"{uris.ROOT}/",
        f"Chassis {view.name}",
        Id="RootService",
        RedfishVersion="1.22.0",
        UUID=view.world.uuid,
        Product="Falcon-class GPU chassis (emulated)",
        Vendor="Mews",
        ProtocolFeaturesSupported=dict(FEATURES),
        Links={"Sessions": ref(uris.SESSIONS), "ManagerProvidingService": ref(uris.MANAGER)},
    )
    return body | {_property(name): ref(uri) for name, uri in SERVICES.items()}


def _property(name: str) -> str:
    """The root has its own name for the task service."""
    return "Tasks" if name == "TaskService" else name


ROUTES = (Route(uris.ROOT, service_root),)

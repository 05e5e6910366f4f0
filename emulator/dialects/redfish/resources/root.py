"""The service root."""

from __future__ import annotations

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.documents import SERVICES
from mews.emulator.dialects.redfish.query import FEATURES
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref


def service_root(view: RedfishView) -> Body:
    """``/redfish/v1/``."""
    body = resource(
        "ServiceRoot",
        f"{uris.ROOT}/",
        f"Chassis {view.name}",
        Id="RootService",
        RedfishVersion="1.22.0",
        UUID=view.state.uuid,
        Product="Falcon-class GPU chassis (emulated)",
        Vendor="Mews",
        ProtocolFeaturesSupported=dict(FEATURES),
        Links={"Sessions": ref(uris.SESSIONS), "ManagerProvidingService": ref(uris.MANAGER)},
    )
    return body | {_property(name): ref(uri) for name, uri in SERVICES.items()}


def _property(name: str) -> str:
    """The root has its own name for the task service."""
    return "Tasks" if name == "TaskService" else name


ROUTES = (RedfishRoute(uris.ROOT, service_root),)

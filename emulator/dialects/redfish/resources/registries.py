"""The message registries in use, and where they are published."""

from __future__ import annotations

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView

URI = f"{uris.ROOT}/Registries"
REGISTRIES = {"Base": "1.19", "Fabric": "1.1", "ResourceEvent": "1.4", "TaskEvent": "1.0"}


def registries(view: RedfishView) -> Body:
    """All registries."""
    return collection("MessageRegistryFile", URI, "Registries", [f"{URI}/{name}" for name in REGISTRIES])


def registry(view: RedfishView, name: str) -> Body | None:
    """One registry."""
    if name not in REGISTRIES:
        return None
    version = REGISTRIES[name]
    published = f"https://redfish.dmtf.org/registries/{name}.{version}.0.json"
    return resource(
        "MessageRegistryFile",
        f"{URI}/{name}",
        f"Message registry {name}",
        Registry=f"{name}.{version}",
        Languages=["en"],
        Location=[{"Language": "en", "PublicationUri": published}],
    )


ROUTES = (RedfishRoute(URI, registries), RedfishRoute(f"{URI}/{{registry}}", registry))

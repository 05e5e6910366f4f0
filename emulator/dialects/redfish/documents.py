"""What everybody may read without a login, but for the service root: versions, the OData documents, OpenAPI's."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mews import __version__
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.messages import RedfishError, RedfishMessage
from mews.emulator.dialects.redfish.openapi import openapi
from mews.emulator.dialects.redfish.replies import PreparedReply
from mews.emulator.dialects.redfish.route import RedfishRoute
from mews.emulator.dialects.redfish.schemas import COLLECTIONS, SCHEMA_URL, VERSIONS

EDMX = "http://docs.oasis-open.org/odata/ns/edmx"
EDM = "http://docs.oasis-open.org/odata/ns/edm"

SERVICES = {
    "Systems": uris.SYSTEMS,
    "Chassis": uris.CHASSIS,
    "Managers": f"{uris.ROOT}/Managers",
    "Fabrics": f"{uris.ROOT}/Fabrics",
    "CompositionService": f"{uris.ROOT}/CompositionService",
    "TaskService": f"{uris.ROOT}/TaskService",
    "SessionService": f"{uris.ROOT}/SessionService",
    "AccountService": f"{uris.ROOT}/AccountService",
    "CertificateService": f"{uris.ROOT}/CertificateService",
    "EventService": f"{uris.ROOT}/EventService",
    "UpdateService": uris.UPDATE,
    "TelemetryService": uris.TELEMETRY,
    "Registries": f"{uris.ROOT}/Registries",
}
"""What the service root leads to."""

ALLOW = {"Allow": "GET, HEAD"}


def document(method: str, path: str, routes: Sequence[RedfishRoute]) -> PreparedReply | None:
    """Return the reply about one of those documents of a service with these routes; None for any other path.

    Raises RedfishError: 405.
    """
    if path not in ("/redfish", f"{uris.ROOT}/odata", f"{uris.ROOT}/$metadata", uris.OPENAPI):
        return None
    if method == "OPTIONS":
        return PreparedReply(204, None, ALLOW)
    if method not in ("GET", "HEAD"):
        raise RedfishError(405, (RedfishMessage("OperationNotAllowed"),), ALLOW)
    if path == "/redfish":
        return PreparedReply(200, {"v1": f"{uris.ROOT}/"}, ALLOW)
    if path.endswith("/odata"):
        return PreparedReply(200, _service_document(), ALLOW)
    if path == uris.OPENAPI:
        return PreparedReply(200, openapi(routes, __version__), {**ALLOW, "Content-Type": "application/yaml"})
    return PreparedReply(200, metadata(), {**ALLOW, "Content-Type": "application/xml; charset=utf-8"})


def _service_document() -> dict[str, object]:
    services = {"Service": f"{uris.ROOT}/", **SERVICES}
    values = [{"name": name, "kind": "Singleton", "url": uri} for name, uri in services.items()]
    return {"@odata.context": f"{uris.ROOT}/$metadata", "value": values}


def metadata() -> bytes:
    """``$metadata``: where each schema in use is published, and the service's entity container."""
    includes = {f"{name}_v1.xml": [name, f"{name}.{version}"] for name, version in VERSIONS.items()}
    includes |= {f"{name}_v1.xml": [name] for name in COLLECTIONS}
    includes["RedfishExtensions_v1.xml"] = ["RedfishExtensions.v1_0_0"]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<edmx:Edmx xmlns:edmx="{EDMX}" Version="4.0">']
    for file, namespaces in sorted(includes.items()):
        lines.append(f'  <edmx:Reference Uri="{escape(SCHEMA_URL)}/{escape(file)}">')
        lines += [f'    <edmx:Include Namespace="{escape(each)}"{_alias(each)}/>' for each in namespaces]
        lines.append("  </edmx:Reference>")
    container = f"ServiceRoot.{VERSIONS['ServiceRoot']}.ServiceContainer"
    lines += [
        "  <edmx:DataServices>",
        f'    <Schema xmlns="{EDM}" Namespace="Service">',
        f'      <EntityContainer Name="Service" Extends="{container}"/>',
        "    </Schema>",
        "  </edmx:DataServices>",
        "</edmx:Edmx>",
    ]
    return "\n".join(lines).encode()


def _alias(namespace: str) -> str:
    return ' Alias="Redfish"' if namespace == "RedfishExtensions.v1_0_0" else ""

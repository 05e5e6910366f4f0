"""The certificate service: the server's certificate can be read, and replaced by another with its key."""

from __future__ import annotations

from typing import Any

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, RedfishWrite, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done

SERVICE = f"{uris.ROOT}/CertificateService"
CERTIFICATES = f"{uris.MANAGER}/NetworkProtocol/HTTPS/Certificates"
CERTIFICATE = f"{CERTIFICATES}/1"
REPLACE = "CertificateService.ReplaceCertificate"
KINDS = ("PEM", "PEMchain")


def service(view: RedfishView) -> Body:
    """The certificate service."""
    action: dict[str, Any] = {
        "target": f"{SERVICE}/Actions/{REPLACE}",
        "CertificateType@Redfish.AllowableValues": list(KINDS),
    }
    return resource("CertificateService", SERVICE, "Certificate service", Actions={f"#{REPLACE}": action})


def certificates(view: RedfishView) -> Body | None:
    """The server's certificate, where TLS is spoken."""
    if view.state.certificate is None:
        return None
    return collection("Certificate", CERTIFICATES, "Certificates", [CERTIFICATE])


def certificate(view: RedfishView) -> Body | None:
    """The certificate, without its key."""
    text = view.state.certificate
    if text is None:
        return None
    return resource("Certificate", CERTIFICATE, "Server certificate", CertificateString=text, CertificateType="PEM")


def replace(call: RedfishWrite) -> Done:
    """Connections from now on see the new certificate; ``CertificateString`` holds its private key as well.

    Raises Failed: 400 for one that cannot be used, 409 where TLS is not spoken.
    """
    allowed = {"CertificateString", "CertificateType", "CertificateUri"}
    for name in call.body:
        if name not in allowed:
            raise fail(400, "ActionParameterUnknown", REPLACE, name)
    for name in sorted(allowed - set(call.body)):
        raise fail(400, "ActionParameterMissing", REPLACE, name)
    text, link = call.body["CertificateString"], call.body["CertificateUri"]
    if call.body["CertificateType"] not in KINDS:
        raise fail(
            400, "ActionParameterValueNotInList", str(call.body["CertificateType"])[:100], "CertificateType", REPLACE
        )
    if not isinstance(link, dict) or link.get("@odata.id") != CERTIFICATE or not isinstance(text, str):
        raise fail(400, "ActionParameterValueTypeError", "…", "CertificateUri or CertificateString", REPLACE)
    install = call.state.settings.install
    if install is None:
        raise fail(409, "OperationFailed", "the service does not speak TLS")
    try:
        call.state.certificate = install(text)
    except ValueError:
        raise fail(400, "ActionParameterValueConflict", "CertificateString", "…", "a certificate with key") from None
    call.state.touch(CERTIFICATE)
    return Done(204, None, {"Location": CERTIFICATE})


ROUTES = (
    RedfishRoute(SERVICE, service, privilege=MANAGER, actions={REPLACE: replace}),
    RedfishRoute(CERTIFICATES, certificates),
    RedfishRoute(CERTIFICATE, certificate),
)

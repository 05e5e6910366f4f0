"""The certificate service: the server's certificate can be read, and replaced by another: with its key, or with the key
of the last signing request."""

from __future__ import annotations

from typing import Any

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.tls import SUBJECT, signing_request

SERVICE = f"{uris.ROOT}/CertificateService"
CERTIFICATES = f"{uris.MANAGER}/NetworkProtocol/HTTPS/Certificates"
CERTIFICATE = f"{CERTIFICATES}/1"
LOCATIONS = f"{SERVICE}/CertificateLocations"
REPLACE, REQUEST = "CertificateService.ReplaceCertificate", "CertificateService.GenerateCSR"
PARAMETERS = f"{SERVICE}/GenerateCSRActionInfo"
ALGORITHM = "TPM_ALG_ECDSA"
"""Of the keys that signing requests come with, on the curve P-256."""
KINDS = ("PEM", "PEMchain")


def service(view: RedfishView) -> Body:
    """Return the certificate service."""
    action: dict[str, Any] = {
        "target": f"{SERVICE}/Actions/{REPLACE}",
        "CertificateType@Redfish.AllowableValues": list(KINDS),
    }
    request: dict[str, Any] = {
        "target": f"{SERVICE}/Actions/{REQUEST}",
        "@Redfish.ActionInfo": PARAMETERS,
    }
    return resource(
        "CertificateService",
        SERVICE,
        "Certificate service",
        CertificateLocations=ref(LOCATIONS),
        Actions={f"#{REPLACE}": action, f"#{REQUEST}": request},
    )


def parameters(view: RedfishView) -> Body:
    """Return what a signing request takes."""
    texts = [{"Name": name, "Required": name == "CommonName", "DataType": "String"} for name in SUBJECT]
    link = {"Name": "CertificateCollection", "Required": True, "DataType": "Object", "ObjectDataType": "#odata.idRef"}
    algorithm = {
        "Name": "KeyPairAlgorithm", "Required": False, "DataType": "String", "AllowableValues": [ALGORITHM],
    }  # fmt: skip
    names = {"Name": "AlternativeNames", "Required": False, "DataType": "StringArray"}
    return resource("ActionInfo", PARAMETERS, "Parameters of GenerateCSR", Parameters=[*texts, names, algorithm, link])


def locations(view: RedfishView) -> Body:
    """Return where certificates are: at most one."""
    found = [] if view.state.certificate is None else [CERTIFICATE]
    return resource("CertificateLocations", LOCATIONS, "Certificates", Links=links(found, "Certificates"))


def certificates(view: RedfishView) -> Body | None:
    """Return the server's certificate, where TLS is spoken."""
    if view.state.certificate is None:
        return None
    return collection("Certificate", CERTIFICATES, "Certificates", [CERTIFICATE])


def certificate(view: RedfishView) -> Body | None:
    """Return the certificate, without its key."""
    text = view.state.certificate
    if text is None:
        return None
    return resource(
        "Certificate",
        CERTIFICATE,
        "Server certificate",
        CertificateString=text,
        CertificateType="PEM",
        CertificateUsageTypes=["Web"],
    )


def replace(call: RedfishWrite) -> Done:
    """Connections from now on see the new certificate; ``CertificateString`` holds its private key as well, unless it
    was issued upon the last signing request.

    Raises RedfishError: 400 for one that cannot be used, 409 where TLS is not spoken.
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
    if "PRIVATE KEY" not in text:
        text += f"\n{call.state.signing_key}"
    try:
        call.state.certificate = install(text)
    except ValueError:
        raise fail(400, "ActionParameterValueConflict", "CertificateString", "…", "a certificate with key") from None
    call.state.touch(CERTIFICATE)
    return Done(204, None, {"Location": CERTIFICATE})


# Complex: each parameter is refused in another form.
def request(call: RedfishWrite) -> Done:  # noqa: C901
    """Return a signing request for the server's certificate; its key stays here.

    Raises RedfishError: 400 for parameters that cannot be used.
    """
    body = call.body
    known = {*SUBJECT, "AlternativeNames", "CertificateCollection", "KeyPairAlgorithm"}
    for name in body:
        if name not in known:
            raise fail(400, "ActionParameterUnknown", REQUEST, name[:100])
    for name in ("CommonName", "CertificateCollection"):
        if name not in body:
            raise fail(400, "ActionParameterMissing", REQUEST, name)
    if body.get("KeyPairAlgorithm", ALGORITHM) != ALGORITHM:
        raise fail(
            400, "ActionParameterValueNotInList", str(body["KeyPairAlgorithm"])[:100], "KeyPairAlgorithm", REQUEST
        )
    names, link = body.get("AlternativeNames", []), body["CertificateCollection"]
    if not isinstance(link, dict) or link.get("@odata.id") != CERTIFICATES:
        raise fail(400, "ActionParameterValueTypeError", str(link)[:100], "CertificateCollection", REQUEST)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise fail(400, "ActionParameterValueTypeError", str(names)[:100], "AlternativeNames", REQUEST)
    for name in SUBJECT:
        if not isinstance(body.get(name, ""), str):
            raise fail(400, "ActionParameterValueTypeError", str(body[name])[:100], name, REQUEST)
    subject = {name: body[name] for name in SUBJECT if body.get(name)}
    try:
        text, call.state.signing_key = signing_request(subject, names)
    except ValueError:
        raise fail(400, "ActionParameterValueConflict", "a subject", "…", "what a certificate can hold") from None
    return Done(200, {"CSRString": text, "CertificateCollection": ref(CERTIFICATES)})


ROUTES = (
    RedfishRoute(SERVICE, service, privilege=MANAGER, actions={REPLACE: replace, REQUEST: request}),
    RedfishRoute(LOCATIONS, locations),
    RedfishRoute(PARAMETERS, parameters),
    RedfishRoute(CERTIFICATES, certificates),
    RedfishRoute(CERTIFICATE, certificate),
)

"""CertificateApproval, CertificateSigning, CertificateSubjectRestriction (plugin/pkg/admission/certificates)."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, handles, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import MASTERS
from mews.kube.emulated.packs.access.authorization import Attributes, Authorizer

_GROUP = "certificates.k8s.io"
_CLIENTS = "kubernetes.io/kube-apiserver-client"
_ORGANIZATION = bytes.fromhex("060355040a")
"""The object identifier of an organization's name, in DER."""


def _may(store: Store, attributes: AdmissionAttributes, verb: str, signer: str) -> bool:
    """Return whether the user may do that for a signer, by its name or by its domain."""
    domain = signer.partition("/")[0]
    authorizer = Authorizer(store)
    return any(
        authorizer.decide(attributes.user, Attributes(verb, _GROUP, "signers", name=name)).allowed
        for name in (signer, f"{domain}/*")
    )


def _check_approval(store: Store, attributes: AdmissionAttributes) -> None:
    signer = ((attributes.old or {}).get("spec") or {}).get("signerName", "")
    if not _may(store, attributes, "approve", signer):
        raise refused(attributes, f'user not permitted to approve requests with signerName "{signer}"')


APPROVAL = AdmissionPlugin(
    "CertificateApproval",
    handles("certificatesigningrequests", AdmissionOperation.UPDATE, group=_GROUP, subresources=("approval",)),
    validate=_check_approval,
)


def _signed(csr: Object | None) -> Any:
    status = (csr or {}).get("status") or {}
    failed = [each for each in status.get("conditions") or () if each.get("type") == "Failed"]
    return status.get("certificate"), failed


def _check_signing(store: Store, attributes: AdmissionAttributes) -> None:
    if _signed(attributes.old) == _signed(attributes.obj):
        return
    signer = ((attributes.old or {}).get("spec") or {}).get("signerName", "")
    if not _may(store, attributes, "sign", signer):
        raise refused(attributes, f'user not permitted to sign requests with signerName "{signer}"')


SIGNING = AdmissionPlugin(
    "CertificateSigning",
    handles("certificatesigningrequests", AdmissionOperation.UPDATE, group=_GROUP, subresources=("status",)),
    validate=_check_signing,
)


def _check_subject(_store: Store, attributes: AdmissionAttributes) -> None:
    assert attributes.obj is not None
    spec = attributes.obj["spec"]
    if spec.get("signerName") == _CLIENTS and MASTERS in organizations(spec.get("request", "")):
        raise refused(attributes, f"use of {_CLIENTS} signer with {MASTERS} group is not allowed")


SUBJECT_RESTRICTION = AdmissionPlugin(
    "CertificateSubjectRestriction",
    handles("certificatesigningrequests", AdmissionOperation.CREATE, group=_GROUP),
    validate=_check_subject,
)


def organizations(request: str) -> list[str]:
    """Return the organizations in a certificate request's subject (base64 of PEM); none for what cannot be read."""
    try:
        pem = base64.b64decode(request).decode("ascii")
        body = "".join(line for line in pem.splitlines() if line and not line.startswith("-----"))
        der = base64.b64decode(body)
    except (binascii.Error, ValueError):
        return []
    found, start = [], der.find(_ORGANIZATION)
    while start >= 0:
        value = start + len(_ORGANIZATION)
        if value + 2 <= len(der) and der[value + 1] < 0x80:
            found.append(der[value + 2 : value + 2 + der[value + 1]].decode("utf-8", "replace"))
        start = der.find(_ORGANIZATION, value)
    return found

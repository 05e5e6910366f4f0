"""PodCertificateRequests."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, labels_text, spec_of, status_of

_STATES = ("Issued", "Denied", "Failed")


def _pod_certificate_request(obj: Object, _: float) -> Row:
    """Later releases have a last column."""
    spec, state = spec_of(obj), "Pending"
    for condition in status_of(obj).get("conditions") or ():
        state = condition["type"] if condition["type"] in _STATES else state
    names = [spec.get(name, "") for name in ("podName", "serviceAccountName", "nodeName", "signerName")]
    return [*names, state, labels_text(spec.get("unverifiedUserAnnotations"))]


RULES = Rules(printer=Printer(_pod_certificate_request, is_part=True))

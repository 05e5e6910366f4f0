"""ClusterTrustBundles."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of


def _trust_bundle(obj: Object, _: float) -> Row:
    return [spec_of(obj).get("signerName") or "<none>"]


RULES = Rules(printer=Printer(_trust_bundle, is_part=True))

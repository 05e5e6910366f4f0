"""LeaseCandidates."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of


def _lease_candidate(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    return [spec.get("leaseName", ""), spec.get("binaryVersion", ""), spec.get("emulationVersion", "")]


RULES = Rules(printer=Printer(_lease_candidate, is_part=True))

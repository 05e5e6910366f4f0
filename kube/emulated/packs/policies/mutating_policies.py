"""MutatingAdmissionPolicies."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, parameter_kind, spec_of


def _mutating_policy(obj: Object, _: float) -> Row:
    return [len(spec_of(obj).get("mutations") or ()), parameter_kind(obj)]


RULES = Rules(printer=Printer(_mutating_policy, is_part=True))

"""MutatingAdmissionPolicyBindings."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, selector_text, spec_of


def _mutating_binding(obj: Object, _: float) -> Row:
    spec, parameters = spec_of(obj), spec_of(obj).get("paramRef") or {}
    named = "<unset>"
    if parameters.get("name"):
        named = f"{parameters.get('namespace') or '*'}/{parameters['name']}"
    elif parameters.get("selector") is not None:
        named = selector_text(parameters["selector"])
    return [spec.get("policyName", ""), named]


RULES = Rules(printer=Printer(_mutating_binding, is_part=True))

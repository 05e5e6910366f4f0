"""PodDisruptionBudgets (pkg/apis/policy/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of


def _budget_errors(budget: Object) -> list[FieldError]:
    spec, found = budget.get("spec") or {}, []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        found.append(refusals.bad("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            found += common.percent_or_count(f"spec.{name}", spec[name])
            found += common.at_most_everything(f"spec.{name}", spec[name])
    found += selector_errors(spec.get("selector") or {}, "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    allowed = ("AlwaysAllow", "IfHealthyBudget")
    return found + ([] if policy is None else common.option("spec.unhealthyPodEvictionPolicy", policy, allowed))


def _budget_status_errors(new: Object, _: Object) -> list[FieldError]:
    status = new.get("status") or {}
    found = [*common.conditions("status.conditions", status.get("conditions") or ())]
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        found += common.not_negative(f"status.{name}", status.get(name))
    return found


def _budget(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    wanted = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [*wanted, status_of(obj).get("disruptionsAllowed", 0)]


RULES = Rules(
    printer=Printer(_budget, is_part=True),
    validate=_budget_errors,
    validate_status_update=_budget_status_errors,
    metadata=MetadataChecks(on_create=False, on_update=(), on_status=()),
)

"""Leases: how long one lasts, how often it changed hands, who may take it (pkg/apis/coordination/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules import checks
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_STRATEGIES = ("OldestEmulationVersion",)


def _validate(lease: Object) -> list[FieldError]:
    spec, found = lease.get("spec") or {}, []
    duration, strategy = spec.get("leaseDurationSeconds"), spec.get("strategy")
    if duration is not None and duration <= 0:
        found.append(refusals.bad("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    found += checks.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
    if strategy is not None and "/" not in strategy:
        found += checks.option("spec.strategy.strategy", strategy, _STRATEGIES)
    elif strategy is not None:
        found += names.qualified_faults("spec.strategy.strategy", strategy)
    if spec.get("preferredHolder") and not strategy:
        text = "may only be specified if `strategy` is defined"
        found.append(refusals.forbidden_field("spec.preferredHolder", text))
    return found


RULES = Rules(validate=_validate)

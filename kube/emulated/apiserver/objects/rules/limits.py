"""Rules of what limits others: quotas, limit ranges, disruption budgets, autoscalers, network policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.quantities import parse
from mews.kube.emulated.apiserver.objects.rules import checks
from mews.kube.emulated.apiserver.objects.rules.affinity_faults import selector_faults
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_COUNTED = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_MEASURED = ("cpu", "memory", "ephemeral-storage", "storage")
_NOT_NEGATIVE = "must be greater than or equal to 0"


def _quota_faults(quota: Object) -> list[FieldError]:
    found = []
    for name, amount in (quota["spec"].get("hard") or {}).items():
        path = f"spec.hard[{name}]"
        if not _is_limited(name):
            found.append(refusals.bad(path, name, "must be a standard resource type or fully qualified"))
            found.append(refusals.bad(path, name, "must be a standard resource for quota"))
        elif parse(amount) < 0:
            found.append(refusals.bad(path, amount, _NOT_NEGATIVE))
        elif (name in _COUNTED or name.startswith("count/")) and parse(amount) != parse(amount).to_integral_value():
            found.append(refusals.bad(path, amount, "must be an integer"))
    for expression in (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or ():
        found += _scope_faults(expression, "spec.scopeSelector.matchExpressions")
    return found


_SCOPES = (
    *("BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating"),
    "VolumeAttributesClass",
)
_SCOPE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def _scope_faults(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """What is wrong with a scope that a quota selects (upstream validateScopedResourceSelectorRequirement)."""
    scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
    values = expression.get("values") or []
    if scope not in _SCOPES:
        yield refusals.bad(f"{path}.scopeName", scope, "unsupported scope")
    elif scope not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
        text = "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
        text += "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
        yield refusals.bad(f"{path}.operator", operator, f"{text}ResourceQuotaScopeCrossNamespacePodAffinity")
    if operator in ("In", "NotIn") and not values:
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        yield refusals.required(f"{path}.values", text)
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector"
        yield refusals.bad(f"{path}.values", values, text)
    elif operator not in _SCOPE_OPERATORS:
        yield refusals.bad(f"{path}.operator", operator, "not a valid selector operator")


def _is_limited(name: str) -> bool:
    base = name.removeprefix("requests.").removeprefix("limits.")
    return "/" in name or name in _COUNTED or base in _MEASURED or base.startswith("hugepages-")


def _default_limits(limits: Object) -> None:
    for item in limits["spec"].get("limits") or ():
        if item.get("type") != "Container":
            continue
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        item.update({name: amounts for name, amounts in (("default", default), ("defaultRequest", request)) if amounts})


_LIMITING = ("min", "max", "default", "defaultRequest")
_ORDERED = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""(not more, than this, the field that is told, the text)."""


def _limit_faults(limits: Object) -> list[FieldError]:
    found = []
    for index, item in enumerate(limits["spec"].get("limits") or ()):
        names = sorted({name for field in _LIMITING for name in item.get(field) or ()})
        for name in names:
            for low, high, key, text in _ORDERED:
                less, more = (item.get(low) or {}).get(name), (item.get(high) or {}).get(name)
                if less is not None and more is not None and parse(less) > parse(more):
                    shown = item[key][name] if low != "min" or key == "defaultRequest" else less
                    path = f"spec.limits[{index}].{key}[{name}]"
                    found.append(refusals.bad(path, shown, text.format(less, more)))
    return found


def _budget_faults(budget: Object) -> list[FieldError]:
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
            found += checks.percent_or_count(f"spec.{name}", spec[name])
            found += checks.at_most_everything(f"spec.{name}", spec[name])
    found += selector_faults(spec.get("selector") or {}, "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    allowed = ("AlwaysAllow", "IfHealthyBudget")
    return found + ([] if policy is None else checks.option("spec.unhealthyPodEvictionPolicy", policy, allowed))


def _budget_status_faults(new: Object, _: Object) -> list[FieldError]:
    status = new.get("status") or {}
    found = [*checks.conditions("status.conditions", status.get("conditions") or ())]
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        found += checks.not_negative(f"status.{name}", status.get(name))
    return found


QUOTAS = Rules(validate=_quota_faults)
LIMIT_RANGES = Rules(default=_default_limits, validate=_limit_faults)
BUDGETS = Rules(validate=_budget_faults, validate_status=_budget_status_faults)

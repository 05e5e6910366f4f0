"""Rules of what limits others: quotas, limit ranges, disruption budgets, autoscalers, network policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.quantities import parse
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.pod_faults import selector_faults
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_COUNTED = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_MEASURED = ("cpu", "memory", "ephemeral-storage", "storage")
_NOT_NEGATIVE = "must be greater than or equal to 0"
_DEFAULT_USE = 80


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
    spec = budget.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        found = [refusals.bad("spec", shown, "minAvailable and maxUnavailable cannot be both set")]
        return [*found, *selector_faults(spec.get("selector") or {}, "spec.selector")]
    found = [
        refusals.bad(f"spec.{name}", spec[name], _NOT_NEGATIVE)
        for name in ("minAvailable", "maxUnavailable")
        if isinstance(spec.get(name), int) and spec[name] < 0
    ]
    return [*found, *selector_faults(spec.get("selector") or {}, "spec.selector")]


def _default_autoscaler(scaler: Object) -> None:
    spec = scaler["spec"]
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _DEFAULT_USE}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _autoscaler_faults(scaler: Object) -> list[FieldError]:
    return [*_autoscaler(scaler["spec"])]


def _autoscaler(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    low, high, target = spec.get("minReplicas", 1), spec.get("maxReplicas", 0), spec.get("scaleTargetRef") or {}
    if low < 1:
        yield refusals.bad("spec.minReplicas", low, "must be greater than or equal to 1")
    if high < 1:
        yield refusals.bad("spec.maxReplicas", high, "must be greater than 0")
    elif high < low:
        yield refusals.bad("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    for name in ("kind", "name"):
        if not target.get(name):
            yield refusals.required(f"spec.scaleTargetRef.{name}")
    version = target.get("apiVersion", "")
    if "/" not in version and target.get("kind") != "ReplicationController":
        yield refusals.bad("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")


def _default_policy(policy: Object) -> None:
    spec = policy["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _policy_faults(policy: Object) -> list[FieldError]:
    spec = policy["spec"]
    found = [*selector_faults(spec.get("podSelector") or {}, "spec.podSelector")]
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(spec.get(rules) or ()):
            for index, peer in enumerate(rule.get(peers) or ()):
                for name in ("podSelector", "namespaceSelector"):
                    path = f"spec.{rules}[{number}].{peers}[{index}].{name}"
                    found += selector_faults(peer.get(name) or {}, path)
    return found


QUOTAS = Rules(validate=_quota_faults)
LIMIT_RANGES = Rules(default=_default_limits, validate=_limit_faults)
BUDGETS = Rules(validate=_budget_faults)
AUTOSCALERS = Rules(default=_default_autoscaler, validate=_autoscaler_faults)
NETWORK_POLICIES = Rules(default=_default_policy, validate=_policy_faults)

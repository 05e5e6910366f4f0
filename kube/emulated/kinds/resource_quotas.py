"""Rules of quotas: what they may count, and in which scopes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.quantities import parse
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, status_of
from mews.kube.emulated.kinds.pods.resource_errors import is_extended, plain_resource_name_errors

_COUNTED = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_COMPUTED = ("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")
_STORED = ("requests.storage", "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage")
_NOT_NEGATIVE = "must be greater than or equal to 0"


def _is_limited(name: str) -> bool:
    huge = name.removeprefix("requests.").startswith("hugepages-")
    return huge or name in (*_COUNTED, *_COMPUTED, *_STORED)


def _amounts_errors(amounts: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name, amount in amounts.items():
        here = f"{path}[{name}]"
        yield from plain_resource_name_errors(name, here)
        if "/" not in name and not _is_limited(name):
            yield refusals.bad(here, name, "must be a standard resource for quota")
        if parse(amount) < 0:
            yield refusals.bad(here, amount, _NOT_NEGATIVE)
        whole = name in _COUNTED or name.startswith("count/") or is_extended(name)
        if whole and parse(amount) != parse(amount).to_integral_value():
            yield refusals.bad(here, amount, "must be an integer")


def _quota_errors(quota: Object) -> list[FieldError]:
    spec = quota.get("spec") or {}
    return [*_amounts_errors(spec.get("hard") or {}, "spec.hard"), *_scopes_errors(spec), *_selector_errors(spec)]


def _compare(new: Object, old: Object) -> list[FieldError]:
    scopes, before = ((obj.get("spec") or {}).get("scopes") or [] for obj in (new, old))
    if set(scopes) == set(before):
        return []
    return [refusals.bad("spec.scopes", scopes or None, "field is immutable")]


def _status_errors(new: Object, _: Object) -> list[FieldError]:
    status = new.get("status") or {}
    return [error for name in ("hard", "used") for error in _amounts_errors(status.get(name) or {}, f"status.{name}")]


_SCOPES = (
    *("BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating"),
    "VolumeAttributesClass",
)
_SCOPE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_OF_PODS = ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")


def _fits(scope: str, name: str) -> bool:
    """Return whether a scope can hold of what is counted under that name."""
    if not _is_limited(name):
        return True
    if scope in _OF_PODS:
        return name == "pods" or name in _COMPUTED
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return True


def _scopes_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    scopes, path = spec.get("scopes") or [], "spec.scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            yield refusals.bad(path, scopes, "unsupported scope")
        for name in sorted(spec.get("hard") or {}):
            if not _fits(scope, name):
                yield refusals.bad(path, scopes, "unsupported scope applied to resource")
    yield from _conflict_errors(scopes, scopes)


def _conflict_errors(given: Sequence[str], scopes: Sequence[str]) -> Iterator[FieldError]:
    for pair in _OPPOSITES:
        if pair <= set(given):
            yield refusals.bad("spec.scopes", scopes or None, "conflicting scopes")


def _selector_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    selector, path = spec.get("scopeSelector") or {}, "spec.scopeSelector.matchExpressions"
    expressions = selector.get("matchExpressions") or ()
    shown = {"MatchExpressions": [_shown(expression) for expression in expressions]}
    for expression in expressions:
        scope = expression.get("scopeName", "")
        if scope not in _SCOPES:
            yield refusals.bad(f"{path}.scopeName", scope, "unsupported scope")
        for name in sorted(spec.get("hard") or {}):
            if not _fits(scope, name):
                yield refusals.bad(path, shown, "unsupported scope applied to resource")
        yield from _operator_errors(expression, path)
    yield from _conflict_errors(
        [expression.get("scopeName", "") for expression in expressions], spec.get("scopes") or []
    )


def _shown(expression: Mapping[str, Any]) -> dict[str, Any]:
    values = expression.get("values")
    return {"ScopeName": expression.get("scopeName", ""), "Operator": expression.get("operator", ""), "Values": values}


def _operator_errors(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
    values = expression.get("values") or []
    if scope in _SCOPES and scope not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
        text = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
        text += "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
        yield refusals.bad(f"{path}.operator", operator, f"{text}ResourceQuotaScopeCrossNamespacePodAffinity")
    if operator in ("In", "NotIn"):
        if not values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield refusals.required(f"{path}.values", text)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield refusals.bad(f"{path}.values", values, text)
    else:
        yield refusals.bad(f"{path}.operator", operator, "not a valid selector operator")


def _quota(obj: Object, _: float) -> Row:
    hard, used = status_of(obj).get("hard") or {}, status_of(obj).get("used") or {}
    texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [name for name in texts if name.startswith("limits.")]
    requests = [name for name in texts if name not in limits]
    return [", ".join(texts[name] for name in names) for names in (requests, limits)]


RULES = Rules(
    printer=Printer(_quota, is_part=True),
    validate=_quota_errors,
    compare=_compare,
    validate_status_update=_status_errors,
)

"""What an object uses of a namespace's quotas, by the one rule that admission and the quota controller share.

Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core (pods, services, persistent_volume_claims, resource_claims) and
pkg/quota/v1/generic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from mews.kube.api.claim_quota import devices_by_class
from mews.kube.api.objects import Object, is_terminal
from mews.kube.api.pod_requests import amounts_named, limits_of, overhead_of, pod_amount, pod_limit
from mews.kube.api.quantities import canonical, parse

Usage = Mapping[str, Decimal]
"""Amounts by the name that a quota has for them: ``pods``, ``requests.cpu``, ``count/jobs.batch``."""

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_COUNTED_BY_NAME = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
_ONE = Decimal(1)


def usage_of(group: str, plural: str, obj: Object) -> dict[str, Decimal]:
    """Return what an object uses; every kind counts as ``count/<plural>.<group>``."""
    found = {f"count/{plural}.{group}" if group else f"count/{plural}": _ONE}
    if (group, plural) == ("resource.k8s.io", "resourceclaims"):
        return {**found, **devices_by_class(obj)}
    if group:
        return found
    if plural in _COUNTED_BY_NAME:
        found[plural] = _ONE
    elif plural == "pods":
        found |= _of_pod(obj)
    elif plural == "services":
        found |= _of_service(obj)
    elif plural == "persistentvolumeclaims":
        found |= _of_claim(obj)
    return found


def _of_pod(pod: Object) -> dict[str, Decimal]:
    if is_terminal(pod):
        return {}
    found = {"pods": _ONE}
    for name in {**amounts_named(pod, "requests"), **overhead_of(pod)}:
        amount = pod_amount(pod, name, parse)
        if name in _PLAIN or name.startswith("hugepages-"):
            found[name] = amount
        found[f"requests.{name}"] = amount
    for name in amounts_named(pod, "limits"):
        found[f"limits.{name}"] = pod_limit(pod, name, parse)
    return found


def _containers(pod: Object) -> Iterator[Mapping[str, Any]]:
    spec = pod.get("spec") or {}
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _of_service(service: Object) -> dict[str, Decimal]:
    spec = service.get("spec") or {}
    ports = len(spec.get("ports") or ())
    found = {"services": _ONE, "services.nodeports": Decimal(), "services.loadbalancers": Decimal()}
    if spec.get("type") == "NodePort":
        found["services.nodeports"] = Decimal(ports)
    elif spec.get("type") == "LoadBalancer":
        found["services.loadbalancers"] = _ONE
        allocated = spec.get("allocateLoadBalancerNodePorts", True)
        given = sum(1 for port in spec.get("ports") or () if port.get("nodePort"))
        found["services.nodeports"] = Decimal(ports if allocated else given)
    return found


def _of_claim(claim: Object) -> dict[str, Decimal]:
    spec = claim.get("spec") or {}
    size = parse(((spec.get("resources") or {}).get("requests") or {}).get("storage", 0))
    found = {"persistentvolumeclaims": _ONE, "requests.storage": size}
    name = (claim["metadata"].get("annotations") or {}).get(
        "volume.beta.kubernetes.io/storage-class", spec.get("storageClassName")
    )
    if name:
        below = f"{name}.storageclass.storage.k8s.io"
        found[f"{below}/persistentvolumeclaims"] = _ONE
        found[f"{below}/requests.storage"] = size
    return found


def required_by_pod(pod: Object, hard: Mapping[str, str]) -> dict[str, list[str]]:
    """Containers of a pod, by what of the quota's cpu and memory they do not say."""
    missing: dict[str, list[str]] = {}
    for name in hard:
        field, _, resource = name.rpartition(".")
        if resource not in ("cpu", "memory") or field not in ("", "requests", "limits"):
            continue
        for container in _containers(pod):
            amounts = limits_of(container) if field == "limits" else (container.get("resources") or {}).get("requests")
            if resource not in (amounts or {}):
                missing.setdefault(name, []).append(str(container.get("name", "")))
    return {name: sorted(names) for name, names in missing.items()}


_BINARY = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def amount_text(amount: Decimal, *, binary: bool) -> str:
    """Return an amount as a quota shows it, in binary suffixes where what it was summed up from has them."""
    if binary and amount and amount == amount.to_integral_value():
        for suffix, power in _BINARY:
            if amount % (1 << power) == 0:
                return f"{int(amount) >> power}{suffix}"
    return canonical(format(amount, "f"))


def is_binary(obj: Object | None, name: str) -> bool:
    """Return whether an object's amount of what a quota names is written in binary suffixes."""
    field, _, resource = name.rpartition(".")
    if name == "requests.storage":
        holders = [((obj or {}).get("spec") or {}).get("resources") or {}]
    else:
        holders = [each.get("resources") or {} for each in _containers(obj or {})]
    for holder in holders:
        text = (holder.get("limits" if field == "limits" else "requests") or {}).get(resource)
        if text is not None and parse(text):
            return str(text).endswith("i")
    return False


def is_used_by_pods(name: str) -> bool:
    """Return whether pods use what a quota names."""
    return (
        name in ("pods", "count/pods", *_PLAIN)
        or name.startswith("hugepages-")
        or (name.startswith(("requests.", "limits.")) and name != "requests.storage")
    )


# Scopes


def matches_scopes(spec: Mapping[str, Any], plural: str, obj: Object) -> bool:
    """Return whether all of a quota's scopes hold for an object; a quota with scopes counts pods only, or claims by
    class."""
    expressions = [
        *({"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()),
        *((spec.get("scopeSelector") or {}).get("matchExpressions") or ()),
    ]
    if not expressions:
        return True
    return plural in ("pods", "persistentvolumeclaims") and all(_scope_holds(each, plural, obj) for each in expressions)


def _scope_holds(expression: Mapping[str, Any], plural: str, obj: Object) -> bool:
    spec = obj.get("spec") or {}
    name = expression.get("scopeName")
    if plural != "pods":
        return name == "VolumeAttributesClass" and _selects(expression, spec.get("volumeAttributesClassName"))
    match name:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(obj)
        case "NotBestEffort":
            return not _is_best_effort(obj)
        case "PriorityClass":
            return _selects(expression, spec.get("priorityClassName"))
        case "CrossNamespacePodAffinity":
            return any(_crosses(spec.get("affinity") or {}))
    return False


def _selects(expression: Mapping[str, Any], value: str | None) -> bool:
    values = expression.get("values") or []
    match expression.get("operator"):
        case "Exists":
            return bool(value)
        case "DoesNotExist":
            return not value
        case "In":
            return value in values
        case "NotIn":
            return value not in values
    return False


def _is_best_effort(pod: Object) -> bool:
    for container in _containers(pod):
        resources = container.get("resources") or {}
        for field in ("requests", "limits"):
            amounts = resources.get(field) or {}
            if any(parse(amounts.get(name, 0)) for name in ("cpu", "memory")):
                return False
    return True


def _crosses(affinity: Mapping[str, Any]) -> Iterator[bool]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*required, *(each.get("podAffinityTerm") or {} for each in preferred)):
            yield bool(term.get("namespaces")) or term.get("namespaceSelector") is not None

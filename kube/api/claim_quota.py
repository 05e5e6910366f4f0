"""What resource claims use of quotas: devices by their class, and the extended resources for which the class stands.

Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/resource_claims.go, 1.34 and (for extended resources) 1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from mews.kube.api.extended_resources import CLASS_PREFIX, may_be_a_class
from mews.kube.api.objects import Object, name_of, uid_of
from mews.kube.api.resource_claims import extended_claim_name, owns

PER_CLASS = ".deviceclass.resource.k8s.io/devices"
"""After the name of a class: its devices, in quotas."""
REQUESTS = "requests."
_EXTENDED = "resource.kubernetes.io/extended-resource-claim"
_MOST_DEVICES = 32
"""Of a claim: what one that asks for all devices counts (AllocationResultsMaxSize)."""

ClassResources = Mapping[str, str]
"""Device class -> its extended resource, "" where it has none but the implicit one."""


def class_resources(classes: Iterable[Object]) -> ClassResources:
    """Return those of all classes; where the feature is off no class has a resource of its own."""
    return {name_of(each): str((each.get("spec") or {}).get("extendedResourceName") or "") for each in classes}


def devices_by_class(claim: Object) -> dict[str, Decimal]:
    """Return the devices that a claim asks for, by the names that quotas have for them: of alternatives the most of
    each class."""
    found: dict[str, Decimal] = {}
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        most: dict[str, Decimal] = {}
        for each in request.get("firstAvailable") or filter(None, [request.get("exactly")]):
            name = f"{each.get('deviceClassName', '')}{PER_CLASS}"
            most[name] = max(most.get(name, Decimal()), _count(each))
        for name, count in most.items():
            found[name] = found.get(name, Decimal()) + count
    return found


def _count(request: Mapping[str, Any]) -> Decimal:
    mode = request.get("allocationMode", "ExactCount")
    if mode == "All":
        return Decimal(_MOST_DEVICES)
    return Decimal(request.get("count", 1)) if mode == "ExactCount" else Decimal()


def extended_usage(claim: Object, resources: ClassResources, pod_usage: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Return the extended resources that a claim uses, as ``requests.NAME``; without what its pod is counted for
    already."""
    found: dict[str, Decimal] = {}
    for name, count in devices_by_class(claim).items():
        class_name = name.removesuffix(PER_CLASS)
        if class_name not in resources:
            continue
        for resource in filter(None, (f"{CLASS_PREFIX}{class_name}", resources[class_name])):
            left = count - pod_usage.get(f"{REQUESTS}{resource}", Decimal())
            if left > 0:
                found[f"{REQUESTS}{resource}"] = left
    return found


def is_used_by_claims(name: str, resources: ClassResources) -> bool:
    """Return whether claims use what a quota names."""
    if name.endswith(PER_CLASS):
        return True
    resource = name.removeprefix(REQUESTS)
    if resource == name or not may_be_a_class(resource):
        return False
    return resource in resources.values() or resource.removeprefix(CLASS_PREFIX) in resources


def pod_name_of(claim: Object) -> str:
    """Return the pod for whose extended resources a claim was made, "" where it was made for none."""
    metadata = claim["metadata"]
    if (metadata.get("annotations") or {}).get(_EXTENDED) != "true":
        return ""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner["name"]) if (owner.get("kind"), owner.get("apiVersion")) == ("Pod", "v1") else ""
    return ""


def stands_for(claim: Object, pod: Object | None, claims: Iterable[Object]) -> bool:
    """Return whether a claim is the one of the pod's extended resources, whose devices the pod is counted for: the one
    that its status names, or the first of those that were made for it. ``claims``: all of the namespace."""
    if pod is None or not owns(uid_of(pod), claim):
        return False
    if named := extended_claim_name(pod):
        return named == name_of(claim)
    return not any(
        pod_name_of(other) and owns(uid_of(pod), other) and _order(other) < _order(claim) for other in claims
    )


def _order(claim: Object) -> tuple[str, str]:
    metadata = claim["metadata"]
    return str(metadata.get("creationTimestamp", "")), str(metadata.get("name", ""))

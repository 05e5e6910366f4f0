"""What a pod asks for as a whole, its quality of service, and how both may change while it runs.

Upstream: SetDefaults_Pod (pkg/apis/core/v1/defaults.go), pkg/apis/core/helper/qos, and validatePodResourceConsistency
and ValidatePodResize of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from mews.kube.api.objects import Object, clone, containers_of, init_containers_of
from mews.kube.api.pod_requests import HUGE_PAGES, containers_amount, is_of_the_whole, is_sidecar, limits_of
from mews.kube.api.quantities import parse, total_text
from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.resource_errors import pod_resource_name_errors, resource_errors

Spec = Mapping[str, Any]
_Of = Callable[[Mapping[str, Any]], Mapping[str, Any]]

MIRROR = "kubernetes.io/config.mirror"
_OF_QUALITY = ("cpu", "memory")
_LISTS = ("containers", "initContainers")
_ORDER = ("initContainers", "containers")


def _requests_of(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return them as written: templates have no requests yet that follow from limits."""
    return (container.get("resources") or {}).get("requests") or {}


# Defaults


# Complex: upstream's defaults depend on each other.
def default_pod_resources(spec: dict[str, Any]) -> None:  # noqa: C901
    """What a pod as a whole asks for, where it says so in part: huge pages are limited as its containers are, requests
    are those of its containers, else its limits."""
    resources = spec.get("resources")
    if not resources:
        return
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if limits or requests:
        for name, amount in _together(spec, limits_of).items():
            if name.startswith(HUGE_PAGES) and name not in requests:
                limits.setdefault(name, amount)
    if limits:
        resources["limits"] = limits
        for name, amount in _together(spec, _requests_of).items():
            if name in _OF_QUALITY:
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_of_the_whole(name):
                requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def _together(spec: Spec, of: _Of) -> dict[str, str]:
    """Return what the containers request, or are limited to, together."""
    pod = {"spec": spec}
    first: dict[str, Any] = {}
    for container in (*containers_of(pod), *init_containers_of(pod)):
        first = {**of(container), **first}
    return {name: total_text(containers_amount(pod, name, parse, of), text) for name, text in first.items()}


# Quality of service


def qos_class(spec: Spec) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory of the pod, else of its containers (ComputePodQOS)."""
    if spec.get("resources") is not None:
        holders = [spec["resources"]]
        guaranteed = not holders[0].get("limits") or _limits_all(holders[0])
    else:
        holders = [part_of(each, "resources") for each in (*items(spec, "containers"), *items(spec, "initContainers"))]
        guaranteed = all(_limits_all(each) for each in holders)
    requests, limits = (_sums(holders, part) for part in ("requests", "limits"))
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _limits_all(holder: Spec) -> bool:
    return all(parse(part_of(holder, "limits").get(name, 0)) > 0 for name in _OF_QUALITY)


def _sums(holders: list[Spec], part: str) -> dict[str, Decimal]:
    sums = {
        name: sum((parse(part_of(each, part).get(name, 0)) for each in holders), start=Decimal())
        for name in _OF_QUALITY
    }
    return {name: amount for name, amount in sums.items() if amount > 0}


# Errors


def pod_resource_errors(spec: Spec, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the resources of a pod as a whole, which its containers share."""
    resources = spec["resources"]
    if part_of(spec, "os").get("name") == "windows":
        yield refusals.forbidden_field(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield refusals.forbidden_field(f"{path}.claims", "claims may not be set for Resources at pod-level")
    claims = [claim.get("name", "") for claim in items(spec, "resourceClaims")]
    yield from resource_errors(resources, path, claims, check_name=pod_resource_name_errors)
    requests, limits = part_of(resources, "requests"), part_of(resources, "limits")
    for name, used in _together(spec, _requests_of).items():
        if name in requests and parse(used) > parse(requests[name]):
            text = f"must be greater than or equal to aggregate container requests of {used}"
            yield refusals.bad(f"{path}.requests[{name}]", requests[name], text)
    for name, used in _together(spec, limits_of).items():
        if name.startswith(HUGE_PAGES) and name in limits and parse(used) > parse(limits[name]):
            text = f"must be greater than or equal to aggregate container limits of {used}"
            yield refusals.bad(f"{path}.limits[{name}]", limits[name], text)
    for index, container in enumerate(items(spec, "containers")):
        for name, limit in limits_of(container).items():
            if name in limits and parse(limit) > parse(limits[name]):
                here = f"{path}.containers[{index}][{name}].limits"
                yield refusals.bad(here, limit, f"must be less than or equal to pod limits of {limits[name]}")


def unresizable(new: Object, old: Object) -> Iterator[FieldError]:
    """Yield why a pod cannot be resized at all; nothing else is said then."""
    spec, before = new["spec"], old["spec"]
    if any(part_of(part_of(each, "resources"), part) for each in (spec, before) for part in ("requests", "limits")):
        yield refusals.forbidden_field("[]", "pods with pod-level resources cannot be resized")
    elif MIRROR in (old["metadata"].get("annotations") or {}):
        yield refusals.forbidden_field("[]", "static pods cannot be resized")
    elif part_of(before, "os").get("name") == "windows":
        yield refusals.forbidden_field("[]", "windows pods cannot be resized")


def resize_errors(new: Object, old: Object) -> Iterator[FieldError]:
    """Yield what is wrong with a change by the subresource resize (ValidatePodResize, its second half)."""
    spec, before = new["spec"], old["spec"]
    found = list(_resize_errors(spec, old))
    yield from found
    if not found and _without_amounts(spec, before) != before:
        yield refusals.forbidden_field("spec", "only cpu and memory resources are mutable")


# Complex: upstream's order of errors, which clients see.
def _resize_errors(spec: Spec, old: Object) -> Iterator[FieldError]:  # noqa: C901
    before, status = old["spec"], part_of(old, "status")
    quality = status.get("qosClass") or qos_class(before)
    if quality != qos_class(spec):
        yield refusals.bad("spec", quality, "Pod QOS Class may not change as a result of resizing")
    running = [each for each in items(status, "containerStatuses") if part_of(each, "state").get("running") is not None]
    if running and running[0].get("resources") is None:
        yield refusals.forbidden_field("spec", "Pod running on node without support for resize")
    moved = list(_order_errors(spec, before))
    if moved:
        yield from moved
        return
    for name in _ORDER:
        for index, (container, known) in enumerate(zip(items(spec, name), items(before, name), strict=True)):
            if name == "containers" or is_sidecar(known):
                yield from _removal_errors(container, known, f"spec.{name}[{index}].resources")
    for container, known in zip(items(spec, "containers"), items(before, "containers"), strict=True):
        if _with_amounts_of(container, known) != known:
            yield refusals.forbidden_field("spec", "only cpu and memory resources are mutable")
    for container, known in zip(items(spec, "initContainers"), items(before, "initContainers"), strict=True):
        if is_sidecar(container):
            if _with_amounts_of(container, known) != known:
                text = "only cpu and memory resources for sidecar containers are mutable"
                yield refusals.forbidden_field("spec", text)
        elif container != known:
            yield refusals.forbidden_field("spec", "resources for non-sidecar init containers are immutable")


def _order_errors(spec: Spec, before: Spec) -> Iterator[FieldError]:
    for name in _LISTS:
        path = f"spec.{name}"
        if len(items(spec, name)) != len(items(before, name)):
            yield refusals.forbidden_field(path, f"{name} may not be added or removed on resize")
            continue
        for index, (container, known) in enumerate(zip(items(spec, name), items(before, name), strict=True)):
            if container["name"] != known["name"]:
                text = f"{name} may not be renamed or reordered on resize"
                yield refusals.forbidden_field(f"{path}[{index}].name", text)


def _removal_errors(container: Spec, known: Spec, path: str) -> Iterator[FieldError]:
    for part, of in (("requests", _requests_of), ("limits", limits_of)):
        if not of(known).keys() <= of(container).keys():
            yield refusals.forbidden_field(f"{path}.{part}", f"resource {part} cannot be removed")


def _without_amounts(spec: Spec, before: Spec) -> dict[str, Any]:
    """Return the spec with the amounts of before, where those may change."""
    fixed: dict[str, Any] = dict(spec)
    for name in _LISTS:
        if items(spec, name):
            pairs = zip(items(spec, name), items(before, name), strict=True)
            fixed[name] = [
                _with_amounts_of(one, known) if name == "containers" or is_sidecar(one) else one for one, known in pairs
            ]
    return fixed


def _with_amounts_of(container: Spec, known: Spec) -> dict[str, Any]:
    """Return the container with the cpu and memory of another; what that has nothing of is dropped, claims with it
    (dropCPUMemoryResourcesFromContainer)."""
    kept: dict[str, Any] = {}
    for part, of in (("limits", limits_of), ("requests", _requests_of)):
        if of(known):
            amounts = {name: amount for name, amount in of(container).items() if name not in _OF_QUALITY}
            amounts |= {name: amount for name, amount in of(known).items() if name in _OF_QUALITY}
            kept[part] = amounts
    fixed: dict[str, Any] = clone(dict(container))
    fixed["resources"] = kept
    return fixed

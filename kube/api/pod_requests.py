"""What a pod as a whole asks for, by the one rule that scheduler, kubelet and quotas share.

All that runs together counts: main containers and sidecars (init containers that restart always). An init container
counts beside the sidecars that were started before it, and the largest such moment may exceed the former. What the pod
says of itself as a whole (``spec.resources``: cpu, memory, huge pages) stands in the place of that sum. The pod's
overhead comes on top. Upstream: PodRequests and PodLimits in k8s.io/component-helpers/resource/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from mews.kube.api.objects import containers_of, init_containers_of, requests_of
from mews.kube.api.quantities import whole

Number = TypeVar("Number", int, Decimal)
Quantity = str | int | float
Amounts = Mapping[str, int]
HUGE_PAGES = "hugepages-"


def request_of(pod: Mapping[str, Any], resource: str) -> int:
    """Return a pod's request of a resource that is counted in whole numbers: bytes, devices."""
    return pod_amount(pod, resource, whole)


def pod_amount(pod: Mapping[str, Any], resource: str, count: Callable[[Quantity], Number]) -> Number:
    """Return a pod's request of one resource, each quantity being read by ``count``."""
    as_a_whole = _of_the_whole(pod, "requests")
    if resource in as_a_whole:
        amount = count(as_a_whole[resource])
    else:
        amount = containers_amount(pod, resource, count, requests_of)
    return amount + count(overhead_of(pod).get(resource, 0))


def pod_limit(pod: Mapping[str, Any], resource: str, count: Callable[[Quantity], Number]) -> Number:
    """Return a pod's limit of one resource; overhead counts only beside a limit, as upstream has it."""
    as_a_whole = _of_the_whole(pod, "limits")
    if resource in as_a_whole:
        limit = count(as_a_whole[resource])
    else:
        limit = containers_amount(pod, resource, count, limits_of)
    return limit + count(overhead_of(pod).get(resource, 0)) if limit else limit


def containers_amount(
    pod: Mapping[str, Any],
    resource: str,
    count: Callable[[Quantity], Number],
    of: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Number:
    """Return what a pod's containers together request (``requests_of``) or are limited to (``limits_of``) of one
    resource, whatever the pod says of itself as a whole."""

    def amount(container: Mapping[str, Any]) -> Number:
        return count(of(container).get(resource, 0))

    mains = [amount(container) for container in containers_of(pod)]
    inits = [(amount(container), is_sidecar(container)) for container in init_containers_of(pod)]
    return _together(mains, inits, count(0))


def pod_amounts(
    pod: Mapping[str, Any],
    count: Callable[[Mapping[str, Any]], Mapping[str, int]],
    default: Amounts | None = None,
) -> dict[str, int]:
    """Return a pod's request of every resource that it names, ``count`` reading all quantities of a container;
    ``default`` is what a container without a request of a resource is taken to ask."""
    basis = default or {}
    mains = [{**basis, **count(requests_of(container))} for container in containers_of(pod)]
    inits = [({**basis, **count(requests_of(c))}, is_sidecar(c)) for c in init_containers_of(pod)]
    overhead, as_a_whole = count(overhead_of(pod)), count(_of_the_whole(pod, "requests"))

    def amount(name: str) -> int:
        if name in as_a_whole:
            return as_a_whole[name]
        return _together(
            [each.get(name, 0) for each in mains], [(each.get(name, 0), sidecar) for each, sidecar in inits], 0
        )

    return {name: amount(name) + overhead.get(name, 0) for name in _named(mains, inits, as_a_whole, overhead)}


def amounts_named(pod: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return every resource that a pod or a container of it names among its ``requests`` or ``limits``, with the amount
    that is named last."""
    of = requests_of if part == "requests" else limits_of
    found: dict[str, Any] = {}
    for container in (*init_containers_of(pod), *containers_of(pod)):
        found.update(of(container))
    return {**found, **_of_the_whole(pod, part)}


def is_of_the_whole(resource: str) -> bool:
    """Return whether a pod may ask for the resource as a whole (IsSupportedPodLevelResource)."""
    return resource in ("cpu", "memory") or resource.startswith(HUGE_PAGES)


def overhead_of(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the pod's runtime takes beside its containers."""
    return pod.get("spec", {}).get("overhead") or {}


def limits_of(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the container's limits."""
    return (container.get("resources") or {}).get("limits") or {}


def _of_the_whole(pod: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    resources = pod.get("spec", {}).get("resources")
    if not resources:
        return {}
    return {name: amount for name, amount in (resources.get(part) or {}).items() if is_of_the_whole(name)}


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Return whether an init container goes on running beside the main ones."""
    return container.get("restartPolicy") == "Always"


def _together(mains: Sequence[Number], inits: Iterable[tuple[Number, bool]], none: Number) -> Number:
    """Return the largest amount that containers hold at one time."""
    sidecars = peak = none
    for amount, stays in inits:
        peak = max(peak, sidecars + amount)
        if stays:
            sidecars = sidecars + amount
    return max(sum(mains, none) + sidecars, peak)


def _named(mains: Iterable[Amounts], inits: Sequence[tuple[Amounts, bool]], *others: Amounts) -> list[str]:
    """Return all resources: those of what runs together come first, as upstream adds them up."""
    stay = [each for each, sidecar in inits if sidecar]
    return list(dict.fromkeys(name for each in (*mains, *stay, *(e for e, _ in inits), *others) for name in each))

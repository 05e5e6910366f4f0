"""What is wrong with the resources of a container (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from mews.kube.api.pod_requests import HUGE_PAGES
from mews.kube.api.quantities import milli, parse
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError

_NATIVE = ("cpu", "memory", "ephemeral-storage")
_NAMES_KNOWN = 1024
_OF_PODS = ("cpu", "memory")
_STANDARD = (
    *_NATIVE, "storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "services", "replicationcontrollers",
    "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports",
    "services.loadbalancers",
)  # fmt: skip
_NO_SIZE = "Limit must be set for non overcommitable resources"


@lru_cache(maxsize=_NAMES_KNOWN)
def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one, like ``nvidia.com/gpu``."""
    return not _is_native(name) and not name.startswith("requests.") and not names.qualified_texts(f"requests.{name}")


_COUNTED = (
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
)  # fmt: skip


def quantity_errors(name: str, amount: str, path: str) -> list[FieldError]:
    """Return what is wrong with the amount of a resource (ValidateResourceQuantityValue)."""
    found = common.amount_not_negative(path, amount)
    if (name in _COUNTED or is_extended(name)) and milli(amount) % 1000:
        found.append(refusals.bad(path, amount, "must be an integer"))
    return found


def plain_resource_name_errors(name: str, path: str) -> list[FieldError]:
    """Return what is wrong with the name of a resource, wherever it stands."""
    found = names.qualified_errors(path, name)
    standard = name in _STANDARD or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))
    if not found and "/" not in name and not standard:
        found.append(refusals.bad(path, name, "must be a standard resource type or fully qualified"))
    return found


def resource_name_errors(name: str, path: str) -> list[FieldError]:
    """Return what is wrong with the name of a container's resource."""
    found = plain_resource_name_errors(name, path)
    if "/" not in name:
        if name not in _NATIVE and not name.startswith(HUGE_PAGES):
            found.append(refusals.bad(path, name, "must be a standard resource for containers"))
    elif not _is_native(name) and not is_extended(name):
        found.append(refusals.bad(path, name, "doesn't follow extended resource name standard"))
    return found


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def pod_resource_name_errors(name: str, path: str) -> list[FieldError]:
    """Return what is wrong with the name of a resource that a pod asks for as a whole."""
    found = plain_resource_name_errors(name, path)
    if not found and name not in _OF_PODS and not name.startswith(HUGE_PAGES):
        found.append(refusals.unsupported(path, name, (*_OF_PODS[:1], HUGE_PAGES, *_OF_PODS[1:])))
    return found


def resource_errors(
    resources: Part,
    path: str,
    claims: Collection[str] = (),
    *,
    check_name: Callable[[str, str], list[FieldError]] = resource_name_errors,
) -> list[FieldError]:
    """Return what is wrong with a container's limits and requests (validateResourceRequirements)."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found: list[FieldError] = []
    for name, amount in limits.items():
        found += _amount_errors(name, amount, f"{path}.limits[{name}]", check_name)
    for name, request in requests.items():
        found += _amount_errors(name, request, f"{path}.requests[{name}]", check_name)
        limit, fixed = limits.get(name), is_extended(name) or name.startswith(HUGE_PAGES)
        if limit is None:
            if fixed:
                found.append(refusals.required(f"{path}.limits", _NO_SIZE))
        elif fixed and parse(request) != parse(limit):
            found.append(refusals.bad(f"{path}.requests", request, f"must be equal to {name} limit of {limit}"))
        elif parse(request) > parse(limit):
            text = f"must be less than or equal to {name} limit of {limit}"
            found.append(refusals.bad(f"{path}.requests", request, text))
    given = {*limits, *requests}
    if any(name.startswith(HUGE_PAGES) for name in given) and not given & {"cpu", "memory"}:
        found.append(refusals.forbidden_field(path, "HugePages require cpu or memory"))
    return [*found, *_claim_errors(items(resources, "claims"), f"{path}.claims", claims)]


def _amount_errors(
    name: str, amount: str, path: str, check_name: Callable[[str, str], list[FieldError]]
) -> list[FieldError]:
    return check_name(name, path) + quantity_errors(name, amount, path)


def _claim_errors(claims: Any, path: str, known: Collection[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            yield refusals.required(here)
            continue
        if name in seen:
            yield refusals.duplicate(here, name)
        else:
            if request:
                yield from common.label(f"{here}.request", request)
            key = f"{name}/{request}" if request else name
            if key in seen or (not request and any(other.startswith(f"{name}/") for other in seen)):
                yield refusals.duplicate(here, key)
            seen.add(key)
        if name not in known:
            given = sorted({other for other in known if other})
            which = f": {', '.join(given)}" if given else " which is empty"
            text = f"{refusals.shown(name)}: must be one of the names in pod.spec.resourceClaims{which}"
            yield FieldError(here, "FieldValueNotFound", text)


def overhead_errors(overhead: Mapping[str, str], path: str) -> list[FieldError]:
    """Return what a pod takes beside its containers."""
    return resource_errors({"limits": overhead}, path)

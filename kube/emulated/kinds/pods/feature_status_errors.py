"""What is wrong with what features add to a pod's status: DRAExtendedResource and ResourceHealthStatus. While they are
off their fields are gone before this looks (pkg/apis/core/validation of 1.37)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError

Part = Mapping[str, Any]

_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_PATH = "status.extendedResourceClaimStatus"


def extended_claim_errors(status: Part, spec: Part) -> Iterator[FieldError]:
    """Yield the errors of the claim that stands for a pod's extended resources."""
    claim = status.get("extendedResourceClaimStatus")
    if claim is None:
        return
    containers = {
        container.get("name", ""): container
        for place in ("initContainers", "containers")
        for container in common.items(spec, place)
    }
    mappings = common.items(claim, "requestMappings")
    if not mappings:
        yield refusals.required(f"{_PATH}.requestMappings", "at least one request mapping is required")
    for index, mapping in enumerate(mappings):
        yield from _mapping_errors(mapping, f"{_PATH}.requestMappings[{index}]", containers)
        yield from common.label(f"{_PATH}.requestName", mapping.get("requestName", ""))
    if not claim.get("resourceClaimName"):
        yield refusals.required(f"{_PATH}.resourceClaimName")
    else:
        yield from names.subdomain_errors(f"{_PATH}.resourceClaimName", claim["resourceClaimName"])


def _mapping_errors(mapping: Part, path: str, containers: Mapping[str, Part]) -> Iterator[FieldError]:
    name, resource = mapping.get("containerName", ""), mapping.get("resourceName", "")
    if name not in containers:
        text = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
        yield refusals.bad(f"{path}.containerName", name, text)
    elif resource not in ((containers[name].get("resources") or {}).get("requests") or {}):
        text = (
            "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
            "spec.containers.resources.requests"
        )
        yield refusals.bad(f"{path}.resourceName", resource, text)


def health_errors(statuses: Sequence[Part], path: str, *, ephemeral: bool) -> Iterator[FieldError]:
    """Yield the errors of the health of devices in the statuses of containers."""
    for number, status in enumerate(statuses):
        here = f"{path}[{number}].allocatedResourcesStatus"
        resources = common.items(status, "allocatedResourcesStatus")
        if resources and ephemeral:
            yield refusals.forbidden_field(here, "must not be specified in container status")
            continue
        for index, resource in enumerate(resources):
            for place, device in enumerate(common.items(resource or {}, "resources")):
                path_of_health = f"{here}[{index}].resources[{place}].health"
                yield from common.option(path_of_health, (device or {}).get("health", ""), _HEALTH)

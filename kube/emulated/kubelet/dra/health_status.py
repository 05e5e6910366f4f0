"""The health of a pod's devices in its status: ``containerStatuses[].allocatedResourcesStatus`` (KEP-4680). Pure.

Source: UpdateAllocatedResourcesStatus of pkg/kubelet/cm/dra/manager.go, Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, containers_of, namespace_of
from mews.kube.api.resource_claims import ClaimNotMadeError, claim_name
from mews.kube.dra.port import DeviceHealth, PreparedDevice
from mews.kube.emulated.kubelet.dra.claim_cache import ClaimCache, ClaimInfo

HealthOf = Callable[[str, str, str], DeviceHealth]
"""Driver, pool, device -> its health now."""
Status = dict[str, Any]


def with_health(pod: Object, status: Status, cache: ClaimCache, health_of: HealthOf, *, messages: bool) -> Status:
    """Return the pod's status with the health of the devices that its containers have by claims; init containers show
    none. ``messages``: the release has a field for them."""
    specs = {container["name"]: container for container in containers_of(pod)}
    shown = []
    for entry in status.get("containerStatuses") or ():
        resources = list(_resources(pod, specs[entry["name"]], cache, health_of, messages=messages))
        shown.append({**entry, "allocatedResourcesStatus": resources} if resources else entry)
    return {**status, "containerStatuses": shown}


def _resources(
    pod: Object, container: Mapping[str, Any], cache: ClaimCache, health_of: HealthOf, *, messages: bool
) -> Iterator[Status]:
    for wanted in (container.get("resources") or {}).get("claims") or ():
        info = _claim(pod, wanted["name"], cache)
        if info is None:
            continue
        request = str(wanted.get("request") or "")
        name = f"claim:{wanted['name']}/{request}" if request else f"claim:{wanted['name']}"
        devices: dict[str, Status] = {}
        for driver, device in _devices(info, request.partition("/")[0]):
            identity = device.cdi_ids[0] if device.cdi_ids else f"{driver}/{device.pool}/{device.device}"
            health = health_of(driver, device.pool, device.device)
            message = {"message": health.message} if messages and health.message else {}
            devices.setdefault(identity, {"resourceID": identity, "health": health.health, **message})
        if devices:
            yield {"name": name, "resources": list(devices.values())}


def _claim(pod: Object, name: str, cache: ClaimCache) -> ClaimInfo | None:
    entries: Sequence[Mapping[str, Any]] = pod["spec"].get("resourceClaims") or ()
    try:
        made = claim_name(pod, next(entry for entry in entries if entry["name"] == name))
    except ClaimNotMadeError:
        return None
    return None if made is None else cache.get(namespace_of(pod), made)


def _devices(info: ClaimInfo, request: str) -> Iterator[tuple[str, PreparedDevice]]:
    for driver in sorted(info.drivers):
        for device in info.drivers[driver] or ():
            if not request or not device.requests or request in device.requests:
                yield driver, device

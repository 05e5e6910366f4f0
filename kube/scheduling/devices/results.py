"""An allocation as the claim's status shows it: devices, configuration, and the nodes on which it can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of
from mews.kube.scheduling.devices import capacity
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.inventory import OfferedDevice, Pool
from mews.kube.scheduling.devices.requests import ClaimedRequest, Spec


class Granted(Struct, frozen=True):
    """A device that a request got; ``consumed`` and ``share`` of one that is shared; ``counted``: it took counters."""

    request: ClaimedRequest
    device: OfferedDevice
    pool: Pool
    consumed: Mapping[str, Decimal]
    share: str
    counted: bool


def allocation(
    claim: Object,
    granted: Sequence[Granted],
    requests: Sequence[ClaimedRequest],
    *,
    features: DeviceFeatures,
    node: str,
) -> dict[str, Any]:
    """``status.allocation``; ``requests`` are those satisfied, one for each of the claim."""
    devices: dict[str, Any] = {}
    if granted:
        devices["results"] = [_result(each, features) for each in granted]
    configuration = [*_of_classes(requests), *_of_claim(claim, requests, once=features.settled)]
    if features.settled:
        configuration = [_without_names(each, requests) for each in configuration]
    if configuration:
        devices["config"] = configuration
    found: dict[str, Any] = {"devices": devices}
    selector = _node_selector(granted, node, features)
    if selector is not None:
        found["nodeSelector"] = selector
    return found


def _result(granted: Granted, features: DeviceFeatures) -> dict[str, Any]:
    driver, pool, device = granted.device.id
    found: dict[str, Any] = {"request": granted.request.full_name, "driver": driver, "pool": pool, "device": device}
    if granted.request.admin:
        found["adminAccess"] = True
    if features.settled and granted.request.tolerations:
        found["tolerations"] = [dict(each) for each in granted.request.tolerations]
    if granted.share:
        found["shareID"] = granted.share
    if granted.consumed:
        found["consumedCapacity"] = capacity.written(granted.consumed, granted.device)
    for name in ("bindingConditions", "bindingFailureConditions"):
        if granted.device.spec.get(name):
            found[name] = list(granted.device.spec[name])
    return found


def _of_classes(requests: Sequence[ClaimedRequest]) -> list[dict[str, Any]]:
    """Return each class's own configuration once, for all requests of that class."""
    found: dict[str, list[dict[str, Any]]] = {}
    for request in requests:
        name = name_of(request.device_class)
        if name in found:
            for each in found[name]:
                each["requests"].append(request.full_name)
            continue
        given = request.device_class["spec"].get("config") or ()
        found[name] = [{"source": "FromClass", "requests": [request.full_name], **each} for each in given]
    return [each for several in found.values() for each in several]


def _without_names(configuration: dict[str, Any], requests: Sequence[ClaimedRequest]) -> dict[str, Any]:
    """Return them from 1.36 on what is for all requests names none."""
    names = configuration.get("requests") or ()
    if not names or not all(_is_meant(names, request) for request in requests):
        return configuration
    return {key: value for key, value in configuration.items() if key != "requests"}


def _of_claim(claim: Object, requests: Sequence[ClaimedRequest], *, once: bool) -> list[dict[str, Any]]:
    """Return the claim's own configuration; before 1.36 once for each request that it names."""
    found = []
    for given in (claim["spec"].get("devices") or {}).get("config") or ():
        names: Sequence[str] = given.get("requests") or ()
        times = 1 if not names else sum(_is_meant(names, request) for request in requests)
        found += [{"source": "FromClaim", **given} for _ in range(min(times, 1) if once else times)]
    return found


def _is_meant(names: Sequence[str], request: ClaimedRequest) -> bool:
    return (request.parent or request.name) in names or request.full_name in names


def _node_selector(granted: Sequence[Granted], node: str, features: DeviceFeatures) -> dict[str, Any] | None:
    """Return one node where a device is local to it; else what all slices require."""
    fields: list[Spec] = []
    expressions: list[Spec] = []
    for each in granted:
        device, of_slice = each.device.spec, each.device.slice
        where = device if of_slice.per_device else of_slice.spec
        if where.get("nodeName") or (features.binding_conditions and device.get("bindsToNode")):
            named = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [named]}]}
        for term in ((where.get("nodeSelector") or {}).get("nodeSelectorTerms") or ())[:1]:
            _add_new(fields, term.get("matchFields") or ())
            _add_new(expressions, term.get("matchExpressions") or ())
    if not fields and not expressions:
        return None
    term = {name: found for name, found in (("matchExpressions", expressions), ("matchFields", fields)) if found}
    return {"nodeSelectorTerms": [term]}


def _add_new(known: list[Spec], added: Sequence[Spec]) -> None:
    for each in added:
        if not any(_same(each, other) for other in known):
            known.append(each)


def _same(one: Spec, other: Spec) -> bool:
    return (one["key"], one["operator"], set(one.get("values") or ())) == (
        other["key"],
        other["operator"],
        set(other.get("values") or ()),
    )

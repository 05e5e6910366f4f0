"""What is wrong with the status of a ResourceClaim (pkg/apis/resource/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.affinity_errors import node_selector_errors
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors
from mews.kube.emulated.packs.devices.device_errors import (
    MOST,
    RequestNames,
    configuration_errors,
    each,
    label_errors,
    pool_name_errors,
    raw_errors,
    reference_errors,
    repeated,
    request_names,
    request_reference_errors,
)

Part = Mapping[str, Any]

_MOST_USERS = 256
_MOST_CONDITIONS = 8
_MOST_ADDRESSES = 16
_LONGEST_INTERFACE = 256
_LONGEST_HARDWARE_ADDRESS = 128
_SOURCES = ("FromClaim", "FromClass")
_SHOWN_ID: Mapping[str, Any] = {"Driver": {}, "Pool": {}, "Device": {}, "ShareID": {}}
"""How upstream prints the name of a device: its parts are handles."""


def claim_status_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a claim's status that is written."""
    return list(_status_errors(new, old))


def drop_deallocated(new: Object, old: Object) -> None:
    """The status of a device goes with its allocation (pkg/registry/resource/resourceclaim/strategy.go,
    dropDeallocatedStatusDevices)."""
    status = new.get("status") or {}
    gone = set(_allocated(old.get("status") or {})) - set(_allocated(status))
    if not gone or "devices" not in status:
        return
    left = [device for device in common.items(status, "devices") if _shared_id(device) not in gone]
    status = {name: value for name, value in status.items() if name != "devices"}
    new["status"] = {**status, "devices": left} if left else status


def _allocated(status: Part) -> Iterator[tuple[Any, ...]]:
    allocation = common.part_of(status, "allocation")
    return map(_shared_id, common.items(common.part_of(allocation, "devices"), "results"))


def _shared_id(device: Part | None) -> tuple[Any, ...]:
    return tuple((device or {}).get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def _status_errors(new: Object, old: Object) -> Iterator[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    known = request_names(common.part_of(new["spec"], "devices"))
    users, devices = common.items(status, "reservedFor"), common.items(status, "devices")
    allocation, former = status.get("allocation"), before.get("allocation")
    yield from each(users, "status.reservedFor", _user_errors, _MOST_USERS)
    yield from repeated(users, "status.reservedFor", "uid")
    allocated = [_shared_id(result) for result in common.items(common.part_of(allocation or {}, "devices"), "results")]
    yield from each(devices, "status.devices", lambda device, path: _device_errors(device, path, allocated))
    for index, device in enumerate(devices):
        if _shared_id(device) in [_shared_id(other) for other in devices[:index]]:
            yield refusals.duplicate(f"status.devices[{index}].deviceID", _SHOWN_ID)
    if users and allocation is None:
        text = "may not be specified when `allocated` is not set"
        yield refusals.forbidden_field("status.reservedFor", text)
    elif new["metadata"].get("deletionTimestamp") and any(
        user not in common.items(before, "reservedFor") for user in users
    ):
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield refusals.forbidden_field("status.reservedFor", text)
    if allocation is not None and former is not None:
        yield from common.fixed("status.allocation", allocation, former)
    elif allocation is not None:
        yield from _allocation_errors(allocation, known)


def _user_errors(user: Part, path: str) -> Iterator[FieldError]:
    for name in ("resource", "name", "uid"):
        if not user.get(name):
            yield refusals.required(f"{path}.{name}")


def _named_errors(device: Part, path: str) -> Iterator[FieldError]:
    yield from driver_name_errors(device.get("driver", ""), f"{path}.driver")
    yield from pool_name_errors(device.get("pool", ""), f"{path}.pool")
    yield from label_errors(f"{path}.device", device.get("device", ""))


def _device_errors(device: Part, path: str, allocated: Sequence[tuple[Any, ...]]) -> Iterator[FieldError]:
    yield from _named_errors(device, path)
    if _shared_id(device) not in allocated:
        yield refusals.bad(path, _SHOWN_ID, "must be an allocated device in the claim")
    conditions = common.items(device, "conditions")
    if len(conditions) > _MOST_CONDITIONS:
        yield common.too_many(f"{path}.conditions", len(conditions), _MOST_CONDITIONS)
    yield from common.conditions(f"{path}.conditions", [condition or {} for condition in conditions])
    if device.get("data") is not None:
        yield from raw_errors(device["data"], f"{path}.data")
    network, here = common.part_of(device, "networkData"), f"{path}.networkData"
    if len(network.get("interfaceName", "").encode()) > _LONGEST_INTERFACE:
        yield common.too_long(f"{here}.interfaceName", _LONGEST_INTERFACE)
    if len(network.get("hardwareAddress", "").encode()) > _LONGEST_HARDWARE_ADDRESS:
        yield common.too_long(f"{here}.hardwareAddress", _LONGEST_HARDWARE_ADDRESS)
    given = [text or "" for text in common.items(network, "ips")]
    for index, text in enumerate(given):
        yield from addresses.interface_address(f"{here}.ips[{index}]", text)
    if len(given) > _MOST_ADDRESSES:
        yield common.too_many(f"{here}.ips", len(given), _MOST_ADDRESSES)
    yield from repeated(given, f"{here}.ips")


def _allocation_errors(allocation: Part, known: RequestNames) -> Iterator[FieldError]:
    devices, path = common.part_of(allocation, "devices"), "status.allocation.devices"

    def result(part: Part, here: str) -> Iterator[FieldError]:
        yield from request_reference_errors(part.get("request", ""), f"{here}.request", known)
        yield from _named_errors(part, here)

    def configuration(part: Part, here: str) -> Iterator[FieldError]:
        source = part.get("source", "")
        if not source:
            yield refusals.required(f"{here}.source")
        else:
            yield from common.option(f"{here}.source", source, _SOURCES)
        yield from reference_errors(common.items(part, "requests"), f"{here}.requests", known)
        yield from configuration_errors(part, here)

    yield from each(common.items(devices, "results"), f"{path}.results", result, MOST)
    yield from each(common.items(devices, "config"), f"{path}.config", configuration, 2 * MOST)
    if allocation.get("nodeSelector") is not None:
        yield from node_selector_errors(allocation["nodeSelector"], "status.allocation.nodeSelector")

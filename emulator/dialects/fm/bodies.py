"""What requests to fabric and cluster manager say, read strictly (contract cohdi.md 2.2, 2.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.emulator.dialects.fm.errors import FabricManagerError
from mews.emulator.dialects.wire import JsonError, Request, read_object

COLUMNS = ("model", "res_uuid")
"""What a condition may compare: ``model`` as the clients do; ``res_uuid``, which names one device, is assumed."""


class Wanted(Struct, frozen=True):
    """Which resource is asked for: by type, and by conditions (column -> value)."""

    kind: str
    conditions: Mapping[str, str]


class Named(Struct, frozen=True):
    """A resource that is to leave a machine."""

    kind: str
    res_uuid: str


class Resize(Struct, frozen=True):
    """A target of the cluster manager: so many devices of a specification; ``remove`` are to leave, None to grow."""

    spec_uuid: str
    count: int
    remove: tuple[str, ...] | None


def attach_body(request: Request, tenant: str, machine: str) -> Wanted:
    """Return the resource that a PATCH of a machine asks for.

    Raises FabricManagerError.
    """
    item = _item(request, tenant, machine)
    spec = _object(item.get("res_spec"), "res_spec")
    conditions = _list(spec.get("condition"), "res_spec.condition")
    found = dict(_condition(each, f"res_spec.condition[{index}]") for index, each in enumerate(conditions))
    if not found:
        raise FabricManagerError("bad-request", "res_spec.condition: must have at least one condition")
    return Wanted(_text(item.get("res_type"), "res_type"), found)


def detach_body(request: Request, tenant: str, machine: str) -> Named:
    """Return the resource that a DELETE of a machine's resources names.

    Raises FabricManagerError.
    """
    item = _item(request, tenant, machine)
    return Named(_text(item.get("res_type"), "res_type"), _text(item.get("res_uuid"), "res_uuid"))


def query_condition(query: Mapping[str, str]) -> Wanted:
    """``res_type`` and ``condition`` of a query.

    Raises FabricManagerError.
    """
    kind = _text(query.get("res_type"), "res_type")
    if "condition" not in query:
        return Wanted(kind, {})
    try:
        value = json.loads(query["condition"])
    except (ValueError, RecursionError) as error:
        raise FabricManagerError("bad-request", "condition: must be JSON") from error
    column, wanted = _condition(value, "condition")
    return Wanted(kind, {column: wanted})


def resize_body(request: Request) -> Resize:
    """Return what a machine of the cluster manager is to be resized to.

    Raises FabricManagerError.
    """
    value = _body(request)
    grow, shrink = value.get("increase_resource_count"), value.get("remove_resources")
    if (grow is None) == (shrink is None):
        raise FabricManagerError("bad-request", "must have increase_resource_count or remove_resources, and not both")
    place = "increase_resource_count" if shrink is None else "remove_resources"
    asked = _object(grow if shrink is None else shrink, place)
    uuid, count = asked.get("spec_uuid"), asked.get("device_count")
    if not isinstance(uuid, str):
        raise FabricManagerError("bad-request", f"{place}.spec_uuid: must be a text")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise FabricManagerError("bad-request", f"{place}.device_count: must be an integer from 0 on")
    if shrink is None:
        return Resize(uuid, count, None)
    devices = _list(asked.get("devices"), f"{place}.devices")
    return Resize(uuid, count, tuple(_text(each, f"{place}.devices[{i}]") for i, each in enumerate(devices)))


def _body(request: Request) -> dict[str, Any]:
    if request.too_large:
        raise FabricManagerError("too-large", "the body is too large")
    if not request.body:
        raise FabricManagerError("bad-request", "the body is empty; must be a JSON object")
    try:
        return read_object(request.body)
    except JsonError as error:
        raise FabricManagerError("bad-request", f"the body must be a JSON object: {error}") from error


def _item(request: Request, tenant: str, machine: str) -> dict[str, Any]:
    """Return the one resource specification of the one machine in a body."""
    tenants = _object(_body(request).get("tenants"), "tenants")
    if tenants.get("tenant_uuid") != tenant:
        raise FabricManagerError("bad-request", "tenants.tenant_uuid: must be that of the query")
    item = _only(tenants.get("machines"), "tenants.machines")
    if item.get("mach_uuid") != machine:
        raise FabricManagerError("bad-request", "tenants.machines[0].mach_uuid: must be that of the path")
    item = _only(item.get("resources"), "resources")
    item = _only(item.get("res_specs"), "res_specs")
    number = item.get("res_num")
    if number != 1 or isinstance(number, bool):
        raise FabricManagerError("bad-request", "res_num: must be 1; one resource is moved at a time")
    return item


def _only(value: Any, place: str) -> dict[str, Any]:
    items = _list(value, place)
    if len(items) != 1:
        raise FabricManagerError("bad-request", f"{place}: must have one element; one resource is moved at a time")
    return _object(items[0], f"{place}[0]")


def _condition(value: Any, place: str) -> tuple[str, str]:
    found = _object(value, place)
    column, operator = found.get("column"), found.get("operator")
    if column not in COLUMNS:
        raise FabricManagerError("bad-request", f"{place}.column: must be one of {', '.join(COLUMNS)}")
    if operator != "eq":
        raise FabricManagerError("bad-request", f"{place}.operator: must be eq")
    return str(column), _text(found.get("value"), f"{place}.value")


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FabricManagerError("bad-request", f"{place}: must be an object")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise FabricManagerError("bad-request", f"{place}: must be a list")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise FabricManagerError("bad-request", f"{place}: must be a text")
    return value

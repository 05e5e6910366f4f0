"""Which devices a pod has, as its annotation says it (contract koordinator.md section 1): frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, annotations_of, key_of
from mews.systems.koordinator.devices import Amounts, a_list, a_number, amounts, an_object, parsed_json, quantities
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.names import ALLOCATED, first_of


class AllocatedFunction(Struct, frozen=True):
    """A virtual function that goes with a device."""

    minor: int
    bus: str = ""


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """How much a pod has of one device, by today's names."""

    type: str
    minor: int
    resources: Amounts = field(default_factory=dict, hash=False)
    id: str = ""
    functions: tuple[AllocatedFunction, ...] = ()


Allocations = tuple[DeviceAllocation, ...]


def allocations_of(pod: Object) -> Allocations:
    """Return the devices that a pod's annotation names; () for a pod without one.

    Raises BadDeviceError.
    """
    text = annotations_of(pod).get(ALLOCATED, "")
    return parse_allocations(text, f"{key_of(pod)}: {ALLOCATED}") if text else ()


def parse_allocations(text: str, where: str = ALLOCATED) -> Allocations:
    """Return an annotation's allocations, the seed's spellings included.

    Raises BadDeviceError.
    """
    by_type = parsed_json(text, where)
    if not isinstance(by_type, Mapping):
        raise BadDeviceError(f"{where}: must be {{type: [{{minor, resources}}]}}")
    found: list[DeviceAllocation] = []
    for kind, listed in by_type.items():
        for index, value in enumerate(a_list(listed, f"{where}.{kind}")):
            at = f"{where}.{kind}[{index}]"
            each = an_object(value, at)
            minor = a_number(each.get("minor", 0), f"{at}.minor")
            resources = first_of(each, "resources", "resource", "resouurces")
            functions = a_list(an_object(each.get("extension"), f"{at}.extension").get("vfs"), f"{at}.extension.vfs")
            found.append(
                DeviceAllocation(
                    str(kind),
                    minor,
                    amounts(resources, f"{at}.resources"),
                    str(each.get("id") or ""),
                    tuple(_function(vf, f"{at}.extension.vfs") for vf in functions),
                )
            )
    return tuple(found)


def _function(value: Any, where: str) -> AllocatedFunction:
    function = an_object(value, where)
    return AllocatedFunction(a_number(function.get("minor", 0), f"{where}.minor"), str(function.get("busID") or ""))


def allocations_text(allocations: Sequence[DeviceAllocation]) -> str:
    """Return the annotation that says this: types and minors in order."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for each in sorted(allocations, key=lambda each: (each.type, each.minor)):
        entry: dict[str, Any] = {"minor": each.minor, "resources": quantities(each.resources)}
        if each.id:
            entry["id"] = each.id
        if each.functions:
            vfs = [{"minor": vf.minor, "busID": vf.bus} if vf.bus else {"minor": vf.minor} for vf in each.functions]
            entry["extension"] = {"vfs": vfs}
        by_type.setdefault(each.type, []).append(entry)
    return json.dumps(by_type, separators=(",", ":"))

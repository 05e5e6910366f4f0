"""Which devices a pod has, as its annotation says it (contract koordinator.md section 1): frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mews.kube.api.objects import Object, annotations_of, key_of
from mews.systems.koordinator.devices import Amounts, amounts, parsed_json, quantities
from mews.systems.koordinator.errors import BadDeviceObject
from mews.systems.koordinator.names import ALLOCATED, first_of


@dataclass(frozen=True, slots=True)
class AllocatedFunction:
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
    """The devices that a pod's annotation names; () for a pod without one.

    Raises BadDeviceObject.
    """
    text = annotations_of(pod).get(ALLOCATED, "")
    return parse_allocations(text, f"{key_of(pod)}: {ALLOCATED}") if text else ()


def parse_allocations(text: str, where: str = ALLOCATED) -> Allocations:
    """An annotation's allocations, the seed's spellings included.

    Raises BadDeviceObject.
    """
    by_type = parsed_json(text, where)
    if not isinstance(by_type, Mapping):
        raise BadDeviceObject(f"{where}: must be {{type: [{{minor, resources}}]}}")
    found: list[DeviceAllocation] = []
    for kind, listed in by_type.items():
        for index, each in enumerate(listed or ()):
            at = f"{where}.{kind}[{index}]"
            minor = each.get("minor", 0) if isinstance(each, Mapping) else None
            if isinstance(minor, bool) or not isinstance(minor, int):
                raise BadDeviceObject(f"{at}.minor: {minor!r}: must be a whole number")
            resources = first_of(each, "resources", "resource", "resouurces")
            functions = (each.get("extension") or {}).get("vfs") or ()
            found.append(
                DeviceAllocation(
                    str(kind),
                    minor,
                    amounts(resources, f"{at}.resources"),
                    str(each.get("id") or ""),
                    tuple(AllocatedFunction(vf.get("minor", 0), str(vf.get("busID") or "")) for vf in functions),
                )
            )
    return tuple(found)


def allocations_text(allocations: Sequence[DeviceAllocation]) -> str:
    """The annotation that says this: types and minors in order."""
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

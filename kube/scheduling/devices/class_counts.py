"""How many devices of a class a node can reach, and how many of them are taken: what scores go by.

Source: calculateDRAResourceTotals of pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
from 1.35 on.
"""

from __future__ import annotations

from typing import NamedTuple

from mews.kube.api.objects import Object
from mews.kube.scheduling.devices.allocator import Taken
from mews.kube.scheduling.devices.errors import SelectorError
from mews.kube.scheduling.devices.inventory import DeviceInventory, NodePlace, OfferedDevice
from mews.kube.scheduling.devices.selectors import holds


class DeviceCount(NamedTuple):
    """Devices of one class on one node."""

    capacity: int
    taken: int


def counted(inventory: DeviceInventory, taken: Taken, device_class: Object, place: NodePlace) -> DeviceCount:
    """Return those that the class selects, in whatever pool: it need not be complete or valid. A device of which a
    share is taken is taken; where a selector cannot be evaluated there are none."""
    spec = device_class.get("spec") or {}
    expressions = [each["cel"]["expression"] for each in spec.get("selectors") or () if each.get("cel")]

    def is_selected(device: OfferedDevice) -> bool:
        return all(holds(expression, device) for expression in expressions)

    try:
        found = [device.id for device in inventory.devices(place) if is_selected(device)]
    except SelectorError:
        return DeviceCount(0, 0)
    return DeviceCount(len(found), sum(each in taken.devices or each in taken.shared for each in found))

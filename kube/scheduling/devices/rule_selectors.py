"""What DeviceTaintRules of Kubernetes 1.34 select by beside names: a device class and expressions.

Source: applyPatches of k8s.io/dynamic-resource-allocation 1.34, resourceslice/tracker. Rules of later releases have
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mews.kube.api.objects import Object
from mews.kube.scheduling.devices.inventory import DeviceId, OfferedDevice, PoolSlice, Spec

ClassOf = Callable[[str], "Object | None"]
"""The device class of that name."""


def expressions_of(chosen: Spec, class_of: ClassOf) -> list[str] | None:
    """Return the expressions that a device must meet, those of the class first; None where there is no such class."""
    name = chosen.get("deviceClassName")
    if name is None:
        return list(_expressions(chosen))
    found = class_of(str(name))
    return None if found is None else [*_expressions(found["spec"]), *_expressions(chosen)]


def _expressions(part: Spec) -> Iterator[str]:
    for selector in part.get("selectors") or ():
        if selector.get("cel") is not None:
            yield str(selector["cel"]["expression"])


def meets(device: Spec, resource_slice: Object, expressions: list[str]) -> bool:
    """Return whether all expressions are true of the device. One that fails is not; the tracker shows it attributes and
    capacity alone."""
    from mews.kube.scheduling.devices.errors import SelectorError
    from mews.kube.scheduling.devices.selectors import holds

    of_slice = PoolSlice({**resource_slice, "spec": {**resource_slice["spec"], "devices": []}})
    shown = {part: device[part] for part in ("attributes", "capacity") if part in device}
    offered = OfferedDevice(DeviceId(of_slice.driver, of_slice.pool, str(device["name"])), shown, of_slice)
    try:
        return all(holds(expression, offered) for expression in expressions)
    except SelectorError:
        return False

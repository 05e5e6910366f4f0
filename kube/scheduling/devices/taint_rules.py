"""DeviceTaintRules as taints of the devices that they select.

Source: k8s.io/dynamic-resource-allocation, resourceslice/tracker. Rules select by driver, pool and device; those of
1.34 select by class and expression, too (``rule_selectors``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.scheduling.devices.rule_selectors import ClassOf, expressions_of, meets

Spec = Mapping[str, Any]


def is_selected(rule: Object, driver: str, pool: str, device: str) -> bool:
    """Return whether the rule is about a device of that name: a rule without a selector is about none, an empty
    selector about all."""
    chosen = rule["spec"].get("deviceSelector")
    if chosen is None:
        return False
    given = (("driver", driver), ("pool", pool), ("device", device))
    return all(chosen.get(part) in (None, name) for part, name in given)


def concern(rules: Iterable[Object], resource_slice: Object) -> bool:
    """Return whether any rule is about a device of the slice, by name."""
    spec = resource_slice["spec"]
    driver, pool = str(spec["driver"]), str(spec["pool"]["name"])
    names = [str(device["name"]) for device in spec.get("devices") or ()]
    return any(is_selected(rule, driver, pool, name) for rule in rules for name in names)


def with_rules(resource_slice: Object, rules: Sequence[Object], class_of: ClassOf) -> Object:
    """Add the rules' taints to the devices that they select, after the taints that the slice has. A slice without such
    a device is returned as it is."""
    spec = resource_slice["spec"]
    driver, pool = str(spec["driver"]), str(spec["pool"]["name"])
    more: dict[int, list[Spec]] = {}
    for rule in rules:
        expressions = expressions_of(rule["spec"].get("deviceSelector") or {}, class_of)
        if expressions is None:
            continue
        for index, device in enumerate(spec.get("devices") or ()):
            if is_selected(rule, driver, pool, str(device["name"])) and (
                not expressions or meets(device, resource_slice, expressions)
            ):
                more.setdefault(index, []).append(rule["spec"]["taint"])
    if not more:
        return resource_slice
    devices = [
        {**device, "taints": [*(device.get("taints") or ()), *more[index]]} if index in more else device
        for index, device in enumerate(spec["devices"])
    ]
    return {**resource_slice, "spec": {**spec, "devices": devices}}

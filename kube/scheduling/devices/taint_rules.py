"""DeviceTaintRules as taints of the devices that they select.

Source: k8s.io/dynamic-resource-allocation, resourceslice/tracker. Rules are as from 1.36 on: they select by driver,
pool and device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object

Spec = Mapping[str, Any]


def is_selected(rule: Object, driver: str, pool: str, device: str) -> bool:
    """Whether the rule is about that device: a rule without a selector is about none, an empty selector about all."""
    chosen = rule["spec"].get("deviceSelector")
    if chosen is None:
        return False
    given = (("driver", driver), ("pool", pool), ("device", device))
    return all(chosen.get(part) in (None, name) for part, name in given)


def with_rules(resource_slice: Object, rules: Sequence[Object]) -> Object:
    """Add the rules' taints to the devices that they select, after the taints that the slice has. A slice without such
    a device is returned as it is."""
    spec = resource_slice["spec"]
    driver, pool = str(spec["driver"]), str(spec["pool"]["name"])
    devices, is_changed = [], False
    for device in spec.get("devices") or ():
        more = [rule["spec"]["taint"] for rule in rules if is_selected(rule, driver, pool, str(device["name"]))]
        devices.append({**device, "taints": [*(device.get("taints") or ()), *more]} if more else device)
        is_changed = is_changed or bool(more)
    return {**resource_slice, "spec": {**spec, "devices": devices}} if is_changed else resource_slice

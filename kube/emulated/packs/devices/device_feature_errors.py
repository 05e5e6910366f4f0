"""What is wrong with what features of resource.k8s.io add to slices: taints, counters, binding conditions, places of
devices. While a feature is off its fields are gone before this looks (pkg/apis/resource/validation of 1.37)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import node_selector_errors
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.packs.devices.device_errors import each, label_errors

Part = Mapping[str, Any]

_EFFECTS = ("NoExecute", "NoSchedule")
"""From 1.35 on None, too (``words.json``)."""
_MOST_TAINTS = 16
_MOST_COUNTER_SETS = 8
_MOST_COUNTERS = 32
_SOME_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)


def slice_feature_errors(spec: Part) -> Iterator[FieldError]:
    """Yield the errors of a slice beside its devices."""
    yield from each(spec.get("sharedCounters") or (), "spec.sharedCounters", _counter_set_errors, _MOST_COUNTER_SETS)


def device_feature_errors(device: Part, path: str, *, placed_apart: bool) -> Iterator[FieldError]:
    """Yield the errors of a device; ``placed_apart``: devices say themselves on which nodes they are."""
    yield from each(common.items(device, "taints"), f"{path}.taints", device_taint_errors, _MOST_TAINTS)
    yield from each(common.items(device, "consumesCounters"), f"{path}.consumesCounters", _consumption_errors)
    yield from _place_errors(device, path, placed_apart=placed_apart)
    yield from binding_errors(device, path)


def device_taint_errors(taint: Part, path: str) -> Iterator[FieldError]:
    """Yield the errors of a taint, in a slice or in a rule (validateDeviceTaint)."""
    yield from names.qualified_errors(f"{path}.key", taint.get("key", ""))
    if taint.get("value"):
        yield from common.bads(f"{path}.value", taint["value"], names.label_value_texts(taint["value"]))
    if not taint.get("effect"):
        yield refusals.required(f"{path}.effect")
    else:
        yield from common.option(f"{path}.effect", taint["effect"], _EFFECTS)


def _counter_set_errors(counters: Part, path: str) -> Iterator[FieldError]:
    yield from _counter_name_errors(counters.get("name", ""), f"{path}.name")
    yield from _counters_errors(counters, path)


def _consumption_errors(consumed: Part, path: str) -> Iterator[FieldError]:
    yield from _counter_name_errors(consumed.get("counterSet", ""), f"{path}.counterSet")
    yield from _counters_errors(consumed, path)


def _counter_name_errors(name: str, path: str) -> Iterator[FieldError]:
    yield from label_errors(path, name) if name else [refusals.required(path)]


def _counters_errors(part: Part, path: str) -> Iterator[FieldError]:
    counters = common.part_of(part, "counters")
    if not counters:
        yield refusals.required(f"{path}.counters")
    elif len(counters) > _MOST_COUNTERS:
        yield common.too_many(f"{path}.counters", len(counters), _MOST_COUNTERS)
    for name in sorted(counters):
        yield from label_errors(f"{path}.counters", name)


def _place_errors(device: Part, path: str, *, placed_apart: bool) -> Iterator[FieldError]:
    given = [name for name in ("nodeName", "nodeSelector", "allNodes") if device.get(name) is not None]
    if not placed_apart:
        if given:
            text = (
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
                "in the ResourceSlice spec"
            )
            yield refusals.bad(path, None, text)
        return
    if device.get("nodeName"):
        yield from names.subdomain_errors(f"{path}.nodeName", device["nodeName"])
    elif "nodeName" in given:
        yield refusals.bad(f"{path}.nodeName", "", "must not be empty")
    if device.get("nodeSelector") is not None:
        yield from node_selector_errors(device["nodeSelector"], f"{path}.nodeSelector")
    if device.get("allNodes") is False:
        yield refusals.bad(f"{path}.allNodes", False, "must be either unset or set to true")
    meant = [name for name in given if device[name] not in ("", False)]
    if not meant:
        yield refusals.required(path, _SOME_PLACE)
    elif len(meant) > 1:
        yield refusals.bad(path, "{" + ", ".join(f"`{name}`" for name in meant) + "}", _SOME_PLACE)


def binding_errors(part: Part, path: str) -> Iterator[FieldError]:
    """Yield the errors of the conditions that a device, or what is allocated of it, waits for."""
    wanted, failed = common.items(part, "bindingConditions"), common.items(part, "bindingFailureConditions")
    for name, given in (("bindingConditions", wanted), ("bindingFailureConditions", failed)):
        for index, condition in enumerate(given):
            yield from names.qualified_errors(f"{path}.{name}[{index}]", condition)
    yield from _repeated(wanted, f"{path}.bindingConditions")
    yield from _repeated(failed, f"{path}.bindingFailureConditions")
    for index, condition in enumerate(failed):
        if condition in wanted:
            text = "bindingFailureConditions must not overlap with bindingConditions"
            yield refusals.bad(f"{path}.bindingFailureConditions[{index}]", condition, text)
    if failed and not wanted:
        text = "bindingConditions are required to use bindingFailureConditions"
        yield refusals.bad(f"{path}.bindingConditions", part.get("bindingConditions"), text)
    if wanted and not failed:
        text = "bindingFailureConditions are required to use bindingConditions"
        yield refusals.bad(f"{path}.bindingFailureConditions", part.get("bindingFailureConditions"), text)


def _repeated(given: Sequence[str], path: str) -> Iterator[FieldError]:
    for index, condition in enumerate(given):
        if condition in given[:index]:
            yield refusals.duplicate(f"{path}[{index}]", condition)

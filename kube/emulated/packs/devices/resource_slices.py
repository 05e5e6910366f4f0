"""ResourceSlices (pkg/apis/resource/validation, pkg/registry/resource/resourceslice)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import node_selector_errors
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors
from mews.kube.emulated.packs.devices.capacity_errors import capacity_errors
from mews.kube.emulated.packs.devices.device_errors import (
    MOST,
    attribute_name_errors,
    each,
    label_errors,
    pool_name_errors,
    repeated,
)
from mews.kube.emulated.packs.devices.device_feature_errors import device_feature_errors, slice_feature_errors

Part = Mapping[str, Any]


_MOST_DEVICES = 128


_LONGEST_VALUE = 64


_NUMBER = r"(0|[1-9]\d*)"


_EARLY = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"


_BUILD = "[0-9a-zA-Z-]+"


_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_EARLY}(\.{_EARLY})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII)


_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def _slice_errors(resource_slice: Object) -> list[FieldError]:
    return list(_slice_spec_errors(resource_slice["spec"], None))


def _slice_change_errors(new: Object, old: Object, _subresource: str) -> list[FieldError]:
    return list(_slice_spec_errors(new["spec"], old["spec"]))


def _slice_spec_errors(spec: Part, before: Part | None) -> Iterator[FieldError]:
    pool = common.part_of(spec, "pool")
    yield from driver_name_errors(spec.get("driver", ""), "spec.driver")
    yield from pool_name_errors(pool.get("name", ""), "spec.pool.name")
    if pool.get("resourceSliceCount", 0) <= 0:
        count = pool.get("resourceSliceCount", 0)
        yield refusals.bad("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if pool.get("generation", 0) < 0:
        yield refusals.bad("spec.pool.generation", pool["generation"], common.NOT_NEGATIVE)
    if before is not None:
        former = common.part_of(before, "pool")
        yield from common.fixed("spec.pool.name", pool.get("name", ""), former.get("name", ""))
        yield from common.fixed("spec.driver", spec.get("driver", ""), before.get("driver", ""))
        yield from common.fixed("spec.nodeName", spec.get("nodeName"), before.get("nodeName"))
    yield from _place_errors(spec)
    yield from slice_feature_errors(spec)
    devices, apart = common.items(spec, "devices"), bool(spec.get("perDeviceNodeSelection"))

    def device_errors(device: Part, path: str) -> Iterator[FieldError]:
        yield from _device_errors(device, path)
        yield from device_feature_errors(device, path, placed_apart=apart)

    yield from each(devices, "spec.devices", device_errors, _MOST_DEVICES)
    yield from repeated(devices, "spec.devices", "name")


def default_taint_time(taint: Any, now: str) -> None:
    """A taint counts from now unless it says since when (SetDefaults_DeviceTaint)."""
    if isinstance(taint, MutableMapping) and taint.get("timeAdded") is None:
        taint["timeAdded"] = now


def _default_taint_times(resource_slice: Object, now: str) -> None:
    for device in common.items(resource_slice["spec"], "devices"):
        for taint in common.items(device or {}, "taints"):
            default_taint_time(taint, now)


# Complex: upstream's order of errors, which clients see.
def _place_errors(spec: Part) -> Iterator[FieldError]:  # noqa: C901
    given, name, selector = [], spec.get("nodeName"), spec.get("nodeSelector")
    if name:
        given.append("`nodeName`")
        yield from names.subdomain_errors("spec.nodeName", name)
    elif name is not None:
        yield refusals.bad("spec.nodeName", name, "must be either unset or set to a non-empty string")
    if selector is not None:
        given.append("`nodeSelector`")
        yield from node_selector_errors(selector, "spec.nodeSelector")
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            shown = None if terms is None else [_shown_term(term or {}) for term in terms]
            path = "spec.nodeSelector.nodeSelectorTerms"
            yield refusals.bad(path, shown, "must have exactly one node selector term")
    if spec.get("allNodes"):
        given.append("`allNodes`")
    elif spec.get("allNodes") is not None:
        yield refusals.bad("spec.allNodes", False, "must be either unset or set to true")
    if spec.get("perDeviceNodeSelection"):
        given.append("`perDeviceNodeSelection`")
    elif spec.get("perDeviceNodeSelection") is not None:
        yield refusals.bad("spec.perDeviceNodeSelection", False, "must be either unset or set to true")
    if not given:
        yield refusals.required("spec", _ONE_PLACE)
    elif len(given) > 1:
        shown_fields = "{" + ", ".join(given) + "}"
        yield refusals.bad("spec", shown_fields, f"{_ONE_PLACE}, but multiple fields are set")


def _shown_term(term: Part) -> dict[str, Any]:
    """Return a term as upstream's internal type is printed."""

    def expressions(name: str) -> list[dict[str, Any]] | None:
        given = term.get(name)
        if given is None:
            return None
        return [
            {"Key": part.get("key", ""), "Operator": part.get("operator", ""), "Values": part.get("values")}
            for part in given
        ]

    return {"MatchExpressions": expressions("matchExpressions"), "MatchFields": expressions("matchFields")}


def _device_errors(device: Part, path: str) -> Iterator[FieldError]:
    attributes, capacity = common.part_of(device, "attributes"), common.part_of(device, "capacity")
    yield from label_errors(f"{path}.name", device.get("name", ""))
    total = len(attributes) + len(capacity)
    if total > MOST:
        yield refusals.bad(path, total, f"the total number of attributes and capacities must not exceed {MOST}")
    for name in sorted(attributes):
        here = f"{path}.attributes[{_shortened(name)}]"
        yield from attribute_name_errors(name, here)
        yield from _attribute_errors(attributes[name] or {}, here)
    for name in sorted(capacity):
        here = f"{path}.capacity[{_shortened(name)}]"
        yield from attribute_name_errors(name, here)
        yield from capacity_errors(capacity[name] or {}, here, shared=bool(device.get("allowMultipleAllocations")))


def _shortened(key: str, most: int = 63 + 1 + 32) -> str:
    if len(key) <= most:
        return key
    left = most - 3
    return f"{key[: (left + 1) // 2]}...{key[len(key) - left // 2 :]}"


def _attribute_errors(attribute: Part, path: str) -> Iterator[FieldError]:
    text, version = attribute.get("string"), attribute.get("version")
    if text is not None and len(text.encode()) > _LONGEST_VALUE:
        yield common.too_long(f"{path}.string", _LONGEST_VALUE)
    if version is not None:
        if not _VERSION.fullmatch(version):
            yield refusals.bad(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0")
        if len(version.encode()) > _LONGEST_VALUE:
            yield common.too_long(f"{path}.version", _LONGEST_VALUE)
    given = [attribute.get(name) for name in ("int", "bool", "string", "version")]
    several = sum(value is not None for value in given)
    if several == 0:
        yield refusals.required(path, "exactly one value must be specified")
    elif several > 1:
        shown = dict(zip(("IntValue", "BoolValue", "StringValue", "VersionValue"), given, strict=True))
        yield refusals.bad(path, shown, "exactly one value must be specified")


def _resource_slice(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    return [spec.get("nodeName", ""), spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")]


RULES = Rules(
    printer=Printer(_resource_slice, is_part=True),
    default_times=_default_taint_times,
    validate=_slice_errors,
    validate_update=_slice_change_errors,
)

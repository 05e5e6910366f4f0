"""Kinds of resource.k8s.io: claims, their templates, classes and slices (pkg/registry/resource).

Fields whose feature gates are off are dropped before anything is looked at (``types.gated_fields``), as upstream does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resources import NAMESPACES
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import node_selector_errors
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.store import metadata_errors, names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.resource_errors import is_extended
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors
from mews.kube.emulated.packs.devices.capacity_errors import capacity_errors
from mews.kube.emulated.packs.devices.claim_status_errors import claim_status_errors, drop_deallocated
from mews.kube.emulated.packs.devices.device_errors import (
    MOST,
    attribute_name_errors,
    claim_spec_errors,
    configuration_errors,
    each,
    label_errors,
    pool_name_errors,
    repeated,
    selectors_errors,
)
from mews.kube.emulated.packs.devices.device_feature_errors import device_feature_errors, slice_feature_errors

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store

Part = Mapping[str, Any]
_Errors = Callable[[Object], list[FieldError]]

_ADMIN = "resource.kubernetes.io/admin-access"
_MOST_DEVICES = 128
_LONGEST_VALUE = 64
_NUMBER = r"(0|[1-9]\d*)"
_EARLY = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_EARLY}(\.{_EARLY})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII)
_TEMPLATE_FIELDS = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def _default_requests(spec: Part) -> None:
    for request in common.items(common.part_of(spec, "devices"), "requests"):
        for wanted in ((request or {}).get("exactly"), *common.items(request or {}, "firstAvailable")):
            if isinstance(wanted, MutableMapping):
                mode = wanted.setdefault("allocationMode", "ExactCount") or "ExactCount"
                wanted["allocationMode"] = mode
                if mode == "ExactCount" and not wanted.get("count"):
                    wanted["count"] = 1


def _default_claim(claim: Object) -> None:
    _default_requests(claim["spec"])


def _default_template(template: Object) -> None:
    _default_requests(common.part_of(template["spec"], "spec"))


class _ClaimRules:
    """Of claims and their templates; ``shares``: whether selectors may ask if a device is shared."""

    def __init__(self, *, shares: bool) -> None:
        self._shares = shares

    def claims(self) -> Rules:
        """Return that of claims."""
        return Rules(
            default=_default_claim,
            prepare_update=drop_deallocated,
            admit=partial(_check_claim, others=self.claim_errors),
            validate=self.claim_errors,
            validate_update=self.claim_change_errors,
            validate_status_update=claim_status_errors,
            metadata=MetadataChecks(on_update=(METADATA, METADATA_UPDATE), status_leaves=RESET_WITH_STATUS),
        )

    def templates(self) -> Rules:
        """Return that of templates of claims."""
        return Rules(
            default=_default_template,
            admit=partial(_check_template, others=self.template_errors),
            validate=self.template_errors,
            validate_update=self.template_change_errors,
            metadata=MetadataChecks(on_update=(METADATA, METADATA_UPDATE)),
        )

    def classes(self) -> Rules:
        """Return that of device classes."""
        return Rules(
            validate=self.class_errors,
            validate_update=self.class_change_errors,
            metadata=MetadataChecks(on_update=(METADATA, METADATA_UPDATE)),
        )

    def claim_errors(self, claim: Object) -> list[FieldError]:
        return list(claim_spec_errors(claim["spec"], "spec", shares=self._shares))

    def claim_change_errors(self, new: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource:
            return []
        again = claim_spec_errors(new["spec"], "spec", shares=self._shares, stored=True)
        changed = common.fixed("spec", new["spec"], old["spec"], "resource.ResourceClaimSpec")
        return [*self.claim_errors(new), *changed, *again]

    def template_errors(self, template: Object) -> list[FieldError]:
        return list(self._template_spec_errors(template["spec"]))

    def _template_spec_errors(self, spec: Part, *, stored: bool = False) -> Iterator[FieldError]:
        metadata = common.part_of(spec, "metadata")
        for error in (*metadata_errors.annotation_errors(metadata), *metadata_errors.label_errors(metadata)):
            yield FieldError(f"spec.{error.path}", error.reason, error.text)
        for name in _TEMPLATE_FIELDS:
            if metadata.get(name) not in (None, "", 0):
                shown = "uID" if name == "uid" else name
                yield refusals.forbidden_field(f"spec.metadata.{shown}", "cannot be set")
        yield from claim_spec_errors(common.part_of(spec, "spec"), "spec.spec", shares=self._shares, stored=stored)

    def template_change_errors(self, new: Object, old: Object, _subresource: str) -> list[FieldError]:
        again = self._template_spec_errors(new["spec"], stored=True)
        changed = common.fixed("spec", new["spec"], old["spec"], "resource.ResourceClaimTemplateSpec")
        return [*self.template_errors(new), *changed, *again]

    def class_errors(self, device_class: Object) -> list[FieldError]:
        return list(self._class_spec_errors(device_class["spec"]))

    def _class_spec_errors(self, spec: Part, *, stored: bool = False) -> Iterator[FieldError]:
        resource = spec.get("extendedResourceName")
        if resource is not None and not is_extended(resource):
            yield refusals.bad("spec.extendedResourceName", resource, "must be a valid extended resource name")
        yield from selectors_errors(common.items(spec, "selectors"), "spec.selectors", shares=self._shares)
        config = common.items(spec, "config")
        yield from each(config, "spec.config", lambda part, at: configuration_errors(part, at, stored=stored), MOST)

    def class_change_errors(self, new: Object, old: Object, _subresource: str) -> list[FieldError]:
        stored = new["spec"].get("config") == old["spec"].get("config")
        return [*self.class_errors(new), *self._class_spec_errors(new["spec"], stored=stored)]


def _check_claim(store: Store, kind: Kind, claim: Object, *, others: _Errors) -> None:
    _check_admin(store, kind, claim, claim["spec"], others)


def _check_template(store: Store, kind: Kind, template: Object, *, others: _Errors) -> None:
    _check_admin(store, kind, template, common.part_of(template["spec"], "spec"), others)


def _check_admin(store: Store, kind: Kind, obj: Object, spec: Part, others: _Errors) -> None:
    """Administrators' access to devices is for namespaces that are marked for it."""
    requests = common.items(common.part_of(spec, "devices"), "requests")
    asked = [
        index for index, request in enumerate(requests) if common.part_of(request or {}, "exactly").get("adminAccess")
    ]
    namespace = store.find(store.kinds.of(NAMESPACES), "", obj["metadata"].get("namespace", "")) if asked else None
    if asked and labels_of(namespace or {"metadata": {}}).get(_ADMIN) != "true":
        text = f"admin access to devices requires the `{_ADMIN}: true` label on the containing namespace"
        error = refusals.forbidden_field(f"spec.devices.requests[{asked[0]}].adminAccess", text)
        errors = [error, *metadata_errors.created_errors(metadata_errors.USUAL, obj), *others(obj)]
        raise refusals.invalid(kind, obj["metadata"].get("name", ""), errors)


# Slices


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


_PLAIN, _SHARING = _ClaimRules(shares=False), _ClaimRules(shares=True)
CLAIMS, CLAIM_TEMPLATES, CLASSES = _PLAIN.claims(), _PLAIN.templates(), _PLAIN.classes()
SHARING_CLAIMS, SHARING_TEMPLATES, SHARING_CLASSES = _SHARING.claims(), _SHARING.templates(), _SHARING.classes()
"""Where devices may be shared (DRAConsumableCapacity)."""
SLICES = Rules(default_times=_default_taint_times, validate=_slice_errors, validate_update=_slice_change_errors)

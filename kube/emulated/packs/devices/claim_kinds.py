"""Kinds of resource.k8s.io: claims, their templates, and classes (pkg/registry/resource).

Fields whose feature gates are off are dropped before anything is looked at (``types.gated_fields``), as upstream does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from functools import partial
from typing import TYPE_CHECKING

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resources import NAMESPACES
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.store import metadata_errors, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer
from mews.kube.emulated.kinds.pods.resource_errors import is_extended
from mews.kube.emulated.packs.devices.claim_status_errors import claim_status_errors, drop_deallocated
from mews.kube.emulated.packs.devices.device_errors import (
    MOST,
    claim_spec_errors,
    configuration_errors,
    each,
    selectors_errors,
)

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.tables.cells import Row, status_of
from mews.kube.emulated.packs.devices.resource_slices import Part

_Errors = Callable[[Object], list[FieldError]]


_ADMIN = "resource.kubernetes.io/admin-access"


_TEMPLATE_FIELDS = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip


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


def _resource_claim(obj: Object, _: float) -> Row:
    status, going = status_of(obj), bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if going else []
    if status.get("allocation"):
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    elif not going:
        states.append("pending")
    return [",".join(states)]


class _ClaimRules:
    """Of claims and their templates; ``shares``: whether selectors may ask if a device is shared."""

    def __init__(self, *, shares: bool) -> None:
        self._shares = shares

    def claims(self) -> Rules:
        """Return that of claims."""
        return Rules(
            printer=Printer(_resource_claim, is_part=True),
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


_PLAIN, _SHARING = _ClaimRules(shares=False), _ClaimRules(shares=True)


CLAIMS, CLAIM_TEMPLATES, CLASSES = _PLAIN.claims(), _PLAIN.templates(), _PLAIN.classes()


SHARING_CLAIMS, SHARING_TEMPLATES, SHARING_CLASSES = _SHARING.claims(), _SHARING.templates(), _SHARING.classes()
"""Where devices may be shared (DRAConsumableCapacity)."""

"""PersistentVolumeClaims (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mews.kube.api.objects import Object, annotations_of, clone
from mews.kube.api.quantities import canonical, milli, parse, whole
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.kinds.pods.resource_errors import quantity_errors
from mews.kube.emulated.kinds.volumes.common import CLASS_ANNOTATION, class_of_storage, phase_of, short_modes
from mews.kube.emulated.kinds.volumes.volume_errors import access_mode_errors
from mews.kube.emulated.types import internal_kinds

_SIMPLE_SOURCES = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))


_RESIZE_STATES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizePending", "NodeResizeInProgress",
    "NodeResizeInfeasible",
)  # fmt: skip


_CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def claim_spec_errors(spec: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a claim's spec, of a claim or of a template (ValidatePersistentVolumeClaimSpec)."""
    if not items(spec, "accessModes"):
        yield refusals.required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_errors(part_of(spec, "selector"), f"{path}.selector")
    yield from access_mode_errors(items(spec, "accessModes"), f"{path}.accessModes")
    amount, here = part_of(part_of(spec, "resources"), "requests").get("storage"), f"{path}.resources[storage]"
    if amount is None:
        yield refusals.required(here)
    elif parse(amount) <= 0:
        yield refusals.bad(here, amount, "must be greater than zero")
    else:
        yield from quantity_errors("storage", amount, here)
    if spec.get("storageClassName"):
        yield from names.subdomain_errors(f"{path}.storageClassName", spec["storageClassName"])
    if spec.get("volumeMode") is not None:
        yield from common.option(f"{path}.volumeMode", spec["volumeMode"], ("Block", "Filesystem"))
    yield from _origin_errors(spec, path)
    if spec.get("volumeAttributesClassName"):
        yield from names.subdomain_errors(f"{path}.volumeAttributesClassName", spec["volumeAttributesClassName"])


def _origin_errors(spec: Part, path: str) -> Iterator[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for name, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            yield from _reference_errors(given, f"{path}.{name}")
    if source is None or reference is None:
        return
    if reference.get("namespace"):  # the value is a path, of which JSON shows nothing
        text = "may not be specified when dataSourceRef.namespace is specified"
        yield refusals.bad(path, {}, text)
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield refusals.bad(path, {}, "must match dataSourceRef")


def _reference_errors(reference: Part, path: str) -> Iterator[FieldError]:
    kind, group = reference.get("kind", ""), reference.get("apiGroup") or ""
    for name in ("name", "kind"):
        if not reference.get(name):
            yield refusals.required(f"{path}.{name}")
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield refusals.bad(path, kind, text)
    if group:
        yield from names.subdomain_errors(f"{path}.apiGroup", group)
    if reference.get("namespace"):
        yield from common.label(f"{path}.namespace", reference["namespace"])


def _default_claim(claim: Object) -> None:
    """The simple form takes claims and snapshots alone; it is one of the other, and the other way round."""
    spec = claim["spec"]
    if (spec.get("dataSourceRef") or {}).get("namespace"):
        spec.pop("dataSourceRef")  # across namespaces is behind a feature gate that is off
    if spec.get("dataSourceRef") is None and not _is_claim_or_snapshot(spec.get("dataSource") or {}):
        spec.pop("dataSource", None)
    _normalize(spec)


def _is_claim_or_snapshot(source: Part) -> bool:
    return (source.get("kind"), source.get("apiGroup") or "") in _SIMPLE_SOURCES


def _prepare_claim_update(claim: Object, old: Object) -> None:
    """A source that the claim has had may be named in the simple form, whatever it is."""
    if any(old["spec"].get(name) is not None for name in ("dataSource", "dataSourceRef")):
        _normalize(claim["spec"])


def _normalize(spec: dict[str, Any]) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = clone(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: reference[name] for name in ("apiGroup", "kind", "name") if name in reference}


def _claim_errors(claim: Object) -> list[FieldError]:
    return [*claim_spec_errors(claim["spec"], "spec")]


def _claim_change_errors(new: Object, old: Object, _: str) -> list[FieldError]:
    return [*_claim_errors(new), *_claim_errors(new), *_compare_claim(new, old)]


def _compare_claim(new: Object, old: Object) -> Iterator[FieldError]:
    fixed, before = clone(new["spec"]), clone(old["spec"])
    if not before.get("volumeName"):
        before["volumeName"] = fixed.get("volumeName", "")
    noted, was_noted = annotations_of(new).get(CLASS_ANNOTATION), annotations_of(old).get(CLASS_ANNOTATION)
    given, class_before = fixed.get("storageClassName"), before.get("storageClassName")
    if was_noted is not None and class_before is None and given == was_noted and noted in (None, was_noted):
        fixed.pop("storageClassName")
    else:
        yield from common.fixed(f"metadata.annotations.{CLASS_ANNOTATION}", noted or "", was_noted or "")
        if given is not None and class_before is None and was_noted in (None, given):
            fixed.pop("storageClassName")
    asked, had = (
        part_of(part_of(spec, "resources"), "requests").get("storage", "0") for spec in (new["spec"], old["spec"])
    )
    if part_of(new, "status").get("phase") == "Bound":
        if part_of(part_of(fixed, "resources"), "requests"):
            fixed["resources"]["requests"]["storage"] = had
        fixed["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    if _given_fields(fixed) != _given_fields(before):
        changed = internal_kinds.difference(before, fixed, "core.PersistentVolumeClaimSpec")
        yield refusals.forbidden_field("spec", f"{_CLAIM_FIXED}\n{changed}")
    capacity = part_of(part_of(old, "status"), "capacity").get("storage", "0")
    if parse(asked) < parse(had) and parse(asked) <= parse(capacity):
        text = "field can not be less than status.capacity"
        yield refusals.forbidden_field("spec.resources.requests.storage", text)
    yield from common.fixed("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
    name = "volumeAttributesClassName"
    now, applied = new["spec"].get(name), part_of(old, "status").get("currentVolumeAttributesClassName")
    if now != old["spec"].get(name) and applied is not None and not now:
        how = "nil" if now is None else "empty string"
        text = f"update to {how} is forbidden when status.currentVolumeAttributesClassName is not nil"
        yield refusals.forbidden_field(f"spec.{name}", text)


def _given_fields(spec: Part) -> dict[str, Any]:
    empty = {"accessModes": [], "volumeName": "", "resources": {}}
    return {name: value for name, value in spec.items() if value is not None and value != empty.get(name, ())}


def _claim_warnings(claim: Object, _: Object | None) -> list[str]:
    found = []
    if CLASS_ANNOTATION in annotations_of(claim):
        text = 'deprecated since v1.8; use "storageClassName" attribute instead'
        found.append(f"metadata.annotations[{CLASS_ANNOTATION}]: {text}")
    return found + claim_spec_warnings(claim["spec"], "spec")


def claim_spec_warnings(spec: Part, path: str) -> list[str]:
    """Return what is given of a claim's spec that is taken."""
    found = []
    for part in ("requests", "limits"):
        amount = part_of(part_of(spec, "resources"), part).get("storage", "0")
        if milli(amount) % 1000:
            text = f'fractional byte value "{canonical(amount)}" is invalid, must be an integer'
            found.append(f"{path}.resources.{part}[storage]: {text}")
    return found


def _claim_status_errors(new: Object, _: Object) -> list[FieldError]:
    return [*_written_status_errors(part_of(new, "status"))]


def _written_status_errors(status: Part) -> Iterator[FieldError]:
    for name, amount in part_of(status, "capacity").items():
        yield from _basic_errors(f"status.capacity[{name}]", amount)
    path = "status.allocatedResourceStatuses"
    for name, state in part_of(status, "allocatedResourceStatuses").items():
        yield from _key_errors(path, name)
        if state not in _RESIZE_STATES:
            yield refusals.unsupported(path, name, sorted(_RESIZE_STATES))
    path = "status.allocatedResources"
    for name, amount in part_of(status, "allocatedResources").items():
        wrong = _key_errors(path, name) or _basic_errors(f"{path}[{name}]", amount)
        yield from wrong or common.amount_not_negative(f"{path}[{name}]", amount)


def _basic_errors(path: str, amount: str) -> list[FieldError]:
    value = whole(amount)
    return [] if value >= 0 else [refusals.bad(path, value, "must be a valid resource quantity")]


def _key_errors(path: str, name: str) -> list[FieldError]:
    found = names.qualified_errors(path, name)
    native = "/" not in name or "kubernetes.io/" in name
    return found or ([refusals.unsupported(path, name, ("storage",))] if native and name != "storage" else [])


def _claim(obj: Object, _: float) -> Row:
    spec, status, capacity, modes = spec_of(obj), status_of(obj), "", ""
    if spec.get("volumeName"):
        modes = short_modes(status.get("accessModes"))
        capacity = (status.get("capacity") or {}).get("storage", "0")
    attributes, mode = spec.get("volumeAttributesClassName", "<unset>"), spec.get("volumeMode", "<unset>")
    return [phase_of(obj), spec.get("volumeName", ""), capacity, modes, class_of_storage(obj), attributes, mode]


RULES = Rules(
    printer=Printer(_claim, is_part=True),
    default=_default_claim,
    prepare_update=_prepare_claim_update,
    validate=_claim_errors,
    validate_update=_claim_change_errors,
    validate_status_update=_claim_status_errors,
    warn=_claim_warnings,
    metadata=MetadataChecks(on_update=(METADATA, METADATA_UPDATE, METADATA)),
)

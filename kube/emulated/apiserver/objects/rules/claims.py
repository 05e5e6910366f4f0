"""Rules of persistent volumes and of claims to them (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mews.kube.api.objects import Object, clone
from mews.kube.api.quantities import parse
from mews.kube.emulated.apiserver.objects.rules import checks
from mews.kube.emulated.apiserver.objects.rules.affinity_faults import selector_faults
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.checks import Part, items, part_of
from mews.kube.emulated.apiserver.objects.rules.volume_faults import (
    VOLUME_SOURCES,
    access_mode_faults,
    persistent_volume_spec_faults,
)
from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def claim_spec_faults(spec: Part, path: str) -> Iterator[FieldError]:
    """What is wrong with a claim's spec, of a claim or of a template (ValidatePersistentVolumeClaimSpec)."""
    if not items(spec, "accessModes"):
        yield refusals.required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_faults(part_of(spec, "selector"), f"{path}.selector")
    yield from access_mode_faults(items(spec, "accessModes"), f"{path}.accessModes")
    amount, here = part_of(part_of(spec, "resources"), "requests").get("storage"), f"{path}.resources[storage]"
    if amount is None:
        yield refusals.required(here)
    elif parse(amount) <= 0:
        yield refusals.bad(here, amount, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from names.subdomain_faults(f"{path}.storageClassName", spec["storageClassName"])
    if spec.get("volumeMode") is not None:
        yield from checks.option(f"{path}.volumeMode", spec["volumeMode"], ("Block", "Filesystem"))
    yield from _origin_faults(spec, path)
    if spec.get("volumeAttributesClassName"):
        yield from names.subdomain_faults(f"{path}.volumeAttributesClassName", spec["volumeAttributesClassName"])


def _origin_faults(spec: Part, path: str) -> Iterator[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for name, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            yield from _reference_faults(given, f"{path}.{name}")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        text = "may not be specified when dataSourceRef.namespace is specified"
        yield refusals.bad(path, _path_shown(path), text)
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield refusals.bad(path, _path_shown(path), "must match dataSourceRef")


def _path_shown(path: str) -> Any:
    """Upstream prints the path itself as the value."""
    return f"{path}.dataSource"


def _reference_faults(reference: Part, path: str) -> Iterator[FieldError]:
    kind, group = reference.get("kind", ""), reference.get("apiGroup") or ""
    for name in ("name", "kind"):
        if not reference.get(name):
            yield refusals.required(f"{path}.{name}")
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield refusals.bad(path, kind, text)
    if group:
        yield from names.subdomain_faults(f"{path}.apiGroup", group)
    if reference.get("namespace"):
        yield from checks.label(f"{path}.namespace", reference["namespace"])


def _default_claim(claim: Object) -> None:
    """A source of the simple form is one of the other, and the other way round (pvc strategy)."""
    spec = claim["spec"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None and _is_whole(source):
        spec["dataSourceRef"] = clone(source)
    elif reference is not None and source is None and not reference.get("namespace") and _is_whole(reference):
        spec["dataSource"] = {name: reference[name] for name in ("apiGroup", "kind", "name") if name in reference}


def _is_whole(reference: Part) -> bool:
    return any(reference.get(name) for name in ("apiGroup", "kind", "name"))


def _claim_faults(claim: Object) -> list[FieldError]:
    return [*claim_spec_faults(claim["spec"], "spec")]


def _compare_claim(new: Object, old: Object) -> list[FieldError]:
    fixed, before = clone(new["spec"]), clone(old["spec"])
    if not before.get("volumeName"):
        before["volumeName"] = fixed.get("volumeName")
    asked, had = (
        part_of(part_of(spec, "resources"), "requests").get("storage", "0") for spec in (new["spec"], old["spec"])
    )
    if part_of(new, "status").get("phase") == "Bound":
        fixed.setdefault("resources", {}).setdefault("requests", {})["storage"] = had
        fixed["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    found = []
    if _given_fields(fixed) != _given_fields(before):
        found.append(refusals.forbidden_field("spec", _CLAIM_FIXED))
    if parse(asked) < parse(had) and parse(asked) <= parse(
        part_of(part_of(old, "status"), "capacity").get("storage", "0")
    ):
        text = "field can not be less than status.capacity"
        found.append(refusals.forbidden_field("spec.resources.requests.storage", text))
    return found + checks.fixed("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def _given_fields(spec: Part) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if value not in (None, "", {}, [])}


def _volume_faults(volume: Object) -> list[FieldError]:
    return [*persistent_volume_spec_faults(volume["spec"], "spec")]


def _compare_volume(new: Object, old: Object) -> list[FieldError]:
    after, before, found = new["spec"], old["spec"], []
    if any(_source(after, name) != _source(before, name) for name in VOLUME_SOURCES):
        text = "spec.persistentvolumesource is immutable after creation"
        found.append(refusals.forbidden_field("spec.persistentvolumesource", text))
    found += checks.fixed("volumeMode", after.get("volumeMode"), before.get("volumeMode"))
    if before.get("nodeAffinity") is not None and after.get("nodeAffinity") != before["nodeAffinity"]:
        found.append(refusals.bad("nodeAffinity", after.get("nodeAffinity"), checks.IMMUTABLE))
    name = "volumeAttributesClassName"
    if before.get(name) is not None and after.get(name) is None:
        found.append(refusals.forbidden_field(f"spec.{name}", "update from non-nil value to nil is forbidden"))
    return found


def _source(spec: Part, name: str) -> Any:
    found = spec.get(name)
    if name == "csi" and found:  # a secret to expand with may come later
        return {key: value for key, value in found.items() if key != "controllerExpandSecretRef"}
    return found


def _claim_status_faults(new: Object, old: Object) -> list[FieldError]:
    status, found = part_of(new, "status"), []
    for name, amount in part_of(status, "capacity").items():
        found += _amount_faults(f"status.capacity[{name}]", amount)
    return found


def _amount_faults(path: str, amount: str) -> list[FieldError]:
    return [] if parse(amount) >= 0 else [refusals.bad(path, amount, "must be greater than or equal to 0")]


RULES = Rules(
    default=_default_claim, validate=_claim_faults, compare=_compare_claim, validate_status=_claim_status_faults
)
VOLUMES = Rules(validate=_volume_faults, compare=_compare_volume, validate_status=lambda _new, _old: [])

"""CustomResourceDefinitions: established at once, they add kinds to the registry (contract apiserver.md section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.emulated.apiserver.objects.deletion import delete_collection
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.kinds import Column, Kind, Subresource
from mews.kube.emulated.apiserver.store.refusals import FieldError
from mews.kube.emulated.apiserver.store.selection import EVERYTHING
from mews.kube.emulated.apiserver.types import structural

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.store import Store

_OBJECT_VERBS = ("get", "patch", "update")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which discovery shows them for custom kinds."""

_SCOPES = ("Cluster", "Namespaced")


def _default(crd: Object) -> None:
    spec = crd.setdefault("spec", {})
    given = spec.setdefault("names", {})
    kind = given.get("kind", "")
    if kind:
        given.setdefault("singular", kind.lower())
        given.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})


def _admit(store: Store, _kind: Kind, crd: Object) -> None:
    now = store.timestamp()
    given = crd["spec"]["names"]
    crd["status"] = {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": dict(given),
        "storedVersions": [v["name"] for v in crd["spec"].get("versions") or () if v.get("storage")],
    }


def _condition(kind: str, reason: str, message: str, now: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def _validate(crd: Object) -> list[FieldError]:
    spec, versions = crd["spec"], crd["spec"].get("versions") or []
    found = [*_name_faults(crd)]
    if spec.get("scope") not in _SCOPES:
        found.append(refusals.unsupported("spec.scope", spec.get("scope", ""), _SCOPES))
    found += _version_faults(versions)
    for index, version in enumerate(versions):
        place = "spec" if len(versions) == 1 else f"spec.versions[{index}]"
        found += _parts_of_version(version, index, place)
    return found


def _name_faults(crd: Object) -> Iterator[FieldError]:
    spec, given = crd["spec"], crd["spec"]["names"]
    plural, name = given.get("plural", ""), crd["metadata"].get("name")
    if name != f"{plural}.{spec.get('group', '')}":
        yield refusals.bad("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not spec.get("group"):
        yield refusals.required("spec.group")
    for key in ("plural", "singular", "kind", "listKind"):
        value, path = given.get(key, ""), f"spec.names.{key}"
        if not value:
            yield refusals.required(path)
        elif not names.is_dns_1035(value.lower()) or (key in ("plural", "singular") and value != value.lower()):
            mixed = "" if key in ("plural", "singular") else "may have mixed case, but should otherwise match: "
            yield refusals.bad(path, value, mixed + names.DNS_1035_TEXT)


def _version_faults(versions: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    for index, version in enumerate(versions):
        if not names.is_dns_1035(version.get("name", "")):
            yield refusals.bad(f"spec.versions[{index}].name", version.get("name", ""), names.DNS_1035_TEXT)
    shown = [_shown(version, alike=len(versions) == 1) for version in versions]
    if len({version.get("name") for version in versions}) != len(versions):
        yield refusals.bad("spec.versions", shown, "must contain unique version names")
    stored = [version.get("name") for version in versions if version.get("storage")]
    if len(stored) != 1:
        yield refusals.bad("spec.versions", shown, "must have exactly one version marked as storage version")
        if not stored:
            yield refusals.bad("status.storedVersions", None, "must have at least one stored version")


def _shown(version: Mapping[str, Any], *, alike: bool) -> dict[str, Any]:
    """A version as Go prints it; what all versions share is told elsewhere."""
    return {
        "Name": version.get("name", ""),
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None if alike else version.get("schema"),
        "Subresources": None if alike else version.get("subresources"),
        "AdditionalPrinterColumns": None if alike else version.get("additionalPrinterColumns"),
        "SelectableFields": None if alike else version.get("selectableFields"),
    }


def _parts_of_version(version: Mapping[str, Any], index: int, place: str) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not schema:
        yield refusals.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    else:
        where = "spec.validation" if place == "spec" else f"{place}.schema"
        yield from structural.faults(schema, f"{where}.openAPIV3Schema")
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        for key in ("specReplicasPath", "statusReplicasPath"):
            if not scale.get(key):
                yield refusals.required(f"{place}.subresources.scale.{key}")
    for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
        path = f"{place}.additionalPrinterColumns[{number}]"
        if column.get("type") not in _COLUMN_TYPES:
            text = f"must be one of {','.join(_COLUMN_TYPES)}"
            yield refusals.bad(f"{path}.type", column.get("type", ""), text)
        if not column.get("jsonPath", "").startswith("."):
            text = "must be a simple json path starting with ."
            yield refusals.bad(f"{path}.JSONPath", column.get("jsonPath", ""), text)


def _compare(new: Object, old: Object) -> list[FieldError]:
    found = []
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        before, after = old["spec"], new["spec"]
        for name in path:
            before, after = before.get(name), after.get(name)
        if before != after:
            found.append(refusals.bad(f"spec.{'.'.join(path)}", after, "field is immutable"))
    return found


def kinds_of(crd: Mapping[str, Any]) -> Iterator[Kind]:
    """The kinds that a definition serves, one per served version."""
    spec = crd["spec"]
    given = spec["names"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        resource = Resource(
            spec["group"], version["name"], given["plural"], given["kind"], spec["scope"] == "Namespaced"
        )
        subresources = version.get("subresources") or {}
        yield Kind(
            resource=resource,
            singular=given["singular"],
            short_names=tuple(given.get("shortNames") or ()),
            categories=tuple(given.get("categories") or ()),
            subresources=tuple(_subresources(resource, subresources)),
            storage=(spec["group"], given["plural"]),
            table="custom",
            columns=tuple(_columns(version.get("additionalPrinterColumns") or ())),
            selectable=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
            generation=True,
            status="status" in subresources,
            custom=True,
            verbs=_CUSTOM_VERBS,
            warning=_deprecation(spec, version),
            scale_paths=_scale_paths(subresources.get("scale") or {}),
            schema=version["schema"]["openAPIV3Schema"],
        )


def _deprecation(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """What whoever uses a deprecated version is told."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    others = [v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")]
    instead = f"; use {group}/{others[0]} {kind}" if others else ""
    return f"{group}/{version['name']} {kind} is deprecated{instead}"


def _scale_paths(scale: Mapping[str, str]) -> tuple[str, str, str]:
    spec, status, selector = (
        scale.get(name, "").lstrip(".") for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    )
    return spec, status, selector


def _subresources(resource: Resource, given: Mapping[str, Any]) -> Iterator[Subresource]:
    if "status" in given:
        yield Subresource("status", _OBJECT_VERBS, resource.kind, resource.group, resource.version)
    if "scale" in given:
        yield Subresource("scale", _OBJECT_VERBS, "Scale", "autoscaling")


def _columns(given: Iterable[Mapping[str, Any]]) -> Iterator[Column]:
    for column in given:
        yield Column(
            name=column["name"],
            type=column["type"],
            json_path=column["jsonPath"],
            priority=column.get("priority", 0),
            description=column.get("description", ""),
            format=column.get("format", ""),
        )


def _committed(store: Store, old: Object | None, new: Object | None) -> None:
    fresh = {kind.resource: kind for kind in kinds_of(new)} if new is not None else {}
    for kind in kinds_of(old) if old is not None else ():
        if kind.resource not in fresh:
            store.kinds.remove(kind.resource)
            if new is None:
                store.drop_shelf(kind)
    if new is None or (old is not None and old["spec"] == new["spec"]):
        return
    for kind in fresh.values():
        store.kinds.add(kind)


def _leaving(store: Store, crd: Object) -> None:
    for kind in kinds_of(crd):
        delete_collection(store, kind, EVERYTHING)
        return


RULES = Rules(
    default=_default, admit=_admit, validate=_validate, compare=_compare, leaving=_leaving, committed=_committed
)

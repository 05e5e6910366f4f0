"""CustomResourceDefinitions: established at once, they add kinds to the registry (contract apiserver.md section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mews.harness.clusters.embedded import refusals
from mews.harness.clusters.embedded.deletion import delete_collection
from mews.harness.clusters.embedded.kinds import Column, Kind, Subresource
from mews.harness.clusters.embedded.refusals import Fault
from mews.harness.clusters.embedded.rules.base import Rules
from mews.harness.clusters.embedded.selection import EVERYTHING
from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.store import Store

_OBJECT_VERBS = ("get", "patch", "update")
_SCOPES = ("Cluster", "Namespaced")


def _default(crd: Object) -> None:
    spec = crd.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})


def _admit(store: Store, _kind: Kind, crd: Object) -> None:
    now = store.timestamp()
    names = crd["spec"]["names"]
    crd["status"] = {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": dict(names),
        "storedVersions": [v["name"] for v in crd["spec"].get("versions") or () if v.get("storage")],
    }


def _condition(kind: str, reason: str, message: str, now: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def _validate(crd: Object) -> list[Fault]:
    spec, names = crd["spec"], crd["spec"]["names"]
    found = []
    for name in ("plural", "kind"):
        if not names.get(name):
            found.append(refusals.required(f"spec.names.{name}"))
    if not spec.get("group"):
        found.append(refusals.required("spec.group"))
    if spec.get("scope") not in _SCOPES:
        found.append(refusals.unsupported("spec.scope", spec.get("scope", ""), _SCOPES))
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if not found and crd["metadata"].get("name") != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        found.append(refusals.bad("metadata.name", crd["metadata"].get("name"), text))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        shown = [version.get("name") for version in versions]
        text = "must have exactly one version marked as storage version"
        found.append(refusals.bad("spec.versions", shown, text))
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            text = "schemas are required"
            found.append(refusals.required(f"spec.versions[{index}].schema.openAPIV3Schema", text))
    return found


def kinds_of(crd: Mapping[str, Any]) -> Iterator[Kind]:
    """The kinds that a definition serves, one per served version."""
    spec = crd["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        resource = Resource(
            spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced"
        )
        subresources = version.get("subresources") or {}
        yield Kind(
            resource=resource,
            singular=names["singular"],
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(_subresources(resource, subresources)),
            storage=(spec["group"], names["plural"]),
            table="custom",
            columns=tuple(_columns(version.get("additionalPrinterColumns") or ())),
            selectable=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
            generation=True,
            status="status" in subresources,
            custom=True,
            schema=version["schema"]["openAPIV3Schema"],
        )


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


RULES = Rules(default=_default, admit=_admit, validate=_validate, leaving=_leaving, committed=_committed)

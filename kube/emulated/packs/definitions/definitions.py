"""CustomResourceDefinitions: they add kinds to the registry once their names are accepted (contract apiserver.md 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, is_deleting
from mews.kube.api.resources import Resource
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.kinds import Column, Kind, Subresource
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks, subdomain_named
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.tables.cells import Printer
from mews.kube.emulated.packs.definitions import cleanup, names
from mews.kube.emulated.packs.definitions import versions as crd_versions
from mews.kube.emulated.packs.definitions.definition_errors import definition_errors, name_errors
from mews.kube.emulated.types.custom import formats, internal

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store
from mews.kube.api.objects import condition_of
from mews.kube.emulated.core.tables.cells import Row, spec_of

_OBJECT_VERBS = ("get", "patch", "update")
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which discovery shows them for custom kinds."""


def _default(crd: Object) -> None:
    spec = crd.setdefault("spec", {})
    given = spec.setdefault("names", {})
    kind = given.get("kind", "")
    if kind:
        given.setdefault("singular", kind.lower())
        given.setdefault("listKind", f"{kind}List")
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


def _prepare_create(crd: Object, _: User) -> None:
    stored = [version.get("name", "") for version in crd["spec"].get("versions") or () if version.get("storage")]
    accepted = {"plural": "", "kind": ""}  # until the names have been looked at, with the commit
    crd["status"] = {
        "conditions": None,
        "acceptedNames": accepted,
        **({"storedVersions": stored[:1]} if stored else {}),
    }


def _prepare_update(crd: Object, old: Object) -> None:
    """The storage version of a changed definition joins those that objects may be stored in."""
    stored = [version.get("name", "") for version in crd["spec"].get("versions") or () if version.get("storage")]
    status = crd.get("status") or {}
    known = status.get("storedVersions") or []
    if (crd["spec"] != old["spec"] or not known) and stored and stored[0] not in known:
        crd["status"] = {**status, "storedVersions": [*known, stored[0]]}


def _validate_update(new: Object, old: Object, subresource: str) -> list[FieldError]:
    if not subresource:
        return definition_errors(new, old)
    accepted = (new.get("status") or {}).get("acceptedNames") or {}
    return list(name_errors(accepted, "status.acceptedNames")) if subresource == "status" else []


def _warnings(crd: Object, old: Object | None) -> list[str]:
    """Formats of texts that nobody knows are told of, once each time that they are new."""
    known = _unknown_formats(old) if old is not None else []
    return [f'unrecognized format "{name}"' for name in _unknown_formats(crd) if name not in known]


def _unknown_formats(crd: Object) -> list[str]:
    versions = crd["spec"].get("versions") or []
    common = internal.shared(versions)
    given = [common.schema] if common.schema is not None else [version.get("schema") for version in versions]
    parts = (part for one in given for part in internal.parts((one or {}).get("openAPIV3Schema")))
    return [
        part["format"]
        for part in parts
        if part.get("format") and part.get("type") == "string" and not formats.known(part["format"])
    ]


def kinds_of(store: Store, crd: Mapping[str, Any]) -> Iterator[Kind]:
    """Yield the kinds that a definition serves, one per served version."""
    if not names.is_established(crd):
        return
    spec = crd["spec"]
    given = names.accepted_of(crd)
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        resource = Resource(
            spec["group"], version["name"], given["plural"], given["kind"], spec["scope"] == "Namespaced"
        )
        subresources = version.get("subresources") or {}
        yield Kind(
            resource=resource,
            singular=given.get("singular", ""),
            short_names=tuple(given.get("shortNames") or ()),
            categories=tuple(given.get("categories") or ()),
            subresources=tuple(_subresources(resource, subresources)),
            storage=(spec["group"], given["plural"]),
            stored_version=next(each["name"] for each in spec["versions"] if each.get("storage")),
            columns=tuple(_columns(version.get("additionalPrinterColumns") or ())),
            selectable=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
            generation=True,
            status="status" in subresources,
            custom=True,
            verbs=_CUSTOM_VERBS,
            warning=_deprecation(spec, version),
            scale_paths=_scale_paths(subresources.get("scale") or {}),
            schema=version["schema"]["openAPIV3Schema"],
            forms=crd_versions.forms(store, crd, version),
        )


def _deprecation(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Return what whoever uses a deprecated version is told."""
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


def _after_commit(store: Store, old: Object | None, new: Object | None) -> None:
    """Names that are free are taken with the commit, and the kind is established with them."""
    _serve(store, old, new)
    if new is not None and is_deleting(new) and (old is None or not is_deleting(old)):
        cleanup.begin(store, new, next(kinds_of(store, new), None))
        return
    kind = store.kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    if kind is None:
        return
    if new is not None and _names(new) != names.accepted_of(new):
        names.settle(store, kind, new)
    elif (gone := new or old) is not None and (new is None or _names(new) != names.accepted_of(old or new)):
        for other in names.others(store, kind, gone):  # a name may have become free
            if _names(other) != names.accepted_of(other):
                names.settle(store, kind, other)


def _names(crd: Object) -> Mapping[str, Any]:
    return names.named(crd["spec"]["names"])


def _serve(store: Store, old: Object | None, new: Object | None) -> None:
    fresh = {kind.resource: kind for kind in kinds_of(store, new)} if new is not None else {}
    for kind in kinds_of(store, old) if old is not None else ():
        if kind.resource not in fresh:
            store.kinds.remove(kind.resource)
            if new is None:
                store.drop_shelf(kind)
    if new is None or (old is not None and old["spec"] == new["spec"] and _accepts(old) == _accepts(new)):
        return
    for kind in fresh.values():
        store.kinds.add(kind)


def _accepts(crd: Object) -> tuple[bool, Any]:
    return names.is_established(crd), names.accepted_of(crd)


def named_by_plural_and_group(crd: Object, text: str, prefix: bool) -> list[str]:
    """A definition bears the name of its resource."""
    spec, found = crd["spec"], subdomain_named(crd, text, prefix)
    required = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    return found if text == required else [*found, 'must be spec.names.plural+"."+spec.group']


def _definition(crd: Object, _: float) -> Row:
    """pkg/registry/customresourcedefinition/tableconvertor of k8s.io/apiextensions-apiserver, 1.37."""
    spec, metadata = spec_of(crd), crd["metadata"]
    named, established = spec.get("names") or {}, condition_of(crd, "Established") or {}
    served = [version for version in spec.get("versions") or () if version.get("served")]
    versions = sorted(f"{each['name']}{'(storage)' if each.get('storage') else ''}" for each in served)
    return [
        metadata["name"],
        spec.get("scope", ""),
        ",".join(versions),
        metadata.get("creationTimestamp", ""),
        spec.get("group", ""),
        named.get("kind", ""),
        ",".join(named.get("shortNames") or ()),
        established.get("status") == "True",
    ]


RULES = Rules(
    printer=Printer(_definition, nothing_is_null=True),
    default=_default,
    prepare_create=_prepare_create,
    validate=definition_errors,
    validate_update=_validate_update,
    warn=_warnings,
    prepare_update=_prepare_update,
    mark_deleted=cleanup.mark,
    after_commit=_after_commit,
    metadata=MetadataChecks(name_texts=named_by_plural_and_group),
)

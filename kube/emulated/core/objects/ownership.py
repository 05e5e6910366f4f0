"""Who owns which fields: the entries of ``metadata.managedFields`` and what writes make of them.

Source: contract apiserver.md section 4; sigs.k8s.io/structured-merge-diff, merge.Updater.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.objects.fieldsets import Paths, difference, from_fields_v1, owned, to_fields_v1
from mews.kube.emulated.core.objects.typed import kind_shape
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.types.bodies import shape_of
from mews.kube.emulated.types.decoding import nothing

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

Owner = tuple[str, str, str, str]
"""(manager, operation, apiVersion, subresource)."""
Owners = Mapping[Owner, Paths]
_NOBODY: Owner = ("", "", "", "")


def owner_of(entry: Mapping[str, Any]) -> Owner:
    """Return the field manager that an entry of managedFields belongs to."""
    return (
        entry.get("manager", ""),
        entry.get("operation", ""),
        entry.get("apiVersion", ""),
        entry.get("subresource", ""),
    )


def owners_of(obj: Mapping[str, Any]) -> dict[Owner, Paths]:
    """Return the owners of an object's fields."""
    entries = obj.get("metadata", {}).get("managedFields") or ()
    return {owner_of(entry): from_fields_v1(entry.get("fieldsV1") or {}) for entry in entries}


def entries_of(before: Mapping[str, Any] | None, owners: Owners, writer: Owner, now: str) -> list[dict[str, Any]]:
    """Return the entries of all that own something, the writer's with the given time ("" for its old one), the others'
    with theirs."""
    metadata = (before or {}).get("metadata", {})
    times = {owner_of(entry): entry.get("time", "") for entry in metadata.get("managedFields") or ()}
    entries = [
        _entry(owner, paths, now if owner == writer and now else times.get(owner, ""))
        for owner, paths in owners.items()
        if paths
    ]
    return sorted(entries, key=_order)


def _order(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(name, "") for name in ("operation", "time", "manager", "apiVersion", "subresource"))


def _entry(owner: Owner, paths: Paths, time: str) -> dict[str, Any]:
    manager, operation, api_version, subresource = owner
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(paths),
        "subresource": subresource,
    }
    return {name: value for name, value in entry.items() if value or name == "fieldsV1"}


def unrecorded(kind: Kind, live: Object) -> dict[Owner, Paths]:
    """Return the owners of an object that has none: all that it says belongs to whoever wrote before the first
    apply."""
    changes = difference({} if kind.custom else nothing(shape_of(kind).ref), live, kind_shape(kind))
    me: Owner = ("before-first-apply", "Update", kind.resource.api_version, "")
    return {me: owned(changes.added | changes.modified, status=kind.status)}


def record_changes(
    store: Store, kind: Kind, old: Object | None, new: Object, *, subresource: str, request: WriteRequest
) -> None:
    """What ``recording.record`` does where owners are kept."""
    entries = new["metadata"].get("managedFields") or ()
    taken_away = not any(owner_of(entry) != _NOBODY for entry in entries)
    if old is not None and (taken_away or "managedFields" not in old["metadata"]):
        new["metadata"].pop("managedFields", None)  # once taken away they are not kept until somebody applies
        return
    if any(entry.get("operation") not in ("Apply", "Update") for entry in entries) and old is not None:
        new["metadata"]["managedFields"] = old["metadata"].get("managedFields", [])
    subresource = subresource or request.subresource
    show = view_of(kind).show
    before = show(old) if old is not None else {} if kind.custom else nothing(shape_of(kind).ref)
    after = show(new)
    changes = difference(before, after, kind_shape(kind))
    gained = owned(changes.added | changes.modified, subresource=subresource, status=kind.status)
    lost = gained | changes.removed
    me: Owner = (request.manager, "Update", kind.resource.api_version, subresource)
    known = owners_of(new)
    mine = (known.get(me, frozenset()) - changes.removed) | gained
    if not gained and not changes.removed:
        return
    owners = {owner: paths - lost for owner, paths in known.items() if owner != me}
    now = "" if mine == known.get(me) or request.subresource else store.timestamp()
    new["metadata"]["managedFields"] = entries_of(new, {**owners, me: mine}, me, now)
    if not new["metadata"]["managedFields"]:
        del new["metadata"]["managedFields"]

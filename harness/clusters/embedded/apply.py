"""Server-side apply: what a manager applied it owns (contract apiserver.md section 4).

Owners are the managers that apply; plain updates are not recorded, so applying over them never conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mews.harness.clusters.embedded import refusals
from mews.harness.clusters.embedded.creation import create
from mews.harness.clusters.embedded.fieldsets import (
    Path,
    fields_of,
    from_fields_v1,
    remove_at,
    shown,
    to_fields_v1,
    value_at,
)
from mews.harness.clusters.embedded.kinds import Kind
from mews.harness.clusters.embedded.merging import merge_keys
from mews.harness.clusters.embedded.request import ADMIN, Request
from mews.harness.clusters.embedded.update import store_patched
from mews.harness.clusters.embedded.views import view_of
from mews.kube.api.errors import BadRequest, Conflict
from mews.kube.api.objects import Object, clone
from mews.kube.api.strategic import PRIMITIVE, Keys, strategic_merge

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.store import Store

Owner = tuple[str, str, str]
"""(manager, operation, subresource)."""


def apply(
    store: Store,
    kind: Kind,
    namespace: str,
    name: str,
    config: Any,
    *,
    subresource: str = "",
    force: bool = False,
    request: Request = ADMIN,
) -> Object:
    """The object after the manager has applied its configuration.

    Raises ``Conflict`` when another manager applied another value and ``force`` is not given; else as a patch.
    """
    if not isinstance(config, dict):
        raise BadRequest("error decoding YAML: the applied configuration is not an object")
    if (config.get("metadata") or {}).get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    config = {**config, "metadata": {**(config.get("metadata") or {})}}
    keys = keys_of(kind)
    mine: Owner = (request.manager, "Apply", subresource)
    wanted = fields_of(config, keys)
    old = store.find(kind, namespace, name)
    if old is None:
        if subresource:
            raise refusals.missing(kind, name)
        config["metadata"].setdefault("name", name)
        entry = _entry(kind, mine, wanted, store.timestamp())
        return create(store, kind, namespace, config, request, managed=[entry])
    live = view_of(kind).show(old)
    owners = _owners(live)
    others = {owner: paths for owner, paths in owners.items() if owner != mine}
    conflicts = _conflicts(live, config, wanted, others)
    if conflicts and not force:
        raise _conflict(conflicts)
    for owner, path in conflicts:
        others[owner] = others[owner] - {path}
    new = _merged(live, config, keys)
    for path in sorted(owners.get(mine, frozenset()) - wanted, key=len, reverse=True):
        if not any(path in paths for paths in others.values()):
            remove_at(new, path)
    new["metadata"]["managedFields"] = _entries(store, kind, live, {**others, mine: wanted})
    return store_patched(store, kind, old, new, subresource=subresource, request=request)


def keys_of(kind: Kind) -> Keys:
    """The lists of a kind that merge, and by what."""
    if not kind.custom:
        return merge_keys(kind)
    return {"metadata.finalizers": PRIMITIVE, "metadata.ownerReferences": "uid", **dict(_schema_keys(kind.schema, ""))}


def _schema_keys(schema: Mapping[str, Any] | None, dotted: str) -> Iterator[tuple[str, str]]:
    for name, child in ((schema or {}).get("properties") or {}).items():
        path = f"{dotted}.{name}" if dotted else name
        if child.get("x-kubernetes-list-type") == "set":
            yield path, PRIMITIVE
        elif child.get("x-kubernetes-list-type") == "map":
            yield path, child["x-kubernetes-list-map-keys"][0]
        yield from _schema_keys(child.get("items") if child.get("type") == "array" else child, path)


def _merged(live: Object, config: Object, keys: Keys) -> Object:
    merged: Object = clone(strategic_merge(live, config, keys))
    return merged


def _owners(live: Object) -> dict[Owner, frozenset[Path]]:
    return {
        (entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")): from_fields_v1(
            entry.get("fieldsV1") or {}
        )
        for entry in live["metadata"].get("managedFields") or ()
    }


def _conflicts(
    live: Object, config: Object, wanted: frozenset[Path], others: Mapping[Owner, frozenset[Path]]
) -> list[tuple[Owner, Path]]:
    found = []
    for owner in sorted(others):
        for path in sorted(others[owner] & wanted):
            if path[-1].startswith("f:") and value_at(live, path) != value_at(config, path):
                found.append((owner, path))
    return found


def _conflict(conflicts: list[tuple[Owner, Path]]) -> Conflict:
    count = len(conflicts)
    by_manager: dict[str, list[str]] = {}
    for (manager, _, _), path in conflicts:
        by_manager.setdefault(manager, []).append(shown(path))
    if count == 1:
        [(manager, paths)] = by_manager.items()
        text = f'conflict with "{manager}": {paths[0]}'
    else:
        lines = (f'conflicts with "{m}":\n' + "\n".join(f"- {p}" for p in ps) for m, ps in by_manager.items())
        text = "\n".join(lines)
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{owner[0]}"', "field": shown(path)}
        for owner, path in conflicts
    ]
    noun = "conflict" if count == 1 else "conflicts"
    return Conflict(f"Apply failed with {count} {noun}: {text}", details={"causes": causes})


def _entry(kind: Kind, owner: Owner, paths: frozenset[Path], now: str) -> dict[str, Any]:
    manager, operation, subresource = owner
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": kind.resource.api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(paths),
    }
    return {**entry, "subresource": subresource} if subresource else entry


def _entries(store: Store, kind: Kind, live: Object, owners: Mapping[Owner, frozenset[Path]]) -> list[dict[str, Any]]:
    """The entries of all that own something; an entry that says the same keeps its time."""
    known = {
        (entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")): entry
        for entry in live["metadata"].get("managedFields") or ()
    }
    entries = []
    for owner, paths in owners.items():
        if not paths:
            continue
        entry = _entry(kind, owner, paths, store.timestamp())
        before = known.get(owner)
        same = before is not None and before.get("fieldsV1") == entry["fieldsV1"]
        entries.append(before if same and before is not None else entry)
    return sorted(entries, key=lambda entry: (entry["operation"], entry["manager"], entry.get("subresource", "")))

"""Server-side apply: what a manager applied it owns (contract apiserver.md section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.errors import BadRequestError, ConflictError, ServerError
from mews.kube.api.objects import Object, clone
from mews.kube.api.strategic import go_text
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.fieldsets import (
    Path,
    applied_fields,
    difference,
    left_out,
    merged,
    owned,
    remove_at,
    set_order,
    shown,
)
from mews.kube.emulated.core.objects.last_applied import KUBECTL, applied_before, note_applied
from mews.kube.emulated.core.objects.ownership import Owner, entries_of, owners_of, unrecorded
from mews.kube.emulated.core.objects.typed import kind_shape, typed_errors
from mews.kube.emulated.core.objects.update import check_name, store_patched
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import ADMIN, WriteRequest
from mews.kube.emulated.core.store.views import view_of

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store


# Complex: upstream's order of steps matters, and is read in one place.
def apply(  # noqa: C901
    store: Store,
    kind: Kind,
    namespace: str,
    name: str,
    config: Any,
    *,
    subresource: str = "",
    force: bool = False,
    request: WriteRequest = ADMIN,
) -> Object:
    """Return the object after the manager has applied its configuration.

    Raises ``ConflictError`` when another manager owns a field that would change and ``force`` is not given;
    ``ServerError`` for what the kind does not declare; else as a patch.
    """
    config = _checked(kind, name, config)
    shape = kind_shape(kind)
    errors = list(typed_errors(config, shape))
    if errors:
        raise untyped(config, _typed_as(kind), errors)
    me: Owner = (request.manager, "Apply", kind.resource.api_version, subresource)
    applied = frozenset(applied_fields(config, shape))
    wanted = owned(applied, subresource=subresource, status=kind.status)
    old, now = store.find(kind, namespace, name), store.timestamp()
    if old is None:
        if subresource:
            raise refusals.missing(kind, name)
        _check_no_uid(kind, name, config)
        config["metadata"].pop("resourceVersion", None)  # nothing is there that it could be the version of
        return create(store, kind, namespace, config, request, managed=entries_of(None, {me: wanted}, me, now))
    live = view_of(kind).show(old)
    owners, times = owners_of(live), live
    if not owners:
        owners = unrecorded(kind, live)
        times = {"metadata": {"managedFields": entries_of(None, owners, next(iter(owners)), now)}}
    new = clone(merged(live, config, shape))
    others = {owner: paths for owner, paths in owners.items() if owner != me}
    for path in left_out(owners.get(me, frozenset()), applied.union(*others.values()), shape):
        remove_at(new, path, shape)
    changes, same = difference(live, new, shape), new == live
    changed = owned(changes.added | changes.modified, subresource=subresource, status=kind.status)
    conflicts = [(owner, path) for owner in sorted(others) for path in sorted(others[owner] & changed, key=set_order)]
    if conflicts and not force and request.manager == KUBECTL:
        allowed = applied_before(live, shape)
        conflicts = [(owner, path) for owner, path in conflicts if path not in allowed]
    if conflicts and not force:
        raise _conflict(conflicts)
    gone = changed | changes.removed
    left = {owner: paths - gone if paths & gone else paths for owner, paths in others.items()}
    new["metadata"]["managedFields"] = entries_of(times, {**left, me: wanted}, me, "" if same else now)
    if subresource == "scale":  # upstream keeps no time of such an entry
        for entry in new["metadata"]["managedFields"]:
            if (entry.get("manager"), entry["operation"], entry.get("subresource")) == (
                request.manager,
                "Apply",
                "scale",
            ):
                entry.pop("time", None)
    if request.manager == KUBECTL:
        note_applied(new, config)
    half = "" if subresource == "scale" else subresource  # replicas are of the spec
    return store_patched(store, kind, old, new, subresource=half, request=request, recorded=True)


def _checked(kind: Kind, name: str, config: Any) -> Object:
    if config is None:
        config = {}
    if not isinstance(config, dict):
        text = "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
        word = "array" if isinstance(config, list) else "string" if isinstance(config, str) else "number"
        raise BadRequestError(f"{text}{word} into Go value of type map[string]interface {{}}")
    output = [config.get(name) for name in ("apiVersion", "kind")]
    given = tuple(word if isinstance(word, str) else "" for word in output)
    if given != (kind.resource.api_version, kind.resource.kind):
        group_version = given[0] if given[0] in ("", "/") or "/" in given[0] else f"/{given[0]}"
        raise BadRequestError(f"invalid object type: {group_version or '/'}, Kind={given[1]}")
    metadata = config.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise untyped(config, _typed_as(kind), [f".metadata: expected map, got &{{{metadata}}}"])
    if metadata.get("managedFields"):
        raise BadRequestError("metadata.managedFields must be nil")
    if not isinstance(metadata.get("name") or "", str):
        got = f"&value.valueUnstructured{{Value:{go_text(metadata['name'])}}}"
        raise untyped({"kind": output[1]}, _typed_as(kind), [f".metadata.name: expected string, got {got}"])
    check_name(metadata, name)
    return config


def _check_no_uid(kind: Kind, name: str, config: Mapping[str, Any]) -> None:
    uid = config["metadata"].get("uid")
    if uid:
        text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise refusals.conflict(kind, name, text)


def _typed_as(kind: Kind) -> str:
    return f"{kind.resource.group}/{kind.resource.version}"


def untyped(config: Mapping[str, Any], group_version: str, errors: Sequence[str]) -> ServerError:
    """Return what is answered to a body with these errors against its type."""
    text = errors[0] if len(errors) == 1 else "errors:\n" + "\n".join(f"  {error}" for error in errors)
    metadata = config.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    place = f"{named.get('namespace', '')}/{named.get('name', '')}; {group_version}, Kind={config.get('kind')}"
    return ServerError(f"failed to create typed patch object ({place}): {text}", reason="")


def _conflict(conflicts: list[tuple[Owner, Path]]) -> ConflictError:
    by_owner: dict[str, list[str]] = {}
    for owner, path in conflicts:
        by_owner.setdefault(_named(owner), []).append(shown(path))
    count = len(conflicts)
    if count == 1:
        [(named, paths)] = by_owner.items()
        text = f"conflict with {named}: {paths[0]}"
    else:
        text = "\n".join(
            f"conflicts with {named}:\n" + "\n".join(f"- {path}" for path in paths) for named, paths in by_owner.items()
        )
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_named(owner)}", "field": shown(path)}
        for owner, path in conflicts
    ]
    noun = "conflict" if count == 1 else "conflicts"
    return ConflictError(f"Apply failed with {count} {noun}: {text}", details={"causes": causes})


def _named(owner: Owner) -> str:
    """``"one"`` for one that applied, ``"m" with subresource "scale" using apps/v1`` for one that wrote."""
    manager, operation, api_version, subresource = owner
    if operation == "Apply" and not subresource:
        return f'"{manager}"'
    below = f' with subresource "{subresource}"' if subresource else ""
    return f'"{manager}"{below}' + (f" using {api_version}" if operation == "Update" else "")

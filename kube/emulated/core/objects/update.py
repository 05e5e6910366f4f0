"""PUT and PATCH: from an old object and a new one to what is stored (contract apiserver.md sections 3, 4 and 7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.errors import ApiError, BadRequestError, ServerError
from mews.kube.api.objects import Object, clone
from mews.kube.api.patches import json_patch, merge_patch
from mews.kube.api.strategic import go_text, strategic_merge
from mews.kube.client.port import Patch
from mews.kube.emulated.core.objects.creation import create, fill_in, place, received
from mews.kube.emulated.core.objects.deletion import is_held
from mews.kube.emulated.core.objects.merging import merge_keys
from mews.kube.emulated.core.objects.recording import record
from mews.kube.emulated.core.objects.scales import change_of, scale_of
from mews.kube.emulated.core.objects.validation import update_errors
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.json_errors import not_a_struct
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.metadata_errors import fixed_errors
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.request import ADMIN, WriteRequest
from mews.kube.emulated.core.store.rules import KindRules
from mews.kube.emulated.core.store.views import ask_ahead, stored_form, view_of
from mews.kube.emulated.types import strictness
from mews.kube.emulated.types.bodies import Refuse, refused, shape_of, unpatchable

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

_OF_THE_SPEC = ("", "ephemeralcontainers", "resize")
"""Subresources whose writes change a spec, and so the generation."""
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
"""Metadata that no update changes."""

_SPECLESS = frozenset({"apiVersion", "kind", "metadata", "status"})

_ACCEPTED = (
    Patch.JSON,
    Patch.MERGE,
    Patch.APPLY,
)


def replace(
    store: Store,
    kind: Kind,
    namespace: str,
    name: str,
    body: Mapping[str, Any],
    *,
    subresource: str = "",
    request: WriteRequest = ADMIN,
) -> Object:
    """Return the object after the PUT.

    Raises ``ConflictError`` for a stale resourceVersion, else as ``create``.
    """
    new = received(kind, body, request)
    place(kind, new, namespace)
    check_name(new["metadata"], name)
    old = store.find(kind, namespace, name)
    if old is None:
        if kind.put_creates and not subresource:
            return create(store, kind, namespace, body, request)
        raise refusals.missing(kind, name)
    return view_of(kind).show(_write(store, kind, old, new, subresource=subresource, request=request))


def check_name(metadata: Mapping[str, Any], name: str) -> None:
    """400 unless a body bears the name in the path."""
    given = metadata.get("name", "")
    if not given:
        raise BadRequestError(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise refusals.names_differ(given, name)


def patch(
    store: Store,
    kind: Kind,
    namespace: str,
    name: str,
    body: Any,
    *,
    patch_kind: Patch,
    subresource: str = "",
    request: WriteRequest = ADMIN,
) -> Object:
    """Return the object after a JSON, merge or strategic patch.

    Raises ``NotFoundError``; ``ApiError`` 415 for a strategic patch of a custom kind; else as ``replace``.
    """
    old = store.find(kind, namespace, name)
    if old is None:
        raise refusals.missing(kind, name)
    new = _patcher(kind, patch_kind)(view_of(kind).show(old), body)
    if patch_kind is Patch.STRATEGIC:
        refuse = unpatchable(json.dumps(go_text(body), ensure_ascii=False)[1:-1])
        error = strictness.conversion_error(new, shape_of(kind).ref)
        if error:
            raise refuse(kind, error)
        new = {**new, "apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    else:
        refuse = _unpatchable_whole(new, old)
    return store_patched(store, kind, old, new, subresource=subresource, request=request, refuse=refuse)


METADATA_ORDER = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
    "managedFields",
)


def _unpatchable_whole(patched: Any, old: Object) -> Refuse:
    """Refusals show all that a JSON or merge patch made: parts it left alone as they were written, the rest sorted."""

    def refuse(kind: Kind, text: str) -> ApiError:
        shown = {
            name: patched[name] if _is_untouched(name, patched, old) else _sorted_members(patched[name])
            for name in sorted(patched)
        }
        if (metadata := patched.get("metadata")) == old["metadata"]:
            shown["metadata"] = {name: metadata[name] for name in METADATA_ORDER if name in metadata}
        whole = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
        return unpatchable(json.dumps(whole, ensure_ascii=False)[1:-1])(kind, text)

    return refuse


def _is_untouched(name: str, patched: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    return name in ("spec", "status") and patched[name] == old.get(name)


def _sorted_members(value: Any) -> Any:
    return {name: value[name] for name in sorted(value)} if isinstance(value, Mapping) else value


def store_patched(
    store: Store,
    kind: Kind,
    old: Object,
    patched: Any,
    *,
    subresource: str,
    request: WriteRequest,
    refuse: Refuse = refused,
    recorded: bool = False,
) -> Object:
    """Store what a patch made of an object, given in the kind's form; ``recorded`` when its owners are told in it."""
    if isinstance(patched, list):
        text = f"couldn't get version/kind; json parse error: {not_a_struct(patched)}"
        raise unpatchable(json.dumps(patched, separators=(",", ":")))(kind, text)
    # Upstream takes a JSON patch that leaves a scalar for one that does nothing.
    if not isinstance(patched, (dict, Mapping)):
        return view_of(kind).show(old)
    known = None if kind.view or kind.custom else old
    new = received(kind, patched, request, refuse, known)
    place(kind, new, old["metadata"].get("namespace", ""))
    metadata, name = new["metadata"], old["metadata"]["name"]
    check_name(metadata, name)
    if metadata.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
        error = refusals.bad("metadata.uid", metadata["uid"], "field is immutable")
        raise refusals.invalid(kind, name, [error, error])  # upstream looks twice
    metadata.setdefault("resourceVersion", old["metadata"]["resourceVersion"])
    copied = () if known is None else [name for name, part in patched.items() if part is known.get(name)]
    stored = _write(store, kind, old, new, subresource=subresource, request=request, recorded=recorded, copied=copied)
    return view_of(kind).show(stored)


def _patcher(kind: Kind, patch_kind: Patch) -> Callable[[Object, Any], Any]:
    if patch_kind is Patch.JSON:
        return json_patch
    if patch_kind is Patch.MERGE:
        return _merge_object
    if kind.custom:
        accepted = ", ".join(_ACCEPTED)
        raise ApiError(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}",
            code=415,
            reason="UnsupportedMediaType",
        )
    keys = merge_keys(kind)
    return lambda old, body: strategic_merge(old, _as_map(body), keys)


def _merge_object(old: Object, body: Any) -> Any:
    return merge_patch(old, _as_map(body, "error decoding patch: "))


def _as_map(body: Any, prefix: str = "") -> Mapping[str, Any]:
    if not isinstance(body, (dict, Mapping)):
        word = strictness.json_type(body)
        raise BadRequestError(f"{prefix}json: cannot unmarshal {word} into Go value of type map[string]interface {{}}")
    return body


# Complex: upstream's order of steps matters, and is read in one place.
def _write(  # noqa: C901
    store: Store,
    kind: Kind,
    old: Object,
    new: Object,
    *,
    subresource: str,
    request: WriteRequest,
    recorded: bool = False,
    copied: Collection[str] = (),
) -> Object:
    """Decide what becomes of ``old`` when ``new`` is asked for, and store it; ``copied`` are parts of ``new`` that are
    copies of those of ``old``."""
    name = old["metadata"]["name"]
    _check_version(kind, name, old, new, dry_run=request.dry_run)
    stored = old
    if kind.forms is not None:
        old = view_of(kind).show(old)
    rules = store.rules(kind)
    new = _merge_halves(kind, rules, old, new, subresource, copied)
    if subresource == "status":
        _leave(rules.metadata.status_leaves, new["metadata"], old["metadata"])
    fixed = fixed_errors(old["metadata"], new["metadata"])
    _inherit(old, new)
    if rules.prepare_update is not None:
        rules.prepare_update(new, old)
    now = store.timestamp()
    fill_in(rules, new, now)
    if rules.stamp_update is not None:
        rules.stamp_update(new, old, now)
    if not recorded:
        record(store, kind, old, new, subresource=subresource, request=request)
    attributes = _attributes(kind, old, new, subresource, request)
    store.admission.mutate(store, attributes)
    if attributes.changed:
        new = _mutated(kind, rules, old, new, attributes)
    if rules.allocate is not None:
        rules.allocate(store, kind, new, subresource, request.dry_run)
    if errors := update_errors(rules, new, old, subresource, fixed):
        raise refusals.invalid(kind, name, errors)
    if rules.warn is not None:
        request.warnings.extend(rules.warn(new, old))
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    # In the version of the request, as upstream compares: what the stored version does not know makes a generation too.
    changed = kind.generation and subresource in _OF_THE_SPEC and _makes_generation(rules, new, old)
    asked = new
    old, new = stored, stored_form(kind, new)
    if new == old and not (changed and kind.forms is not None):
        store.admission.validate(store, attributes)
        return old
    if changed:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        asked["metadata"]["generation"] = new["metadata"]["generation"]  # admission sees the version of the request
    _show_scale(kind, asked, attributes)
    store.admission.validate(store, attributes)
    ask_ahead(kind, new)
    if request.dry_run:
        return new
    attributes.settle()
    key = (old["metadata"].get("namespace", ""), name)
    if _may_go(store, kind, old, new):
        store.commit(kind, key, None)
        return new
    return store.commit(kind, key, new)


def _makes_generation(rules: KindRules[Any], new: Object, old: Object) -> bool:
    made = rules.makes_generation
    return _spec_changed(old, new) or (made is not None and made(new, old))


_SCALE = ("autoscaling", "v1", "Scale")


def _attributes(kind: Kind, old: Object, new: Object, subresource: str, request: WriteRequest) -> AdmissionAttributes:
    """Return the change before admission; of a write through ``scale`` its Scale."""
    namespace, name = old["metadata"].get("namespace", ""), old["metadata"]["name"]
    if request.subresource != "scale":
        return AdmissionAttributes(kind, AdmissionOperation.UPDATE, new, old, request, namespace, name, subresource)
    shown, before = scale_of(kind, new), scale_of(kind, old)
    return AdmissionAttributes(
        kind, AdmissionOperation.UPDATE, shown, before, request, namespace, name, "scale", body_kind=_SCALE
    )


def _mutated(kind: Kind, rules: KindRules[Any], old: Object, new: Object, attributes: AdmissionAttributes) -> Object:
    """Return the change as admission left it."""
    changed = attributes.obj
    assert changed is not None
    if attributes.body_kind == _SCALE:
        replicas = (changed.get("spec") or {}).get("replicas", 0)
        result: Object = merge_patch(new, change_of(kind, replicas))
        return result
    if attributes.subresource == "finalize":
        return changed
    merged = _merge_halves(kind, rules, old, changed, attributes.subresource)
    _inherit(old, merged)
    attributes.obj = merged
    return merged


def _show_scale(kind: Kind, new: Object, attributes: AdmissionAttributes) -> None:
    if attributes.body_kind == _SCALE:
        attributes.obj = scale_of(kind, new)


def store_written(store: Store, kind: Kind, old: Object, new: Object) -> Object:
    """Store a change that the server itself makes (binding, deletion marks): no checks, but a no-op stays one."""
    if new == old:
        return old
    return store.commit(kind, (old["metadata"].get("namespace", ""), old["metadata"]["name"]), new)


def _check_version(kind: Kind, name: str, old: Object, new: Object, *, dry_run: bool) -> None:
    given = new["metadata"].get("resourceVersion")
    if given and not given.isdecimal():
        raise ServerError(f"strconv.ParseUint: parsing {refusals.shown(given)}: invalid syntax", reason="")
    if not given and (kind.custom or kind.must_name_version):
        error = FieldError("metadata.resourceVersion", "FieldValueInvalid", "0: must be specified for an update")
        raise refusals.invalid(kind, name, [error], by_plural=True)
    uid = new["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"]:
        namespace = old["metadata"].get("namespace")
        root = "" if dry_run else "/registry"
        key = root + "".join(f"/{part}" for part in (kind.plural, namespace, name) if part)
        text = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
            f"failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        )
        raise refusals.conflict(kind, name, text)
    if given and given != old["metadata"]["resourceVersion"]:
        raise refusals.stale(kind, name)


def _merge_halves(
    kind: Kind, rules: KindRules[Any], old: Object, new: Object, subresource: str, copied: Collection[str] = ()
) -> Object:
    """Status writes leave the rest as it was, main writes the status."""
    if subresource in rules.parts:
        return rules.parts[subresource](old, new)
    if rules.keeps_spec:
        new["spec"] = clone(old["spec"])
    if not kind.status:
        return new
    if subresource == "status":
        merged = {name: new[name] if name in copied else clone(part) for name, part in old.items() if name != "status"}
        if not kind.custom:
            metadata = new["metadata"]
            metadata.pop("ownerReferences", None)
            if "ownerReferences" in old["metadata"]:
                metadata["ownerReferences"] = clone(old["metadata"]["ownerReferences"])
            merged["metadata"] = metadata
        if "status" in new:
            merged["status"] = new["status"]
        return merged
    status = new.pop("status", None)
    if "status" in old:
        new["status"] = status if "status" in copied else clone(old["status"])
    return new


def _leave(parts: Sequence[str], new: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Those parts stay as they were."""
    for part in parts:
        new.pop(part, None)
        if part in old:
            new[part] = clone(old[part])


def _inherit(old: Object, new: Object) -> None:
    metadata = new["metadata"]
    for field in _KEPT:
        metadata.pop(field, None)
        if field in old["metadata"]:
            metadata[field] = old["metadata"][field]
    if "managedFields" in old["metadata"]:
        metadata.setdefault("managedFields", old["metadata"]["managedFields"])


def _spec_changed(old: Object, new: Object) -> bool:
    names_ = {*old, *new} - _SPECLESS
    return any(old.get(name) != new.get(name) for name in names_)


def _may_go(store: Store, kind: Kind, old: Object, new: Object) -> bool:
    """Return whether the last thing that kept a deleted object was removed."""
    deleting = bool(new["metadata"].get("deletionTimestamp"))
    return deleting and is_held(store, kind, old) and not is_held(store, kind, new)

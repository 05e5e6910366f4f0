"""DELETE: grace, finalizers, preconditions (contract apiserver.md section 7)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, clone, seconds, timestamp
from mews.kube.client.port import DeleteOptions, ObjectList
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation, answered, completed
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import ADMIN, WriteRequest
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.emulated.core.store.views import ask_ahead, view_of

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

_FINALIZER_OF = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def delete(
    store: Store,
    kind: Kind,
    namespace: str,
    name: str,
    options: DeleteOptions | None = None,
    request: WriteRequest = ADMIN,
) -> Object:
    """Return the object while it still exists (and always for kinds that answer so), else a Status.

    Raises ``NotFoundError``, ``ConflictError`` (a precondition), ``ForbiddenError`` (a protected namespace).
    """
    options = options or DeleteOptions()
    old = store.find(kind, namespace, name)
    if old is None:
        raise refusals.missing(kind, name)
    check_preconditions(kind, old, options)
    attributes = AdmissionAttributes(
        kind, AdmissionOperation.DELETE, None, old, request, namespace, name, options=options_body(options, request)
    )
    store.admission.mutate(store, attributes)
    store.admission.validate(store, attributes)
    marked = _marked(store, kind, old, options)
    gone = not is_held(store, kind, marked)
    ask_ahead(kind, marked)
    last = marked
    if not request.dry_run:
        last = _carry_out(store, kind, old, marked, gone=gone)
    if gone and not kind.delete_answers_object:
        return _success(kind, old)
    return view_of(kind).show(last)


def options_body(options: DeleteOptions, request: WriteRequest) -> dict[str, Any]:
    """Options of a deletion as on the wire."""
    wanted = options.preconditions
    given = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
    shown = {
        "gracePeriodSeconds": options.grace_period_s,
        "preconditions": {name: value for name, value in given.items() if value is not None} or None,
        "propagationPolicy": options.propagation,
        "dryRun": ["All"] if request.dry_run else None,
    }
    head = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    return {**head, **{name: value for name, value in shown.items() if value is not None}}


def _carry_out(store: Store, kind: Kind, old: Object, marked: Object, *, gone: bool) -> Object:
    key = (old["metadata"].get("namespace", ""), old["metadata"]["name"])
    graceful = store.rules(kind).check_graceful_delete is not None
    last = old
    if marked != old and (graceful or not gone):
        last = store.commit(kind, key, marked)
    if gone and store.find(kind, *key) is not None:
        last = store.commit(kind, key, None)
    return last


def _marked(store: Store, kind: Kind, old: Object, options: DeleteOptions) -> Object:
    """Return the object with what the deletion writes into its metadata."""
    new: Object = clone(old)
    metadata = new["metadata"]
    rules = store.rules(kind)
    if rules.mark_deleted is not None and "deletionTimestamp" not in metadata:
        rules.mark_deleted(new, store.timestamp())
        return new
    _mark_finalizers(metadata, options.propagation or ("Orphan" if kind.orphans else None))
    checked = rules.check_graceful_delete
    grace_s = None if checked is None else checked(old, options.grace_period_s)
    if "deletionTimestamp" in metadata:
        current_s = metadata.get("deletionGracePeriodSeconds") or 0
        if grace_s is not None and options.grace_period_s is not None and grace_s < current_s:
            begun = seconds(metadata["deletionTimestamp"]) - current_s
            metadata["deletionTimestamp"] = timestamp(begun + grace_s)
            metadata["deletionGracePeriodSeconds"] = grace_s
        return new
    if grace_s is None and not is_held(store, kind, new):
        return new
    metadata["deletionTimestamp"] = timestamp(store.now() + (grace_s or 0))
    if rules.shows_grace:
        metadata["deletionGracePeriodSeconds"] = grace_s or 0
    if metadata.get("generation"):
        metadata["generation"] += 1
    if rules.default is not None:
        rules.default(new)
    return new


def is_held(store: Store, kind: Kind, obj: Object) -> bool:
    """Return whether an object that is being deleted still stays: by its finalizers, its grace, or its kind's rules."""
    metadata = obj["metadata"]
    if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
        return True
    kept = store.rules(kind).is_held
    return kept is not None and kept(obj)


def _mark_finalizers(metadata: Object, propagation: str | None) -> None:
    if propagation is None:
        return
    present = metadata.get("finalizers") or []
    wanted = [name for name in present if name not in _FINALIZER_OF.values()]
    if propagation in _FINALIZER_OF:
        wanted.append(_FINALIZER_OF[propagation])
    if wanted:
        metadata["finalizers"] = wanted
    else:
        metadata.pop("finalizers", None)


def check_preconditions(kind: Kind, old: Object, options: DeleteOptions) -> None:
    """Raise ``ConflictError`` for an object that is not the one meant."""
    metadata, wanted = old["metadata"], options.preconditions
    if wanted.uid is not None and wanted.uid != metadata["uid"]:
        raise refusals.precondition(kind, metadata["name"], what="UID", asked=wanted.uid, stored=metadata["uid"])
    if wanted.resource_version is not None and wanted.resource_version != metadata["resourceVersion"]:
        raise refusals.precondition(
            kind,
            metadata["name"],
            what="ResourceVersion",
            asked=wanted.resource_version,
            stored=metadata["resourceVersion"],
        )


def _success(kind: Kind, old: Object) -> Object:
    details = {**refusals.details_of(kind, old["metadata"]["name"]), "uid": old["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def delete_collection(
    store: Store,
    kind: Kind,
    selection: Selection,
    options: DeleteOptions | None = None,
    request: WriteRequest = ADMIN,
) -> ObjectList:
    """Delete all that is selected; the list as it was before."""
    before = store.list(kind, selection)
    for obj in before.items:
        metadata = obj["metadata"]
        try:
            delete(store, kind, metadata.get("namespace", ""), metadata["name"], options, request)
        except NotFoundError:
            continue
    return before


async def delete_selected(
    store: Store, kind: Kind, selection: Selection, options: DeleteOptions | None, request: WriteRequest
) -> ObjectList:
    """Delete all that is selected, each through admission on its own; the list as it was before."""
    before = await answered(partial(store.list, kind, selection))
    for obj in before.items:
        place, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        each = replace(request, answers={})
        try:
            await completed(partial(delete, store, kind, place, name, options), each)
        except NotFoundError:
            continue
    return before

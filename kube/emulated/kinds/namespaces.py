"""Namespaces: their label and phase, and their slow end (contract apiserver.md sections 3 and 7).

A deleted namespace is Terminating until all that is in it has gone; here that is attended to with each commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object, clone, is_deleting
from mews.kube.api.resources import NAMESPACES, PODS
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.objects.deletion import delete
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks, label_named, standard_finalizer_errors
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.tables.cells import Printer

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.tables.cells import Row, meta_age

_NAME_LABEL = "kubernetes.io/metadata.name"
_FINALIZER = "kubernetes"


def _default(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), _NAME_LABEL: metadata["name"]}
    deleting = bool(metadata.get("deletionTimestamp"))
    status = {"phase": "Active", **(namespace.get("status") or {})}
    namespace["status"] = {**status, "phase": "Terminating"} if deleting else status


def _prepare_create(namespace: Object, _: User) -> None:
    _default(namespace)  # one with a generated name has its label from now
    finalizers = namespace["spec"].get("finalizers") or []
    namespace["spec"]["finalizers"] = [*finalizers, *([] if _FINALIZER in finalizers else [_FINALIZER])]


def _is_held(namespace: Object) -> bool:
    return bool((namespace.get("spec") or {}).get("finalizers"))


def _finalizer_errors(namespace: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in (namespace.get("spec") or {}).get("finalizers") or ():
        found += names.qualified_errors("spec.finalizers", name)
        found += standard_finalizer_errors("spec.finalizers", name)
    return found


def attend(store: Store, kind: Kind, old: Object | None, new: Object | None) -> None:
    """A commit listener: empties namespaces that are being deleted, and lets them go once they are empty.

    Pods go first; the rest is deleted when the last of them has gone (KEP-5080).
    """
    if kind.resource == NAMESPACES:
        if new is not None and is_deleting(new) and (old is None or not is_deleting(old)):
            name = new["metadata"]["name"]
            _empty(store, store.kinds.of(PODS), name)
            _go_on(store, name)
    elif new is None and old is not None and kind.resource.namespaced:
        name = old["metadata"]["namespace"]
        namespace = store.find(store.kinds.of(NAMESPACES), "", name)
        if namespace is None or not is_deleting(namespace):
            return
        if kind.resource == PODS:
            _go_on(store, name)
        elif not _finished(store, name) and is_deleting(old):  # of what was waited for, not of what goes at once
            _note(store, name)


def _go_on(store: Store, name: str) -> None:
    """Delete the rest once there are no pods."""
    pods = store.kinds.of(PODS)
    if not _any_left(store, pods, name):
        for kind in store.kinds:
            if kind is not pods:
                _empty(store, kind, name)
    if not _finished(store, name):
        _note(store, name)


def _any_left(store: Store, kind: Kind, name: str) -> bool:
    return next(store.shelf(kind).select(Selection(name)), None) is not None


def _empty(store: Store, kind: Kind, name: str) -> None:
    if not kind.resource.namespaced or "delete" not in kind.verbs or kind.view:
        return
    for obj in list(store.shelf(kind).select(Selection(name))):
        try:
            delete(store, kind, name, obj["metadata"]["name"])
        except ApiError:  # it went while its neighbours did
            continue


def _finished(store: Store, name: str) -> bool:
    """Let the namespace go if nothing is in it; whether it has gone."""
    kind = store.kinds.of(NAMESPACES)
    namespace = store.find(kind, "", name)
    if namespace is None:
        return True
    if any(next(shelf.select(Selection(name)), None) for _, shelf in store.shelves()):
        return False
    others = [finalizer for finalizer in namespace["spec"].get("finalizers") or () if finalizer != _FINALIZER]
    if others or namespace["metadata"].get("finalizers"):
        return False
    store.commit(kind, ("", name), None)
    return True


def _note(store: Store, name: str) -> None:
    """Write into the namespace's status what it waits for."""
    kind = store.kinds.of(NAMESPACES)
    namespace = store.find(kind, "", name)
    assert namespace is not None
    known = {each["type"]: each for each in namespace["status"].get("conditions") or ()}
    now = store.timestamp()
    conditions = [
        _condition(known.get(word), word, status, reason, message, now)
        for word, status, reason, message in _findings(store, name)
    ]
    if conditions != namespace["status"].get("conditions"):
        status = {**namespace["status"], "conditions": conditions}
        store.commit(kind, ("", name), {**namespace, "status": status})


def _status_errors(new: Object, _: Object) -> list[FieldError]:
    deleting = bool(new["metadata"].get("deletionTimestamp"))
    wanted, how = ("Terminating", "is not empty") if deleting else ("Active", "is empty")
    phase = (new.get("status") or {}).get("phase", "")
    if phase == wanted:
        return []
    return [refusals.bad("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` {how}")]


def _condition(before: Object | None, word: str, status: str, reason: str, message: str, now: str) -> Object:
    found = {"type": word, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
    if before is not None and before["status"] == status:
        found["lastTransitionTime"] = before["lastTransitionTime"]
    return found


_WELL = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""What the conditions say where nothing is amiss (namespace/deletion/status_condition_utils.go)."""


def _findings(store: Store, name: str) -> Iterator[tuple[str, str, str, str]]:
    """Type, status, reason and message of each condition. As long as there are pods the rest is not counted."""
    resources, finalizers = ({}, {}) if _any_left(store, store.kinds.of(PODS), name) else _left(store, name)
    for word, (reason, message) in _WELL.items():
        if word == "NamespaceContentRemaining" and resources:
            listed = ", ".join(sorted(f"{what} has {count} resource instances" for what, count in resources.items()))
            yield word, "True", "SomeResourcesRemain", f"Some resources are remaining: {listed}"
        elif word == "NamespaceFinalizersRemaining" and finalizers:
            listed = ", ".join(sorted(f"{what} in {count} resource instances" for what, count in finalizers.items()))
            text = f"Some content in the namespace has finalizers remaining: {listed}"
            yield word, "True", "SomeFinalizersRemain", text
        else:
            yield word, "False", reason, message


def _left(store: Store, name: str) -> tuple[Counter[str], Counter[str]]:
    """Return how many objects are left of each resource, and with each finalizer."""
    resources: Counter[str] = Counter()
    finalizers: Counter[str] = Counter()
    counted: set[tuple[str, str]] = set()
    for kind in store.kinds:
        if not kind.resource.namespaced or "delete" not in kind.verbs or kind.view or kind.storage in counted:
            continue
        counted.add(kind.storage)
        for obj in store.shelf(kind).select(Selection(name)):
            resources[f"{kind.plural}.{kind.resource.group}"] += 1
            finalizers.update(obj["metadata"].get("finalizers") or ())
    return resources, finalizers


def _change_errors(new: Object, _: Object, subresource: str) -> list[FieldError]:
    """Where its finalizers are written (ValidateNamespaceFinalizeUpdate) each is named by its place."""
    if subresource != "finalize":
        return _finalizer_errors(new)
    found: list[FieldError] = []
    for index, name in enumerate((new.get("spec") or {}).get("finalizers") or ()):
        found += names.qualified_errors(f"spec.finalizers[{index}]", name)
        found += standard_finalizer_errors(f"spec.finalizers[{index}]", name)
    return found


def _namespace(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), meta_age(obj, now_s)]


def _finalized(old: Object, new: Object) -> Object:
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    others = {name: value for name, value in old["spec"].items() if name != "finalizers"}
    return {**clone(old), "spec": {**others, **({"finalizers": finalizers} if finalizers else {})}}


RULES = Rules(
    parts={"finalize": _finalized},
    keeps_spec=True,
    shows_grace=False,
    printer=Printer(_namespace),
    default=_default,
    prepare_create=_prepare_create,
    is_held=_is_held,
    validate=_finalizer_errors,
    validate_update=_change_errors,
    validate_status_update=_status_errors,
    metadata=MetadataChecks(name_texts=label_named, on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)

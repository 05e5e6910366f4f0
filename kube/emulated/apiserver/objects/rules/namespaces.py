"""Namespaces: their label and phase, and their slow end (contract apiserver.md sections 3 and 7).

A deleted namespace is Terminating until all that is in it has gone; here that is attended to with each commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object, is_deleting
from mews.kube.api.resources import NAMESPACES
from mews.kube.emulated.apiserver.objects.deletion import delete
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError
from mews.kube.emulated.apiserver.store.selection import Selection

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.kinds import Kind
    from mews.kube.emulated.apiserver.store.store import Store

_NAME_LABEL = "kubernetes.io/metadata.name"
_FINALIZER = "kubernetes"


def _default(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), _NAME_LABEL: metadata["name"]}
    phase = "Terminating" if metadata.get("deletionTimestamp") else "Active"
    namespace["status"] = {**(namespace.get("status") or {}), "phase": phase}


def _birth(namespace: Object) -> None:
    _default(namespace)  # one with a generated name has its label from now
    finalizers = namespace["spec"].get("finalizers") or []
    namespace["spec"]["finalizers"] = [*finalizers, *([] if _FINALIZER in finalizers else [_FINALIZER])]


def _held(namespace: Object) -> bool:
    return bool((namespace.get("spec") or {}).get("finalizers"))


def _finalizer_faults(namespace: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name in (namespace.get("spec") or {}).get("finalizers") or ():
        found += names.qualified_faults("spec.finalizers", name)
        if "/" not in name and name not in names.STANDARD_FINALIZERS:
            found.append(refusals.bad("spec.finalizers", name, names.NOT_FINAL))
    return found


RULES = Rules(default=_default, birth=_birth, held=_held, validate=_finalizer_faults, validate_status=lambda *_: [])


def attend(store: Store, kind: Kind, old: Object | None, new: Object | None) -> None:
    """A commit listener: empties namespaces that are being deleted, and lets them go once they are empty."""
    if kind.resource == NAMESPACES:
        if new is not None and is_deleting(new) and (old is None or not is_deleting(old)):
            _empty(store, new["metadata"]["name"])
            _finish(store, new["metadata"]["name"])
    elif new is None and old is not None and kind.resource.namespaced:
        _finish(store, old["metadata"]["namespace"])


def _empty(store: Store, name: str) -> None:
    for kind in store.kinds:
        if not kind.resource.namespaced or "delete" not in kind.verbs or kind.view:
            continue
        for obj in list(store.shelf(kind).select(Selection(name))):
            try:
                delete(store, kind, name, obj["metadata"]["name"])
            except ApiError:  # it went while its neighbours did
                continue


def _finish(store: Store, name: str) -> None:
    kind = store.kinds.of(NAMESPACES)
    namespace = store.find(kind, "", name)
    if namespace is None or not is_deleting(namespace):
        return
    if any(next(shelf.select(Selection(name)), None) for _, shelf in store.shelves()):
        return
    others = [finalizer for finalizer in namespace["spec"].get("finalizers") or () if finalizer != _FINALIZER]
    if others or namespace["metadata"].get("finalizers"):
        return
    store.commit(kind, ("", name), None)

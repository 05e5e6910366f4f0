"""The end of a CustomResourceDefinition: its objects go first, and it waits for those that have finalizers.

Source: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go (Delete) and
pkg/controller/finalizer/crd_finalizer.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mews.kube.api.objects import Object, clone, is_deleting
from mews.kube.api.resources import CRDS
from mews.kube.emulated.core.objects.deletion import delete_collection
from mews.kube.emulated.core.store.selection import EVERYTHING

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def mark(crd: Object, now: str) -> None:
    """What the first request to delete it writes into a definition."""
    metadata = crd["metadata"]
    metadata["deletionTimestamp"] = now
    others = [name for name in metadata.get("finalizers") or () if name != FINALIZER]
    metadata["finalizers"] = [*others, FINALIZER]
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    _set_terminating(crd, "True", "InstanceDeletionPending", text, now)


def begin(store: Store, crd: Object, instances: Kind | None) -> None:
    """Delete a definition's objects, and let it go when none is left."""
    if instances is not None and _any_left(store, instances):
        waiting = clone(crd)
        text = "CustomResource deletion is in progress"
        _set_terminating(waiting, "True", "InstanceDeletionInProgress", text, store.timestamp())
        store.commit(store.kinds.of(CRDS), ("", crd["metadata"]["name"]), waiting)
        delete_collection(store, replace(instances, forms=None), EVERYTHING)  # not to be converted: nobody looks
    finish(store, crd["metadata"]["name"], instances)


def finish(store: Store, name: str, instances: Kind | None) -> None:
    """Let a definition go if it is being deleted and no object of it is left."""
    kind = store.kinds.of(CRDS)
    crd = store.find(kind, "", name)
    if crd is None or not is_deleting(crd) or (instances is not None and _any_left(store, instances)):
        return
    others = [each for each in crd["metadata"].get("finalizers") or () if each != FINALIZER]
    if not others:
        store.commit(kind, ("", name), None)
        return
    left = clone(crd)
    left["metadata"]["finalizers"] = others
    if instances is None:
        _set_terminating(left, "False", "NeverEstablished", "resource was never established", store.timestamp())
    else:
        _set_terminating(left, "False", "InstanceDeletionCompleted", "removed all instances", store.timestamp())
    if left != crd:
        store.commit(kind, ("", name), left)


def _any_left(store: Store, instances: Kind) -> bool:
    return next(store.shelf(instances).select(EVERYTHING), None) is not None


def _set_terminating(crd: Object, status: str, reason: str, message: str, now: str) -> None:
    found = crd.get("status") or {}
    conditions = [each for each in found.get("conditions") or () if each["type"] != "Terminating"]
    before = next((each for each in found.get("conditions") or () if each["type"] == "Terminating"), None)
    since = before["lastTransitionTime"] if before is not None and before["status"] == status else now
    condition = {"lastTransitionTime": since, "message": message, "reason": reason, "status": status}
    crd["status"] = {**found, "conditions": [*conditions, {**condition, "type": "Terminating"}]}

"""NamespaceLifecycle (k8s.io/apiserver pkg/admission/plugin/namespace/lifecycle)."""

from __future__ import annotations

from mews.kube.api.errors import ForbiddenError
from mews.kube.api.objects import is_deleting
from mews.kube.api.resources import NAMESPACES
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, handles
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kinds import priority_classes

_IMMORTAL = ("default", "kube-system", "kube-public")


def _handles(kind: Kind, operation: AdmissionOperation, _subresource: str) -> bool:
    if kind.resource == NAMESPACES:
        return operation is AdmissionOperation.DELETE
    if operation is AdmissionOperation.CREATE:
        return kind.resource.namespaced and kind.resource.group != "authorization.k8s.io"
    return operation is AdmissionOperation.UPDATE and kind.put_creates and kind.resource.namespaced


def _admit(store: Store, attributes: AdmissionAttributes) -> None:
    if attributes.operation is AdmissionOperation.DELETE:
        if attributes.name in _IMMORTAL:
            raise ForbiddenError(
                f'namespaces "{attributes.name}" is forbidden: this namespace may not be deleted',
                details={"name": attributes.name, "kind": "namespaces"},
            )
        return
    namespaces, name = store.kinds.of(NAMESPACES), attributes.namespace
    namespace = store.find(namespaces, "", name)
    if namespace is None:
        raise refusals.missing(namespaces, name)
    if attributes.operation is AdmissionOperation.CREATE and is_deleting(namespace):
        text = f"unable to create new content in namespace {name} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        raise refusals.forbidden(attributes.kind, attributes.named(), text, causes=[cause])


PLUGIN = AdmissionPlugin("NamespaceLifecycle", _handles, mutate=_admit)


def _keep_class(_store: Store, attributes: AdmissionAttributes) -> None:
    if attributes.name in priority_classes.SYSTEM:
        text = "this is a system priority class and cannot be deleted"
        group = attributes.kind.resource.group
        what = {"name": attributes.name, "group": group, "kind": "priorityclasses"}
        raise ForbiddenError(f'priorityclasses.{group} "{attributes.name}" is forbidden: {text}', details=what)


SYSTEM_PRIORITY_CLASSES = AdmissionPlugin(
    "SystemPriorityClasses",
    handles("priorityclasses", AdmissionOperation.DELETE, group="scheduling.k8s.io"),
    mutate=_keep_class,
)
"""Upstream's storage of priority classes sees to that; nothing else is asked before."""

"""The expressions of policies and match conditions: their variables and types, checked and compiled once.

Source: k8s.io/apiserver pkg/admission/plugin/cel (compile.go), pkg/cel/environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mews.kube.cel.signatures import AUTHORIZER, RESOURCE_CHECK
from mews.kube.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of, struct

if TYPE_CHECKING:
    from mews.kube.cel.expressions import CompiledExpression

_STRINGS = list_of(STRING)
_KIND = struct("kubernetes.GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
_RESOURCE = struct("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), STRING))
_USER = struct(
    "kubernetes.UserInfo",
    {"username": STRING, "uid": STRING, "groups": _STRINGS, "extra": map_of(STRING, _STRINGS)},
)
REQUEST = struct(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_NAMESPACE_META = struct(
    "kubernetes.NamespaceMetadata",
    {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), STRING),
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "finalizers": _STRINGS,
    },
)
NAMESPACE = struct(
    "kubernetes.Namespace",
    {
        "metadata": _NAMESPACE_META,
        "spec": struct("kubernetes.NamespaceSpec", {"finalizers": _STRINGS}),
        "status": struct("kubernetes.NamespaceStatus", {"phase": STRING}),
    },
)

WEBHOOK_VARIABLES: Mapping[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "request": REQUEST,
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
}


def policy_variables(*, params: bool, variables: Mapping[str, Type] | None = None) -> dict[str, Type]:
    """Return the variables of a policy's expressions: ``params`` only with a paramKind, ``variables`` those declared so
    far (None where there are none at all)."""
    known: dict[str, Type] = {**WEBHOOK_VARIABLES, "namespaceObject": NAMESPACE}
    if params:
        known["params"] = DYN
    if variables is not None:
        known["variables"] = struct("kubernetes.variables", dict(variables))
    return known


def error_of(found: CompiledExpression, allowed: tuple[str, ...]) -> str:
    """Return what is wrong with an expression that must evaluate to one of the types; "" when nothing is."""
    if found.error:
        return f"compilation failed: {found.error}"
    if found.type.name in allowed or str(found.type) in allowed:
        return ""
    wanted = allowed[0] if len(allowed) == 1 else f"one of [{' '.join(allowed)}]"
    return f"must evaluate to {wanted} but got {found.type}"

"""The expressions of policies and match conditions: their variables and types, checked and compiled once.

Source: k8s.io/apiserver pkg/admission/plugin/cel (compile.go), pkg/cel/environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mews.kube.cel.checking import DYN, CelType, CheckedExpression, ListType, MapType, StructType, check, show
from mews.kube.cel.evaluation import Evaluate, compiled
from mews.kube.cel.syntax import Ident, Select

_STRINGS = ListType("string")


def _struct(name: str, fields: Mapping[str, CelType]) -> StructType:
    return StructType(name, fields.get)


_KIND = _struct("kubernetes.GroupVersionKind", {"group": "string", "version": "string", "kind": "string"})
_RESOURCE = _struct("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), "string"))
_USER = _struct(
    "kubernetes.UserInfo",
    {"username": "string", "uid": "string", "groups": _STRINGS, "extra": MapType(_STRINGS)},
)
REQUEST = _struct(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": "string",
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": _USER,
        "dryRun": "bool",
        "options": DYN,
    },
)
_NAMESPACE_META = _struct(
    "kubernetes.NamespaceMetadata",
    {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), "string"),
        "labels": MapType("string"),
        "annotations": MapType("string"),
        "UID": "string",
        "creationTimestamp": "google.protobuf.Timestamp",
        "deletionGracePeriodSeconds": "int",
        "deletionTimestamp": "google.protobuf.Timestamp",
        "generation": "int",
        "finalizers": _STRINGS,
    },
)
NAMESPACE = _struct(
    "kubernetes.Namespace",
    {
        "metadata": _NAMESPACE_META,
        "spec": _struct("kubernetes.NamespaceSpec", {"finalizers": _STRINGS}),
        "status": _struct("kubernetes.NamespaceStatus", {"phase": "string"}),
    },
)

WEBHOOK_VARIABLES: Mapping[str, CelType] = {
    "object": DYN,
    "oldObject": DYN,
    "request": REQUEST,
    "authorizer": DYN,
}


def policy_variables(*, params: bool, variables: Mapping[str, CelType] | None = None) -> dict[str, CelType]:
    """The variables of a policy's expressions: ``params`` only with a paramKind, ``variables`` those declared so far
    (None where there are none at all)."""
    known: dict[str, CelType] = {**WEBHOOK_VARIABLES, "namespaceObject": NAMESPACE}
    if params:
        known["params"] = DYN
    if variables is not None:
        known["variables"] = StructType("kubernetes.variables", dict(variables).get)
    return known


def fault_of(checked: CheckedExpression, source: str, allowed: tuple[str, ...]) -> str:
    """What is wrong with an expression that must evaluate to one of the types; "" when nothing is."""
    if checked.faults:
        return f"compilation failed: {checked.report(source)}"
    # Of what a field holds nothing is known, and upstream refuses that; of some functions we know less than upstream.
    is_field = isinstance(checked.tree, (Select, Ident))
    if show(checked.type) in allowed or (checked.type == DYN and not is_field):
        return ""
    wanted = allowed[0] if len(allowed) == 1 else f"one of [{' '.join(allowed)}]"
    return f"must evaluate to {wanted} but got {show(checked.type)}"


@lru_cache(maxsize=4096)
def program(source: str) -> Evaluate:
    """The compiled expression; what cannot be compiled raises ``CelError`` or ``CelSyntaxError``."""
    checked = check(source, {})
    if checked.tree is None:
        _, text = checked.faults[0]
        raise ValueError(text)
    return compiled(checked.tree)

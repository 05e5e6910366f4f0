"""The parameters of a policy's binding (k8s.io/apiserver pkg/admission/plugin/policy/generic)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.selectors import match_expressions
from mews.kube.emulated.core.store.admission import AdmissionAttributes
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.policies.expressions import shown_as

Spec = Mapping[str, Any]


class ParameterError(Exception):
    """A policy's parameters cannot be had."""


def parameters_of(store: Store, attributes: AdmissionAttributes, policy: Spec, binding: Spec) -> list[Object | None]:
    """Return what a binding is evaluated with, once each: ``[None]`` without parameters, nothing where none are found
    and that is allowed.

    Raises ``ParameterError``.
    """
    wanted, reference = policy.get("paramKind"), binding.get("paramRef")
    if wanted is None:
        return [None]
    kind = _kind(store, wanted)
    if kind is None:
        group, _, version = wanted["apiVersion"].rpartition("/")
        shown = f"{group}/{version}, Kind={wanted['kind']}"
        raise ParameterError(f"failed to configure policy: failed to find resource referenced by paramKind: '{shown}'")
    if reference is None:
        return [None]
    found: list[Object | None] = list(_found(store, attributes, kind, reference))
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ParameterError(
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    return found


def _kind(store: Store, wanted: Mapping[str, str]) -> Kind | None:
    for kind in store.kinds:
        if (kind.resource.api_version, kind.resource.kind) == (wanted["apiVersion"], wanted["kind"]):
            return kind
    return None


def _found(store: Store, attributes: AdmissionAttributes, kind: Kind, reference: Spec) -> list[Object]:
    namespace = reference.get("namespace") or ""
    if kind.resource.namespaced:
        namespace = namespace or attributes.namespace
        if not namespace:
            text = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise ParameterError(f"failed to configure binding: {text}")
    elif namespace:
        text = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
        raise ParameterError(f"failed to configure binding: {text}")
    if reference.get("name"):
        found = store.find(kind, namespace, reference["name"])
        shown = shown_as(kind, found)
        return [] if shown is None else [shown]
    selector = reference.get("selector") or {}
    candidates = store.shelf(kind).select(Selection(namespace or None))
    return [shown_as(kind, each) or each for each in candidates if match_expressions(selector, labels_of(each))]

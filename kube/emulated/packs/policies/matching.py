"""Which requests a rule of a policy or webhook is about (k8s.io/apiserver pkg/admission/plugin/webhook/predicates)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resources import NAMESPACES
from mews.kube.api.selectors import match_expressions
from mews.kube.emulated.core.store.admission import AdmissionAttributes
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store

Rule = Mapping[str, Any]

GROUP = "admissionregistration.k8s.io"


def matched_kind(
    store: Store, attributes: AdmissionAttributes, rules: Sequence[Rule], match_policy: str | None
) -> Kind | None:
    """Return the kind as which a request meets one of the rules: its own, or by ``Equivalent`` another view of the same
    objects; None when it meets none."""
    if any(_covers(rule, attributes, attributes.kind) for rule in rules):
        return attributes.kind
    if match_policy == "Exact":
        return None
    for other in _equivalents(store, attributes.kind):
        if any(_covers(rule, attributes, other) for rule in rules):
            return other
    return None


def _equivalents(store: Store, kind: Kind) -> Iterator[Kind]:
    for other in store.kinds:
        if other.storage == kind.storage and other.resource != kind.resource:
            yield other


def _covers(rule: Rule, attributes: AdmissionAttributes, kind: Kind) -> bool:
    resource = kind.resource
    operations = rule.get("operations") or ()
    names = rule.get("resourceNames") or ()
    return (
        ("*" in operations or attributes.operation in operations)
        and _among(resource.group, rule.get("apiGroups") or ())
        and _among(resource.version, rule.get("apiVersions") or ())
        and _is_in_scope(rule.get("scope") or "*", kind, attributes)
        and any(_is_resource(each, resource.plural, attributes.subresource) for each in rule.get("resources") or ())
        and (not names or attributes.named() in names)
    )


def _among(value: str, allowed: Sequence[str]) -> bool:
    return "*" in allowed or value in allowed


def _is_in_scope(scope: str, kind: Kind, _: AdmissionAttributes) -> bool:
    if scope == "Namespaced":
        return kind.resource.namespaced
    return scope != "Cluster" or not kind.resource.namespaced


def _is_resource(pattern: str, plural: str, subresource: str) -> bool:
    resource, slash, below = pattern.partition("/")
    if resource not in ("*", plural):
        return False
    return below in ("*", subresource) if slash else not subresource


def selects(store: Store, attributes: AdmissionAttributes, limits: Mapping[str, Any]) -> bool:
    """Return whether the namespace and the object carry the labels that a policy or webhook asks for."""
    return _namespace_selected(store, attributes, limits.get("namespaceSelector") or {}) and _object_selected(
        attributes, limits.get("objectSelector") or {}
    )


def _namespace_selected(store: Store, attributes: AdmissionAttributes, selector: Mapping[str, Any]) -> bool:
    if not selector:
        return True
    if attributes.kind.resource == NAMESPACES:
        return match_expressions(selector, labels_of(attributes.obj or attributes.old or {"metadata": {}}))
    if not attributes.kind.resource.namespaced:
        return True
    namespace = namespace_of(store, attributes)
    return namespace is not None and match_expressions(selector, labels_of(namespace))


def _object_selected(attributes: AdmissionAttributes, selector: Mapping[str, Any]) -> bool:
    if not selector:
        return True
    states = [obj for obj in (attributes.obj, attributes.old) if obj is not None]
    return any(match_expressions(selector, (obj.get("metadata") or {}).get("labels") or {}) for obj in states)


def namespace_of(store: Store, attributes: AdmissionAttributes) -> Object | None:
    """Return the namespace that a request is in; None for cluster-scoped ones."""
    if not attributes.kind.resource.namespaced:
        return None
    return store.find(store.kinds.of(NAMESPACES), "", attributes.namespace)


def is_configuration(kind: Kind) -> bool:
    """Return whether a kind configures admission itself, which no policy or webhook may touch."""
    return kind.resource.group == GROUP


_REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")


def is_review(kind: Kind) -> bool:
    """Return whether a kind asks who somebody is or what they may do, of which policies are not asked."""
    return kind.resource.group in _REVIEWS

"""Roles and bindings that every cluster is born with (facts of kube-apiserver 1.34's bootstrap policy), as far as
people use them: the rest belongs to controllers and nodes, which are in no need of permission here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.access.authorization import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP
from mews.kube.emulated.apiserver.objects.creation import create
from mews.kube.emulated.apiserver.store.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.store import Store

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"


def _rule(group: str, resources: str, verbs: Sequence[str]) -> Object:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}


def _paths(urls: str, *verbs: str) -> Object:
    return {"nonResourceURLs": urls.split(), "verbs": list(verbs)}


_PUBLIC = "/healthz /livez /readyz /version /version/"

_RULES: Mapping[str, Sequence[Object]] = {
    "cluster-admin": (_rule("*", "*", "*"), _paths("*", "*")),
    "system:basic-user": (
        _rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", ("create",)),
        _rule("authentication.k8s.io", "selfsubjectreviews", ("create",)),
    ),
    "system:discovery": (
        _paths("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/", "get"),
    ),
    "system:public-info-viewer": (_paths(_PUBLIC, "get"),),
    "system:aggregate-to-view": (
        _rule(
            "",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
            "replicationcontrollers/scale serviceaccounts services services/status",
            _READ,
        ),
        _rule(
            "",
            "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
            "resourcequotas resourcequotas/status",
            _READ,
        ),
        _rule("", "namespaces", _READ),
        _rule("discovery.k8s.io", "endpointslices", _READ),
        _rule(
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
            _READ,
        ),
        _rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", _READ),
        _rule("batch", "cronjobs cronjobs/status jobs jobs/status", _READ),
        _rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", _READ),
        _rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", _READ),
        _rule("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", _READ),
    ),
    "system:aggregate-to-edit": (
        _rule("", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", _READ),
        _rule("", "serviceaccounts", ("impersonate",)),
        _rule("", "pods pods/attach pods/exec pods/portforward pods/proxy", _WRITE),
        _rule("", "pods/eviction", ("create",)),
        _rule(
            "",
            "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
            "serviceaccounts services services/proxy",
            _WRITE,
        ),
        _rule("", "serviceaccounts/token", ("create",)),
        _rule(
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
            "statefulsets/scale",
            _WRITE,
        ),
        _rule("autoscaling", "horizontalpodautoscalers", _WRITE),
        _rule("batch", "cronjobs jobs", _WRITE),
        _rule("policy", "poddisruptionbudgets", _WRITE),
        _rule("networking.k8s.io", "ingresses networkpolicies", _WRITE),
        _rule("coordination.k8s.io", "leases", sorted((*_READ, *_WRITE))),
        _rule("resource.k8s.io", "resourceclaims resourceclaimtemplates", _WRITE),
    ),
    "system:aggregate-to-admin": (
        _rule("authorization.k8s.io", "localsubjectaccessreviews", ("create",)),
        _rule(GROUP, "rolebindings roles", sorted((*_READ, *_WRITE))),
    ),
}

_AGGREGATED: Mapping[str, tuple[str, ...]] = {
    "admin": (),
    "edit": ("admin",),
    "view": ("edit",),
}
"""The roles put together, with those that they are part of in turn."""

_BOUND: Mapping[str, tuple[str, ...]] = {
    "cluster-admin": (MASTERS,),
    "system:basic-user": (AUTHENTICATED,),
    "system:discovery": (AUTHENTICATED,),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
}
"""Groups by the role bound to them, under the role's own name."""


def furnish_roles(store: Store) -> None:
    """Create those that are not there."""
    roles, bindings = store.kinds.of(CLUSTER_ROLES), store.kinds.of(CLUSTER_ROLE_BINDINGS)
    for name, rules in _RULES.items():
        into = name.removeprefix("system:aggregate-to-")
        labels = {} if into == name else {f"{_AGGREGATE}{into}": "true"}
        if store.find(roles, "", name) is None:
            create(store, roles, "", {"metadata": _metadata(name, labels), "rules": list(rules)})
    for name, parts in _AGGREGATED.items():
        selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
        labels = {f"{_AGGREGATE}{part}": "true" for part in parts}
        body = {"metadata": _metadata(name, labels), "aggregationRule": {"clusterRoleSelectors": [selector]}}
        if store.find(roles, "", name) is None:
            create(store, roles, "", {**body, "rules": _put_together(name)})
    for name, groups in _BOUND.items():
        subjects = [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups]
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        if store.find(bindings, "", name) is None:
            create(store, bindings, "", {"metadata": _metadata(name, {}), "roleRef": reference, "subjects": subjects})


def _put_together(name: str) -> list[Object]:
    """What the aggregation comes to, for those who read the role; decisions follow the aggregation itself."""
    parts = [part for part, into in _AGGREGATED.items() if name in into]
    return [*_RULES[f"system:aggregate-to-{name}"], *(rule for part in parts for rule in _put_together(part))]


def _metadata(name: str, labels: Mapping[str, str]) -> Object:
    return {"name": name, "labels": {**_LABELS, **labels}, "annotations": _ANNOTATIONS}

"""Where the API keeps each kind that the manifests have."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.api.resources import CONFIGMAPS, CRDS, NAMESPACES, Resource

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
SECRETS = Resource("", "v1", "secrets", "Secret")

_RBAC = "rbac.authorization.k8s.io"

KINDS: Mapping[str, Resource] = {
    "Namespace": NAMESPACES,
    "CustomResourceDefinition": CRDS,
    "Secret": SECRETS,
    "ConfigMap": CONFIGMAPS,
    "Service": Resource("", "v1", "services", "Service"),
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    "ClusterRole": Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    "ClusterRoleBinding": Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    "Role": Resource(_RBAC, "v1", "roles", "Role"),
    "RoleBinding": Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    "Deployment": DEPLOYMENTS,
    "DaemonSet": DAEMONSETS,
}

"""Where the API keeps each kind that the manifests have."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.api.resources import (
    CONFIGMAPS,
    CRDS,
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)

_RBAC = "rbac.authorization.k8s.io"

KINDS: Mapping[str, Resource] = {
    "Namespace": NAMESPACES,
    "CustomResourceDefinition": CRDS,
    "Secret": SECRETS,
    "ConfigMap": CONFIGMAPS,
    "Service": SERVICES,
    "ServiceAccount": SERVICE_ACCOUNTS,
    "ClusterRole": Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    "ClusterRoleBinding": Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    "Role": Resource(_RBAC, "v1", "roles", "Role"),
    "RoleBinding": Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    "Deployment": DEPLOYMENTS,
    "DaemonSet": DAEMON_SETS,
}

"""Rules of kinds, by the name in the table of kinds; of plain ones by the qualified plural."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mews.kube.emulated.apiserver.objects.rules import (
    access,
    certificates,
    claims,
    crds,
    events,
    held_data,
    leases,
    limits,
    namespaces,
    nodes,
    pods,
    policies,
    priority_classes,
    services,
    workloads,
)
from mews.kube.emulated.apiserver.objects.rules.base import Rules

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.kinds import Kind

RULES: Mapping[str, Rules] = {
    "plain": Rules(),
    "crds": crds.RULES,
    "events": events.RULES,
    "leases": leases.RULES,
    "namespaces": namespaces.RULES,
    "nodes": nodes.RULES,
    "pods": pods.RULES,
    "priorityclasses": priority_classes.RULES,
    "secrets": held_data.SECRETS,
    "services": services.RULES,
    "configmaps": held_data.CONFIGMAPS,
    "certificatesigningrequests.certificates.k8s.io": certificates.RULES,
    "clusterroles.rbac.authorization.k8s.io": access.ROLES,
    "clusterrolebindings.rbac.authorization.k8s.io": access.CLUSTER_ROLE_BINDINGS,
    "horizontalpodautoscalers.autoscaling": limits.AUTOSCALERS,
    "limitranges": limits.LIMIT_RANGES,
    "networkpolicies.networking.k8s.io": limits.NETWORK_POLICIES,
    "persistentvolumeclaims": claims.RULES,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": policies.POLICIES,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": policies.BINDINGS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": policies.WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": policies.POLICIES,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": policies.BINDINGS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": policies.WEBHOOKS,
    "podtemplates": workloads.POD_TEMPLATES,
    "poddisruptionbudgets.policy": limits.BUDGETS,
    "resourcequotas": limits.QUOTAS,
    "rolebindings.rbac.authorization.k8s.io": access.ROLE_BINDINGS,
    "roles.rbac.authorization.k8s.io": access.ROLES,
    "cronjobs": workloads.CRON_JOBS,
    "daemonsets": workloads.DAEMON_SETS,
    "deployments": workloads.DEPLOYMENTS,
    "jobs": workloads.JOBS,
    "replicasets": workloads.REPLICA_SETS,
    "replicationcontrollers": workloads.REPLICATION_CONTROLLERS,
    "statefulsets": workloads.STATEFUL_SETS,
}


def rules_of(kind: Kind) -> Rules:
    """The rules of a built-in kind."""
    return RULES[kind.rules] if kind.rules != "plain" else RULES.get(kind.qualified, RULES["plain"])

"""Rules of kinds, by the name in the table of kinds; of plain ones by the qualified plural."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mews.kube.emulated.apiserver.objects.rules import (
    access,
    autoscaling,
    claims,
    crds,
    endpoints,
    events,
    flow_control,
    held_data,
    leases,
    limits,
    namespaces,
    networking,
    nodes,
    pods,
    policies,
    priority_classes,
    services,
    storage,
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
    "clusterroles.rbac.authorization.k8s.io": access.CLUSTER_ROLES,
    "clusterrolebindings.rbac.authorization.k8s.io": access.CLUSTER_ROLE_BINDINGS,
    "horizontalpodautoscalers.autoscaling": autoscaling.RULES,
    "limitranges": limits.LIMIT_RANGES,
    "networkpolicies.networking.k8s.io": networking.POLICIES,
    "persistentvolumeclaims": claims.RULES,
    "persistentvolumes": claims.VOLUMES,
    "endpoints": endpoints.ENDPOINTS,
    "endpointslices.discovery.k8s.io": endpoints.SLICES,
    "ingresses.networking.k8s.io": networking.INGRESSES,
    "ingressclasses.networking.k8s.io": networking.CLASSES,
    "ipaddresses.networking.k8s.io": networking.ADDRESSES,
    "servicecidrs.networking.k8s.io": networking.RANGES,
    "storageclasses.storage.k8s.io": storage.CLASSES,
    "volumeattributesclasses.storage.k8s.io": storage.ATTRIBUTES_CLASSES,
    "volumeattachments.storage.k8s.io": storage.ATTACHMENTS,
    "csinodes.storage.k8s.io": storage.NODES,
    "csidrivers.storage.k8s.io": storage.DRIVERS,
    "csistoragecapacities.storage.k8s.io": storage.CAPACITIES,
    "flowschemas.flowcontrol.apiserver.k8s.io": flow_control.SCHEMAS,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": flow_control.LEVELS,
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

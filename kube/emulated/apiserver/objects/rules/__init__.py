"""Rules of kinds, by the name in the table of kinds; of plain ones by the qualified plural."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from mews.kube.emulated.apiserver.objects.rules import (
    access,
    autoscaling,
    certificates,
    claims,
    crds,
    devices,
    endpoints,
    events,
    flow_control,
    held_data,
    leases,
    limits,
    namespaces,
    networking,
    nodes,
    plain_kinds,
    pods,
    policies,
    priority_classes,
    quotas,
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
    "newevents": events.NEW_EVENTS,
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
    "controllerrevisions.apps": plain_kinds.REVISIONS,
    "runtimeclasses.node.k8s.io": plain_kinds.RUNTIME_CLASSES,
    "apiservices.apiregistration.k8s.io": plain_kinds.API_SERVICES,
    "certificatesigningrequests.certificates.k8s.io": replace(
        certificates.RULES,
        validate=plain_kinds.request_faults,
        validate_change=lambda *_: [],
        validate_status=plain_kinds.request_status_faults,
    ),
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
    "deviceclasses.resource.k8s.io": devices.CLASSES,
    "resourceclaims.resource.k8s.io": devices.CLAIMS,
    "resourceclaimtemplates.resource.k8s.io": devices.CLAIM_TEMPLATES,
    "resourceslices.resource.k8s.io": devices.SLICES,
    "poddisruptionbudgets.policy": limits.BUDGETS,
    "resourcequotas": quotas.RULES,
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

_METADATA_REPORTS: Mapping[int, tuple[str, ...]] = {
    2: ("poddisruptionbudgets.policy",),
    4: (
        "configmaps",
        "endpoints",
        "namespaces",
        "nodes",
        "persistentvolumes",
        "pods",
        "secrets",
        "serviceaccounts",
        "replicationcontrollers",
        "controllerrevisions.apps",
        "jobs.batch",
        "apiservices.apiregistration.k8s.io",
        "certificatesigningrequests.certificates.k8s.io",
        "ingressclasses.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "ipaddresses.networking.k8s.io",
        "networkpolicies.networking.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "runtimeclasses.node.k8s.io",
        "deviceclasses.resource.k8s.io",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
    ),
    5: (
        "persistentvolumeclaims",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    ),
}
"""How often a fault of the metadata is named on update, where not three times (measured on Kubernetes 1.34.2)."""

_STATUS_METADATA_REPORTS: Mapping[int, tuple[str, ...]] = {
    0: (
        "apiservices.apiregistration.k8s.io",
        "servicecidrs.networking.k8s.io",
        "volumeattachments.storage.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "resourceclaims.resource.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    ),
    1: ("deployments.apps",),
    2: ("cronjobs.batch", "poddisruptionbudgets.policy"),
    4: ("certificatesigningrequests.certificates.k8s.io",),
}
"""The same for a status that is written; 0 where its metadata is not looked at."""

_VALIDATED_TWICE = (
    "replicationcontrollers",
    "networkpolicies.networking.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "nodes",
    "persistentvolumes",
    "persistentvolumeclaims",
    "csinodes.storage.k8s.io",
)


@cache
def _of(name: str, qualified: str) -> Rules:
    name = "newevents" if qualified == "events.events.k8s.io" else name
    found = RULES[name] if name != "plain" else RULES.get(qualified, RULES["plain"])
    return replace(
        found,
        metadata_reports=_number(_METADATA_REPORTS, qualified),
        status_metadata_reports=_number(_STATUS_METADATA_REPORTS, qualified),
        validated_twice=qualified in _VALIDATED_TWICE,
        labels_stay=qualified == "deployments.apps",
    )


def _number(table: Mapping[int, tuple[str, ...]], qualified: str) -> int:
    return next((number for number, kinds in table.items() if qualified in kinds), 3)


def rules_of(kind: Kind) -> Rules:
    """The rules of a built-in kind."""
    return _of(kind.rules, kind.qualified)

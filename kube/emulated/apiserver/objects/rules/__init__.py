"""Rules of kinds, by the qualified plural: the registry of the modules beside this one.

A kind's rules are imported with the first of its objects: most clusters see a dozen of the sixty kinds, and importing
the validation of all of them was a tenth of a virtual run's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.disabled_features import DROPS, GATED_HOOKS
from mews.kube.emulated.apiserver.objects.rules.later_rules import (
    STAMPS,
    change_errors_of,
    errors_of,
    revision,
    status_errors_of,
    warnings_of,
)
from mews.kube.emulated.apiserver.types.gated_fields import dropper
from mews.kube.emulated.apiserver.types.gotypes import root_of
from mews.kube.releases.feature_gates import FeatureGates
from mews.kube.releases.release_data import DEFAULT, minor

if TYPE_CHECKING:
    from mews.kube.api.objects import Object
    from mews.kube.api.resources import Resource
    from mews.kube.emulated.apiserver.store.kinds import Kind

_STANDARD = FeatureGates()

RULES: Mapping[str, str] = {
    "configmaps": "held_data:CONFIGMAPS",
    "endpoints": "endpoints:ENDPOINTS",
    "events": "events:RULES",
    "limitranges": "limits:LIMIT_RANGES",
    "namespaces": "namespaces:RULES",
    "nodes": "nodes:RULES",
    "persistentvolumeclaims": "claims:RULES",
    "persistentvolumes": "claims:VOLUMES",
    "pods": "pods:RULES",
    "podtemplates": "workloads:POD_TEMPLATES",
    "replicationcontrollers": "workloads:REPLICATION_CONTROLLERS",
    "resourcequotas": "quotas:RULES",
    "secrets": "held_data:SECRETS",
    "serviceaccounts": "plain_kinds:SERVICE_ACCOUNTS",
    "services": "services:RULES",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": "webhook_configurations:WEBHOOKS",
    "validatingadmissionpolicies.admissionregistration.k8s.io": "policies:POLICIES",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": "policies:BINDINGS",
    "validatingwebhookconfigurations.admissionregistration.k8s.io": "webhook_configurations:WEBHOOKS",
    "customresourcedefinitions.apiextensions.k8s.io": "crds:RULES",
    "apiservices.apiregistration.k8s.io": "plain_kinds:API_SERVICES",
    "controllerrevisions.apps": "plain_kinds:REVISIONS",
    "daemonsets.apps": "workloads:DAEMON_SETS",
    "deployments.apps": "workloads:DEPLOYMENTS",
    "replicasets.apps": "workloads:REPLICA_SETS",
    "statefulsets.apps": "workloads:STATEFUL_SETS",
    "horizontalpodautoscalers.autoscaling": "autoscaling:RULES",
    "cronjobs.batch": "workloads:CRON_JOBS",
    "jobs.batch": "workloads:JOBS",
    "certificatesigningrequests.certificates.k8s.io": "certificates:RULES",
    "leases.coordination.k8s.io": "leases:RULES",
    "endpointslices.discovery.k8s.io": "endpoints:SLICES",
    "events.events.k8s.io": "events:NEW_EVENTS",
    "flowschemas.flowcontrol.apiserver.k8s.io": "flow_control:SCHEMAS",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "flow_control:LEVELS",
    "ingressclasses.networking.k8s.io": "networking:CLASSES",
    "ingresses.networking.k8s.io": "networking:INGRESSES",
    "ipaddresses.networking.k8s.io": "networking:ADDRESSES",
    "networkpolicies.networking.k8s.io": "networking:POLICIES",
    "servicecidrs.networking.k8s.io": "networking:RANGES",
    "runtimeclasses.node.k8s.io": "plain_kinds:RUNTIME_CLASSES",
    "poddisruptionbudgets.policy": "limits:BUDGETS",
    "clusterrolebindings.rbac.authorization.k8s.io": "access:CLUSTER_ROLE_BINDINGS",
    "clusterroles.rbac.authorization.k8s.io": "access:CLUSTER_ROLES",
    "rolebindings.rbac.authorization.k8s.io": "access:ROLE_BINDINGS",
    "roles.rbac.authorization.k8s.io": "access:ROLES",
    "deviceclasses.resource.k8s.io": "devices:CLASSES",
    "devicetaintrules.resource.k8s.io": "device_taint_rules:RULES",
    "resourceclaims.resource.k8s.io": "devices:CLAIMS",
    "resourceclaimtemplates.resource.k8s.io": "devices:CLAIM_TEMPLATES",
    "resourceslices.resource.k8s.io": "devices:SLICES",
    "priorityclasses.scheduling.k8s.io": "priority_classes:RULES",
    "csidrivers.storage.k8s.io": "storage:DRIVERS",
    "csinodes.storage.k8s.io": "storage:NODES",
    "csistoragecapacities.storage.k8s.io": "storage:CAPACITIES",
    "storageclasses.storage.k8s.io": "storage:CLASSES",
    "volumeattachments.storage.k8s.io": "storage:ATTACHMENTS",
    "volumeattributesclasses.storage.k8s.io": "storage:ATTRIBUTES_CLASSES",
}
"""Qualified plural -> ``module:attribute`` in this package; other kinds are plain."""

_PLAIN_FINALIZERS = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
    )
)
"""Groups whose validation asks no more of finalizers than that they are qualified names."""


@cache
def _of(qualified: str, group: str) -> Rules:
    """Return it as where every feature that the rules know is on or off by the first release's default."""
    found: Rules = _load(RULES.get(qualified, "base:PLAIN"))
    return replace(found, metadata=replace(found.metadata, plain_finalizers=group in _PLAIN_FINALIZERS))


def _load(reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    return attrgetter(attribute)(import_module(f".{module}", __name__))


def _later(rules: Rules, kind: Kind) -> Rules:
    """Return the rules as a later release has them."""
    release, name = kind.release, kind.qualified
    since, reference = STAMPS.get(name, ("", ""))
    stamp = _load(reference) if since and minor(release) >= minor(since) else rules.stamp_update
    return replace(
        rules,
        warn=warnings_of(release, name, rules.warn),
        reword=revision(release, name) or rules.reword,
        validate=errors_of(release, name, rules.validate),
        validate_update=change_errors_of(release, name, rules.validate_update),
        validate_status_update=status_errors_of(release, name, rules.validate_status_update),
        stamp_update=stamp,
    )


def _kept(kind: Kind) -> Resource:
    """Return it in the version that is stored, which is the one that rules are asked about."""
    return replace(kind.resource, version=kind.kept_in) if kind.kept_in else kind.resource


def rules_of(kind: Kind, gates: FeatureGates = _STANDARD) -> Rules:
    """Return the rules of a built-in kind where those features are on."""
    rules = _of(kind.qualified, kind.resource.group)
    root = root_of(_kept(kind), kind.release)
    drop = None if root is None else dropper(root, gates, DROPS)
    if kind.qualified in GATED_HOOKS:
        gate, hooks = GATED_HOOKS[kind.qualified]
        if gates.on(gate):
            rules = replace(rules, **{hook: each and _load(each) for hook, each in hooks.items()})
    if kind.release != DEFAULT:
        rules = _later(rules, kind)
    if drop is None:
        return rules
    default = rules.default

    def dropped_and_defaulted(obj: Object) -> None:
        drop(obj)
        if default is not None:
            default(obj)

    return replace(rules, default=dropped_and_defaulted)

"""Rules of kinds, by the qualified plural: the one registry of ``kinds`` and ``packs``.

A kind's rules are imported with the first of its objects: most clusters see a dozen of the sixty kinds, and importing
the validation of all of them was a tenth of a virtual run's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.parts import part
from mews.kube.emulated.kinds.disabled_features import DROPS, GATED_HOOKS
from mews.kube.emulated.kinds.later_rules import (
    STAMPS,
    change_errors_of,
    errors_of,
    revision,
    status_errors_of,
    warnings_of,
)
from mews.kube.emulated.types.gated_fields import dropper
from mews.kube.emulated.types.gotypes import root_of
from mews.kube.releases.feature_gates import FeatureGates
from mews.kube.releases.release_data import DEFAULT, minor

if TYPE_CHECKING:
    from mews.kube.api.objects import Object
    from mews.kube.api.resources import Resource
    from mews.kube.emulated.core.store.kinds import Kind

_STANDARD = FeatureGates()

RULES: Mapping[str, str] = {
    "bindings": "kinds.bindings:RULES",
    "configmaps": "kinds.configmaps:RULES",
    "endpoints": "kinds.services.endpoints:RULES",
    "events": "kinds.events:RULES",
    "limitranges": "kinds.limit_ranges:RULES",
    "namespaces": "kinds.namespaces:RULES",
    "nodes": "kinds.nodes:RULES",
    "persistentvolumeclaims": "kinds.volumes.persistent_volume_claims:RULES",
    "persistentvolumes": "kinds.volumes.persistent_volumes:RULES",
    "pods": "kinds.pods.pods:RULES",
    "podtemplates": "kinds.workloads.pod_templates:RULES",
    "replicationcontrollers": "kinds.workloads.replication_controllers:RULES",
    "resourcequotas": "kinds.resource_quotas:RULES",
    "secrets": "kinds.secrets:RULES",
    "serviceaccounts": "kinds.service_accounts:RULES",
    "services": "kinds.services.services:RULES",
    "mutatingadmissionpolicies.admissionregistration.k8s.io": "packs.policies.mutating_policies:RULES",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": "packs.policies.mutating_bindings:RULES",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": "packs.policies.webhook_configurations:WEBHOOKS",
    "validatingadmissionpolicies.admissionregistration.k8s.io": "packs.policies.validating_policies:RULES",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": "packs.policies.validating_bindings:RULES",
    "validatingwebhookconfigurations.admissionregistration.k8s.io": "packs.policies.webhook_configurations:WEBHOOKS",
    "customresourcedefinitions.apiextensions.k8s.io": "packs.definitions.definitions:RULES",
    "apiservices.apiregistration.k8s.io": "packs.aggregation.api_services:RULES",
    "controllerrevisions.apps": "kinds.workloads.controller_revisions:RULES",
    "daemonsets.apps": "kinds.workloads.daemon_sets:RULES",
    "deployments.apps": "kinds.workloads.deployments:RULES",
    "replicasets.apps": "kinds.workloads.replica_sets:RULES",
    "statefulsets.apps": "kinds.workloads.stateful_sets:RULES",
    "selfsubjectreviews.authentication.k8s.io": "packs.access.review_kinds:RULES",
    "tokenreviews.authentication.k8s.io": "packs.access.review_kinds:RULES",
    "localsubjectaccessreviews.authorization.k8s.io": "packs.access.review_kinds:RULES",
    "selfsubjectaccessreviews.authorization.k8s.io": "packs.access.review_kinds:RULES",
    "selfsubjectrulesreviews.authorization.k8s.io": "packs.access.review_kinds:RULES",
    "subjectaccessreviews.authorization.k8s.io": "packs.access.review_kinds:RULES",
    "horizontalpodautoscalers.autoscaling": "kinds.horizontal_pod_autoscalers:RULES",
    "cronjobs.batch": "kinds.workloads.cron_jobs:RULES",
    "jobs.batch": "kinds.workloads.jobs:RULES",
    "certificatesigningrequests.certificates.k8s.io": "packs.certificates.requests:RULES",
    "clustertrustbundles.certificates.k8s.io": "packs.certificates.trust_bundles:RULES",
    "podcertificaterequests.certificates.k8s.io": "packs.certificates.pod_certificate_requests:RULES",
    "leasecandidates.coordination.k8s.io": "kinds.lease_candidates:RULES",
    "leases.coordination.k8s.io": "kinds.leases:RULES",
    "endpointslices.discovery.k8s.io": "kinds.services.endpoint_slices:RULES",
    "events.events.k8s.io": "kinds.events:NEW_EVENTS",
    "flowschemas.flowcontrol.apiserver.k8s.io": "packs.flow_control.flow_schemas:RULES",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "packs.flow_control.priority_levels:RULES",
    "ingressclasses.networking.k8s.io": "packs.networking.ingress_classes:RULES",
    "ingresses.networking.k8s.io": "packs.networking.ingresses:RULES",
    "ipaddresses.networking.k8s.io": "packs.networking.ip_addresses:RULES",
    "networkpolicies.networking.k8s.io": "packs.networking.network_policies:RULES",
    "servicecidrs.networking.k8s.io": "packs.networking.service_cidrs:RULES",
    "runtimeclasses.node.k8s.io": "kinds.runtime_classes:RULES",
    "poddisruptionbudgets.policy": "kinds.pod_disruption_budgets:RULES",
    "clusterrolebindings.rbac.authorization.k8s.io": "packs.access.roles:CLUSTER_ROLE_BINDINGS",
    "clusterroles.rbac.authorization.k8s.io": "packs.access.roles:CLUSTER_ROLES",
    "rolebindings.rbac.authorization.k8s.io": "packs.access.roles:ROLE_BINDINGS",
    "roles.rbac.authorization.k8s.io": "packs.access.roles:ROLES",
    "deviceclasses.resource.k8s.io": "packs.devices.claim_kinds:CLASSES",
    "devicetaintrules.resource.k8s.io": "packs.devices.device_taint_rules:RULES",
    "resourceclaims.resource.k8s.io": "packs.devices.claim_kinds:CLAIMS",
    "resourceclaimtemplates.resource.k8s.io": "packs.devices.claim_kinds:CLAIM_TEMPLATES",
    "resourceslices.resource.k8s.io": "packs.devices.resource_slices:RULES",
    "compositepodgroups.scheduling.k8s.io": "kinds.composite_pod_groups:RULES",
    "podgroups.scheduling.k8s.io": "kinds.pod_groups:RULES",
    "priorityclasses.scheduling.k8s.io": "kinds.priority_classes:RULES",
    "csidrivers.storage.k8s.io": "packs.storage.csi_drivers:RULES",
    "csinodes.storage.k8s.io": "packs.storage.csi_nodes:RULES",
    "csistoragecapacities.storage.k8s.io": "packs.storage.csi_storage_capacities:RULES",
    "storageclasses.storage.k8s.io": "packs.storage.storage_classes:RULES",
    "volumeattachments.storage.k8s.io": "packs.storage.volume_attachments:RULES",
    "volumeattributesclasses.storage.k8s.io": "packs.storage.volume_attributes_classes:RULES",
    "storageversionmigrations.storagemigration.k8s.io": "kinds.storage_version_migrations:RULES",
}
"""Qualified plural -> ``module:attribute`` below ``kube.emulated``; other kinds are plain."""

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
    found: Rules = part(RULES.get(qualified, "core.checks.base:PLAIN"))
    return replace(found, metadata=replace(found.metadata, plain_finalizers=group in _PLAIN_FINALIZERS))


def _later(rules: Rules, kind: Kind) -> Rules:
    """Return the rules as a later release has them."""
    release, name = kind.release, kind.qualified
    since, reference = STAMPS.get(name, ("", ""))
    stamp = part(reference) if since and minor(release) >= minor(since) else rules.stamp_update
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
            rules = replace(rules, **{hook: each and part(each) for hook, each in hooks.items()})
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

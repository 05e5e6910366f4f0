"""Rules of kinds, by the name in the table of kinds; of plain ones by the qualified plural.

A kind's rules are imported with the first of its objects: most clusters see a dozen of the sixty kinds, and importing
the validation of all of them was a tenth of a virtual run's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

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
from mews.kube.emulated.apiserver.store.metadata_errors import (
    MetadataChecks,
    NameTexts,
    UpdateCheck,
    anyhow_named,
    dns_1035_named,
    label_named,
    segment_named,
    subdomain_named,
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
    "plain": "base:PLAIN",
    "crds": "crds:RULES",
    "events": "events:RULES",
    "newevents": "events:NEW_EVENTS",
    "leases": "leases:RULES",
    "namespaces": "namespaces:RULES",
    "nodes": "nodes:RULES",
    "pods": "pods:RULES",
    "priorityclasses": "priority_classes:RULES",
    "secrets": "held_data:SECRETS",
    "services": "services:RULES",
    "configmaps": "held_data:CONFIGMAPS",
    "clusterroles.rbac.authorization.k8s.io": "access:CLUSTER_ROLES",
    "clusterrolebindings.rbac.authorization.k8s.io": "access:CLUSTER_ROLE_BINDINGS",
    "horizontalpodautoscalers.autoscaling": "autoscaling:RULES",
    "limitranges": "limits:LIMIT_RANGES",
    "networkpolicies.networking.k8s.io": "networking:POLICIES",
    "persistentvolumeclaims": "claims:RULES",
    "controllerrevisions.apps": "plain_kinds:REVISIONS",
    "runtimeclasses.node.k8s.io": "plain_kinds:RUNTIME_CLASSES",
    "apiservices.apiregistration.k8s.io": "plain_kinds:API_SERVICES",
    "certificatesigningrequests.certificates.k8s.io": "certificates:RULES",
    "persistentvolumes": "claims:VOLUMES",
    "endpoints": "endpoints:ENDPOINTS",
    "endpointslices.discovery.k8s.io": "endpoints:SLICES",
    "ingresses.networking.k8s.io": "networking:INGRESSES",
    "ingressclasses.networking.k8s.io": "networking:CLASSES",
    "ipaddresses.networking.k8s.io": "networking:ADDRESSES",
    "servicecidrs.networking.k8s.io": "networking:RANGES",
    "storageclasses.storage.k8s.io": "storage:CLASSES",
    "volumeattributesclasses.storage.k8s.io": "storage:ATTRIBUTES_CLASSES",
    "volumeattachments.storage.k8s.io": "storage:ATTACHMENTS",
    "csinodes.storage.k8s.io": "storage:NODES",
    "csidrivers.storage.k8s.io": "storage:DRIVERS",
    "csistoragecapacities.storage.k8s.io": "storage:CAPACITIES",
    "flowschemas.flowcontrol.apiserver.k8s.io": "flow_control:SCHEMAS",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "flow_control:LEVELS",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": "webhook_configurations:WEBHOOKS",
    "validatingadmissionpolicies.admissionregistration.k8s.io": "policies:POLICIES",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": "policies:BINDINGS",
    "validatingwebhookconfigurations.admissionregistration.k8s.io": "webhook_configurations:WEBHOOKS",
    "podtemplates": "workloads:POD_TEMPLATES",
    "deviceclasses.resource.k8s.io": "devices:CLASSES",
    "resourceclaims.resource.k8s.io": "devices:CLAIMS",
    "resourceclaimtemplates.resource.k8s.io": "devices:CLAIM_TEMPLATES",
    "resourceslices.resource.k8s.io": "devices:SLICES",
    "devicetaintrules.resource.k8s.io": "device_taint_rules:RULES",
    "poddisruptionbudgets.policy": "limits:BUDGETS",
    "resourcequotas": "quotas:RULES",
    "rolebindings.rbac.authorization.k8s.io": "access:ROLE_BINDINGS",
    "roles.rbac.authorization.k8s.io": "access:ROLES",
    "cronjobs": "workloads:CRON_JOBS",
    "daemonsets": "workloads:DAEMON_SETS",
    "deployments": "workloads:DEPLOYMENTS",
    "jobs": "workloads:JOBS",
    "replicasets": "workloads:REPLICA_SETS",
    "replicationcontrollers": "workloads:REPLICATION_CONTROLLERS",
    "statefulsets": "workloads:STATEFUL_SETS",
}
"""``module:attribute`` in this package."""

_WHOLE, _UPDATE = UpdateCheck.METADATA, UpdateCheck.METADATA_UPDATE
_OBJECT, _CHANGE = UpdateCheck.OBJECT, UpdateCheck.CHANGE
_UPDATES: Mapping[tuple[UpdateCheck, ...], tuple[str, ...]] = {
    (): ("events", "poddisruptionbudgets.policy"),
    (_WHOLE,): (
        "limitranges",
        "endpointslices.discovery.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    ),
    (_WHOLE, _OBJECT, _WHOLE, _OBJECT, _CHANGE): ("persistentvolumes", "csinodes.storage.k8s.io"),
    (_WHOLE, _WHOLE): ("volumeattachments.storage.k8s.io",),
    (_UPDATE, _CHANGE, _WHOLE, _OBJECT): ("configmaps", "secrets", "ingressclasses.networking.k8s.io"),
    (_UPDATE, _WHOLE): (
        "endpoints",
        "pods",
        "serviceaccounts",
        "controllerrevisions.apps",
        "apiservices.apiregistration.k8s.io",
        "ingresses.networking.k8s.io",
    ),
    (_WHOLE, _OBJECT, _UPDATE, _CHANGE): (
        "namespaces",
        "jobs.batch",
        "csistoragecapacities.storage.k8s.io",
        "storageclasses.storage.k8s.io",
        "runtimeclasses.node.k8s.io",
        "ipaddresses.networking.k8s.io",
    ),
    (_WHOLE, _UPDATE): (
        "nodes",
        "certificatesigningrequests.certificates.k8s.io",
        "deviceclasses.resource.k8s.io",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
    ),
    (_WHOLE, _OBJECT, _UPDATE, _OBJECT, _CHANGE): ("replicationcontrollers", "networkpolicies.networking.k8s.io"),
    (_WHOLE, _UPDATE, _WHOLE): ("persistentvolumeclaims", "volumeattributesclasses.storage.k8s.io"),
    (_WHOLE, _OBJECT, _WHOLE, _OBJECT, _UPDATE, _CHANGE): (
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
    ),
}
"""What an update's own validation looks at, one after the other (``MetadataChecks.on_update``), where not the update of
the metadata and then the rest: as the update strategies of pkg/registry call the validation of pkg/apis."""

_STATUS_UPDATES: Mapping[tuple[UpdateCheck, ...], tuple[str, ...]] = {
    (): (
        "cronjobs.batch",
        "poddisruptionbudgets.policy",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    ),
    (_WHOLE, _UPDATE): ("certificatesigningrequests.certificates.k8s.io",),
}
"""The same for a status that is written."""

_RESET = ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences")
_STATUS_LEAVES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    _RESET: (
        "servicecidrs.networking.k8s.io",
        "volumeattachments.storage.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "resourceclaims.resource.k8s.io",
        "devicetaintrules.resource.k8s.io",
    ),
    (*_RESET, "generateName", "deletionGracePeriodSeconds"): (
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    ),
    ("labels", "annotations", "finalizers", "ownerReferences"): ("apiservices.apiregistration.k8s.io",),
    ("labels",): ("deployments.apps",),
}
"""Parts of the metadata that a write of the status does not change."""

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

_NAMED: Mapping[str, NameTexts | str] = {
    "namespaces": label_named,
    "services": dns_1035_named,
    "statefulsets.apps": label_named,
    "clusterrolebindings.rbac.authorization.k8s.io": segment_named,
    "clusterroles.rbac.authorization.k8s.io": segment_named,
    "rolebindings.rbac.authorization.k8s.io": segment_named,
    "roles.rbac.authorization.k8s.io": segment_named,
    "certificatesigningrequests.certificates.k8s.io": anyhow_named,
    "apiservices.apiregistration.k8s.io": "plain_kinds:named_by_group_and_version",
    "customresourcedefinitions.apiextensions.k8s.io": "crds:named_by_plural_and_group",
    "ipaddresses.networking.k8s.io": "networking:named_by_address",
}
"""How names are made, where they are not RFC 1123 subdomains; a ``module:attribute`` like those of the rules."""


@cache
def _of(name: str, qualified: str, group: str) -> Rules:
    """As where every feature that the rules know is on or off by the first release's default."""
    name = "newevents" if qualified == "events.events.k8s.io" else name
    found: Rules = _load(RULES[name] if name != "plain" else RULES.get(qualified, RULES["plain"]))
    named = _NAMED.get(qualified, subdomain_named)
    leaves: tuple[str, ...] = _entry(_STATUS_LEAVES, qualified, ())
    checks = MetadataChecks(
        name_texts=_load(named) if isinstance(named, str) else named,
        on_create=qualified not in _UPDATES[()],
        on_update=_entry(_UPDATES, qualified, (_UPDATE,)),
        on_status=_entry(_STATUS_UPDATES, qualified, (_UPDATE,)),
        plain_finalizers=group in _PLAIN_FINALIZERS,
        status_leaves=leaves,
    )
    return replace(found, metadata=checks)


def _load(reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    return attrgetter(attribute)(import_module(f".{module}", __name__))


E = TypeVar("E")


def _entry(table: Mapping[E, tuple[str, ...]], qualified: str, usual: E) -> E:
    return next((entry for entry, kinds in table.items() if qualified in kinds), usual)


def _later(rules: Rules, kind: Kind) -> Rules:
    """The rules as a later release has them."""
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
    """In the version that is stored, which is the one that rules are asked about."""
    return replace(kind.resource, version=kind.kept_in) if kind.kept_in else kind.resource


def rules_of(kind: Kind, gates: FeatureGates = _STANDARD) -> Rules:
    """The rules of a built-in kind where those features are on."""
    rules = _of(kind.rules, kind.qualified, kind.resource.group)
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

"""The cells of kinds that later releases print, or serve only where their feature gates and versions are switched on
(upstream's printers, pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, condition_of
from mews.kube.emulated.core.tables.cells import Printer, Row, labels_text, parameter_kind, selector_text, spec_of

_STATES = ("Issued", "Denied", "Failed")
_MIGRATIONS = ("Running", "Failed", "Succeeded")


def _conditions(obj: Object) -> list[Mapping[str, Any]]:
    return (obj.get("status") or {}).get("conditions") or []


def _trust_bundle(obj: Object, _: float) -> Row:
    return [spec_of(obj).get("signerName") or "<none>"]


def _lease_candidate(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    return [spec.get("leaseName", ""), spec.get("binaryVersion", ""), spec.get("emulationVersion", "")]


def _mutating_policy(obj: Object, _: float) -> Row:
    return [len(spec_of(obj).get("mutations") or ()), parameter_kind(obj)]


def _mutating_binding(obj: Object, _: float) -> Row:
    spec, parameters = spec_of(obj), spec_of(obj).get("paramRef") or {}
    named = "<unset>"
    if parameters.get("name"):
        named = f"{parameters.get('namespace') or '*'}/{parameters['name']}"
    elif parameters.get("selector") is not None:
        named = selector_text(parameters["selector"])
    return [spec.get("policyName", ""), named]


def _pod_certificate_request(obj: Object, _: float) -> Row:
    """Later releases have a last column."""
    spec, state = spec_of(obj), "Pending"
    for condition in _conditions(obj):
        state = condition["type"] if condition["type"] in _STATES else state
    names = [spec.get(name, "") for name in ("podName", "serviceAccountName", "nodeName", "signerName")]
    return [*names, state, labels_text(spec.get("unverifiedUserAnnotations"))]


def _migration(obj: Object, _: float) -> Row:
    """Later releases have a second column."""
    resource, state = spec_of(obj).get("resource") or {}, "Unknown"
    for condition in _conditions(obj):
        if condition.get("status") == "True" and condition["type"] in _MIGRATIONS:
            state = condition["type"]
    return [f"{resource.get('resource', '')}.{resource.get('group', '')}".rstrip("."), state]


def _pod_group(obj: Object, _: float) -> Row:
    conditions, state = {each["type"]: each for each in _conditions(obj)}, "Pending"
    if scheduled := conditions.get("PodGroupInitiallyScheduled"):
        state = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if target := conditions.get("DisruptionTarget"):
        state = target.get("reason", "")
    return [*_composite_group(obj, 0.0), state]


def _composite_group(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    gang = (spec.get("schedulingPolicy") or {}).get("gang") is not None
    return ["Gang" if gang else "Basic", (spec.get("workloadRef") or {}).get("workloadName") or "<none>"]


def _definition(crd: Object, _: float) -> Row:
    """pkg/registry/customresourcedefinition/tableconvertor of k8s.io/apiextensions-apiserver, 1.37."""
    spec, metadata = spec_of(crd), crd["metadata"]
    named, established = spec.get("names") or {}, condition_of(crd, "Established") or {}
    served = [version for version in spec.get("versions") or () if version.get("served")]
    versions = sorted(f"{each['name']}{'(storage)' if each.get('storage') else ''}" for each in served)
    return [
        metadata["name"],
        spec.get("scope", ""),
        ",".join(versions),
        metadata.get("creationTimestamp", ""),
        spec.get("group", ""),
        named.get("kind", ""),
        ",".join(named.get("shortNames") or ()),
        established.get("status") == "True",
    ]


RARE_TABLES: Mapping[str, Printer] = {
    "customresourcedefinitions.apiextensions.k8s.io": Printer(_definition, nothing_is_null=True),
} | {
    name: Printer(part, is_part=True)
    for name, part in (
        ("clustertrustbundles.certificates.k8s.io", _trust_bundle),
        ("leasecandidates.coordination.k8s.io", _lease_candidate),
        ("mutatingadmissionpolicies.admissionregistration.k8s.io", _mutating_policy),
        ("mutatingadmissionpolicybindings.admissionregistration.k8s.io", _mutating_binding),
        ("podcertificaterequests.certificates.k8s.io", _pod_certificate_request),
        ("storageversionmigrations.storagemigration.k8s.io", _migration),
        ("podgroups.scheduling.k8s.io", _pod_group),
        ("compositepodgroups.scheduling.k8s.io", _composite_group),
    )
}
"""By the qualified plural."""

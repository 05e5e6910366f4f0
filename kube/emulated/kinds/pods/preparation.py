"""What the server writes into a pod before it looks at it: labels that terms and constraints go by, and AppArmor
profiles that annotations of old name (PrepareForCreate of pkg/registry/core/pod/strategy.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, annotations_of, labels_of
from mews.kube.emulated.core.checks.common import items, part_of

Body = dict[str, Any]

APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
OLD_ARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_LONGEST_PROFILE = 4095
_LISTS = ("initContainers", "containers", "ephemeralContainers")


def prepare(pod: Object) -> None:
    """Fill in what the pod's own labels and annotations say."""
    labels = labels_of(pod)
    for term in _terms(part_of(pod["spec"], "affinity")):
        _merge(term, "matchLabelKeys", "In", labels)
        _merge(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in items(pod["spec"], "topologySpreadConstraints"):
        _merge(constraint, "matchLabelKeys", "In", labels)
    for container, profile, _ in _old_profiles(pod):
        if profile is not None:
            context = container.get("securityContext") or {}
            container["securityContext"] = {**context, "appArmorProfile": profile}


def armor_warnings(pod: Object) -> list[str]:
    """Return the warnings of annotations that no field says yet."""
    return [f"metadata.annotations[{key}]: {OLD_ARMOR}" for _, _, key in _old_profiles(pod)]


def armor_of(annotation: str) -> dict[str, str] | None:
    """Return the profile that an annotation of old names (ApparmorFieldForAnnotation)."""
    kinds = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}
    if annotation in kinds:
        return {"type": kinds[annotation]}
    local = "localhost/"
    if annotation.startswith(local) and annotation != local:
        return {"type": "Localhost", "localhostProfile": annotation.removeprefix(local)}
    return None


def _terms(affinity: Mapping[str, Any]) -> Iterator[Body]:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = part_of(affinity, kind)
        for weighted in items(part, "preferredDuringSchedulingIgnoredDuringExecution"):
            yield weighted.get("podAffinityTerm") or {}
        yield from items(part, "requiredDuringSchedulingIgnoredDuringExecution")


def _merge(holder: Body, name: str, operator: str, labels: Mapping[str, str]) -> None:
    selector = holder.get("labelSelector")
    if selector is None:  # it selects none, whatever the pod's labels are
        return
    found = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in items(holder, name) if key in labels
    ]
    if found:
        selector["matchExpressions"] = [*items(selector, "matchExpressions"), *found]


def _old_profiles(pod: Object) -> Iterator[tuple[Body, dict[str, str] | None, str]]:
    """Containers whose annotation is not what holds for the pod as a whole: the profile that it names, if it is a good
    one, and its key."""
    spec, annotations = pod["spec"], annotations_of(pod)
    if not annotations or part_of(spec, "os").get("name") == "windows":
        return
    whole = part_of(spec, "securityContext").get("appArmorProfile")
    for container in (each for kind in _LISTS for each in items(spec, kind)):
        key = f"{APP_ARMOR}{container.get('name', '')}"
        if key not in annotations or part_of(container, "securityContext").get("appArmorProfile") is not None:
            continue
        profile = armor_of(annotations[key])
        local = (profile or {}).get("localhostProfile", "x")
        if local.strip() != local or len(local) > _LONGEST_PROFILE:
            profile = None
        if profile is None or profile != whole:
            yield container, profile, key

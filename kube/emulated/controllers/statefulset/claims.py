"""The claims that a StatefulSet's pods have of their own (pkg/controller/statefulset/stateful_set_utils.go). Pure."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object, clone, labels_of, name_of, namespace_of
from mews.kube.api.resources import STATEFUL_SETS
from mews.kube.emulated.controllers.owners import controller_reference


def claim_name(template: Object, stateful_set: Object, ordinal: int) -> str:
    """``data-web-0`` of the template ``data``."""
    return f"{name_of(template)}-{name_of(stateful_set)}-{ordinal}"


def claims(stateful_set: Object, ordinal: int) -> list[dict[str, Any]]:
    """Return the claims of an ordinal's pod. They outlive the pod; the set owns them where its policy deletes them with
    it."""
    found = []
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    selected = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        metadata = {
            "name": claim_name(template, stateful_set, ordinal),
            "namespace": namespace_of(stateful_set),
            "labels": {**labels_of(template), **selected},
        }
        if (template.get("metadata") or {}).get("annotations"):
            metadata["annotations"] = dict(template["metadata"]["annotations"])
        if policy.get("whenDeleted") == "Delete":
            metadata["ownerReferences"] = [controller_reference(stateful_set, STATEFUL_SETS)]
        found.append({"metadata": metadata, "spec": clone(template["spec"])})
    return found


def with_claims(pod: dict[str, Any], stateful_set: Object, ordinal: int) -> dict[str, Any]:
    """Return the pod with its own claims as volumes, in place of those of the same names."""
    templates = stateful_set["spec"].get("volumeClaimTemplates") or ()
    if not templates:
        return pod
    own = [
        {"name": name_of(each), "persistentVolumeClaim": {"claimName": claim_name(each, stateful_set, ordinal)}}
        for each in templates
    ]
    names = {volume["name"] for volume in own}
    others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in names]
    return {**pod, "spec": {**pod["spec"], "volumes": [*own, *others]}}

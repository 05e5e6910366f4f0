"""What the plugins for volumes ask of a pod."""

from __future__ import annotations

from mews.kube.api.objects import Object, labels_of, name_of, namespace_of
from mews.kube.api.volumes import claims_of, has_claims
from mews.kube.scheduling.podinfo import PodInfo


def needs_volumes(pod: PodInfo) -> bool:
    """Return whether claims, volumes and classes must be known to decide this pod."""
    return has_claims(pod.pod)


def names_claim(pod: PodInfo, claim: Object) -> bool:
    """Return whether the claim is one of the pod's."""
    return pod.namespace == namespace_of(claim) and any(name == name_of(claim) for name, _ in claims_of(pod.pod))


def relabelled(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    """Return whether a node is new or has other labels: a hint."""
    return new is not None and (old is None or labels_of(old) != labels_of(new))

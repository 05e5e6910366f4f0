"""Reading resource claims and the pods that name them, as scheduler, controller and kubelet do.

Source: k8s.io/dynamic-resource-allocation/resourceclaim of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, is_deleting, is_terminal, name_of, namespace_of, node_name_of, uid_of

PREPARED, UNPREPARED = "claim-prepared", "claim-unprepared"
"""What drivers of ours record: ``claim`` (namespace/name), ``uid``, ``driver``; of the first also ``devices``
[pool/device] and ``alone``, those that no other claim may have."""
DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer of an allocated claim: the scheduler sets it before it allocates, the controller removes it."""

MOST_CONSUMERS = 256
"""Entries of ``status.reservedFor`` that the API takes."""


class ClaimNotMadeError(Exception):
    """The claim of a template has no name in the pod's status yet; the text is upstream's."""


def names_claims(pod: Object) -> bool:
    """Return whether a pod names resource claims or templates."""
    return bool(pod["spec"].get("resourceClaims"))


def named_claims(pod: Object) -> list[str]:
    """Return the claims that a pod names, in its spec or as made for it."""
    made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    entries = (*(pod["spec"].get("resourceClaims") or ()), *made)
    return [entry["resourceClaimName"] for entry in entries if entry.get("resourceClaimName")]


def uses_claims(pod: Object) -> bool:
    """Return whether a pod names claims, or has one that stands for its extended resources."""
    return names_claims(pod) or bool(extended_claim_name(pod))


def extended_claim_name(pod: Object) -> str:
    """Return the claim that stands for a pod's extended resources (KEP-5004), "" where there is none."""
    noted = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return str(noted.get("resourceClaimName") or "")


def extended_mappings(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return which container has which request of that claim for which resource."""
    noted = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return noted.get("requestMappings") or ()


def claim_entries(pod: Object) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of ``spec.resourceClaims``, and one for the claim of the extended resources."""
    yield from pod["spec"].get("resourceClaims") or ()
    if name := extended_claim_name(pod):
        yield {"resourceClaimName": name}


def claim_name(pod: Object, entry: Mapping[str, Any]) -> str | None:
    """Return the name of the claim behind an entry of ``spec.resourceClaims``; None where none was needed.

    Raises ClaimNotMadeError.
    """
    if "resourceClaimName" in entry:
        return str(entry["resourceClaimName"])
    for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if status["name"] == entry["name"]:
            name = status.get("resourceClaimName")
            return None if name is None else str(name)
    raise ClaimNotMadeError(f'pod "{namespace_of(pod)}/{name_of(pod)}": ResourceClaim not created yet')


def known_claim_names(pod: Object) -> Iterator[str]:
    """Yield the names of a pod's claims as far as they are known."""
    for entry in claim_entries(pod):
        try:
            name = claim_name(pod, entry)
        except ClaimNotMadeError:
            continue
        if name is not None:
            yield name


def is_generated(entry: Mapping[str, Any]) -> bool:
    """Return whether a claim is made for this entry, so that the pod must own it."""
    return "resourceClaimName" not in entry


def not_made_for(pod: Object, claim: Object) -> str:
    """Return why a generated claim is not this pod's, "" where it is."""
    if owns(uid_of(pod), claim):
        return ""
    return (
        f"ResourceClaim {namespace_of(claim)}/{name_of(claim)} was not created for pod "
        f"{namespace_of(pod)}/{name_of(pod)} (pod is not owner)"
    )


def owns(pod_uid: str, claim: Object) -> bool:
    """Return whether the pod with that uid controls the claim."""
    return any(
        owner.get("controller") and owner.get("uid") == pod_uid
        for owner in claim["metadata"].get("ownerReferences") or ()
    )


def allocation_of(claim: Object) -> Mapping[str, Any] | None:
    """``status.allocation``, None while the claim has none."""
    found: Mapping[str, Any] | None = (claim.get("status") or {}).get("allocation")
    return found


def results_of(claim: Object) -> Sequence[Mapping[str, Any]]:
    """Return the devices that an allocation gives, empty without one."""
    return ((allocation_of(claim) or {}).get("devices") or {}).get("results") or ()


def consumers_of(claim: Object) -> Sequence[Mapping[str, Any]]:
    """``status.reservedFor``."""
    return (claim.get("status") or {}).get("reservedFor") or ()


def is_reserved_for(claim: Object, pod_uid: str) -> bool:
    """Return whether the pod with that uid may use the claim."""
    return any(entry.get("uid") == pod_uid for entry in consumers_of(claim))


def can_be_reserved(claim: Object) -> bool:
    """Return whether there is room for one more consumer."""
    return len(consumers_of(claim)) < MOST_CONSUMERS


def is_done(pod: Object) -> bool:
    """Return whether no container of the pod runs or ever will."""
    return is_terminal(pod) or (is_deleting(pod) and not node_name_of(pod))

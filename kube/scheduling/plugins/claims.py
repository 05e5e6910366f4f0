"""Pods with resource claims, in the words of upstream's dynamicresources plugin.

Devices are not allocated here: a claim that is there is one that cannot be allocated on any node, so its pods wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mews.kube.api.objects import Object, is_deleting, labels_of, uid_of
from mews.kube.api.resources import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    PostFilterResult,
    Status,
    Wake,
    error,
    unresolvable,
    unschedulable,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo

NOT_ALLOCATED = unresolvable("cannot allocate all claims")


class _NoClaimError(Exception):
    """A claim of the pod cannot be used; the text is upstream's."""


class DynamicResources:
    """Keeps pods out of the queue until their resource claims are there, then on no node."""

    name = "DynamicResources"

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.late_informer(RESOURCE_CLAIMS, _needs_claims)
        self._classes = handle.late_informer(DEVICE_CLASSES, _needs_claims)
        handle.late_informer(RESOURCE_SLICES, _needs_claims)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep a pod out of the queue while one of its claims is missing, being deleted or another pod's."""
        try:
            list(self._claims_of(pod))
        except _NoClaimError as missing:
            return unresolvable(str(missing))
        return SUCCESS

    def _claims_of(self, pod: PodInfo) -> Iterator[Object]:
        """The claims that are there.

        Raises _NoClaimError for the first that is not.
        """
        for entry in pod.pod["spec"].get("resourceClaims") or ():
            own = "resourceClaimName" not in entry
            name = entry.get("resourceClaimName") if not own else _made_name(pod, str(entry["name"]))
            if name is None:  # none was to be made
                continue
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                raise _NoClaimError(messages.not_found("resourceclaim.resource.k8s.io", name))
            if is_deleting(claim):
                raise _NoClaimError(f'resourceclaim "{name}" is being deleted')
            if own and not _is_made_for(claim, pod):
                raise _NoClaimError(
                    f"ResourceClaim {pod.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
                )
            yield claim

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Refuse a pod whose claims ask for a class that is not there; notes that it was asked."""
        state.data[self.name] = False
        if not _needs_claims(pod):
            return SKIP
        try:
            claims = list(self._claims_of(pod))
        except _NoClaimError as missing:
            return unresolvable(str(missing))
        if not claims:
            return SKIP
        for claim in claims:
            for request, device_class in _requests(claim):
                if self._classes.get(device_class) is None:
                    return unresolvable(f"request {request}: device class {device_class} does not exist")
        state.data[self.name] = True
        return SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Refuse every node."""
        return NOT_ALLOCATED

    def post_filter(self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]) -> PostFilterResult:
        """Unschedulable; upstream's error "not found" where an earlier plugin's PreFilter refused the pod outright."""
        if self.name not in state.data:
            return PostFilterResult(error(messages.NO_STATE))
        return PostFilterResult(unschedulable(messages.STILL if state.data[self.name] else messages.NO_CLAIMS))

    def wakes_on(self) -> Sequence[Wake]:
        """Claims, classes, devices, and nodes with other labels or amounts. That the pod itself is told the name of a
        claim made for it, the queue knows."""
        added = Action.ADD | Action.UPDATE
        return (
            Wake(NODES, added, _differs),
            Wake(RESOURCE_CLAIMS, added, self._helps),
            Wake(DEVICE_CLASSES, added),
            Wake(RESOURCE_SLICES, added),
        )

    def _helps(self, pod: PodInfo, old: Object | None, new: Object | None) -> bool:
        assert new is not None
        try:
            uses = any(uid_of(claim) == uid_of(new) for claim in self._claims_of(pod))
        except _NoClaimError:
            return False
        if old is not None and _is_allocated(old) and not _is_allocated(new):
            return True
        return uses and (old is None or old.get("status") != new.get("status"))


def _needs_claims(pod: PodInfo) -> bool:
    return bool(pod.pod["spec"].get("resourceClaims"))


def _made_name(pod: PodInfo, entry: str) -> str | None:
    """The name of the claim that was made from a template; None where none was needed."""
    for status in (pod.pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if status["name"] == entry:
            name = status.get("resourceClaimName")
            return None if name is None else str(name)
    raise _NoClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def _is_made_for(claim: Object, pod: PodInfo) -> bool:
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == pod.uid for owner in owners)


def _requests(claim: Object) -> Iterator[tuple[str, str]]:
    """(request, device class) of a claim that is not allocated."""
    if _is_allocated(claim):
        return
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        if "exactly" in request:
            yield str(request["name"]), str(request["exactly"]["deviceClassName"])
        for part in request.get("firstAvailable") or ():
            yield f"{request['name']}/{part['name']}", str(part["deviceClassName"])


def _is_allocated(claim: Object) -> bool:
    return (claim.get("status") or {}).get("allocation") is not None


def _differs(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return new is not None
    before, after = (each.get("status") or {} for each in (old, new))
    return labels_of(old) != labels_of(new) or before.get("allocatable") != after.get("allocatable")
